"""A C++ matrix product template without its epilogue: the loops behind the product store it as it is."""

from __future__ import annotations

import re

# The product goes to the third pointer: to a buffer of its own, or to where the epilogue works in place.
_CALL = re.compile(r"micro_gemm<[^\n]*>\((?:\s*\w+,)?(?:\s*&\(\w+\[[^\n]*\n){2}\s*&\((?P<product>\w+)\[")
_VALUE = re.compile(r"\s*auto (?P<name>\w+) = (?P<text>.*);")
_STORE = re.compile(r"\s*(?P<value>\w+)\.store\((?P<pointer>\w+) \+ |\s*(?P<to>\w+)\[.*\] = (?P<scalar>\w+);")
_OTHER = re.compile(r"\s*\w+\[.*\] [-+*/]?= |.*\.store\(|.*\batomic_add")
_CONVERT = re.compile(r"(?P<head>(?:at::vec::convert|c10::convert)<[^()]*>\()(?P<value>\w+)(?P<rest>[,)].*)")
_WORD = re.compile(r"\w+")


def without_epilogue(source: str) -> str:
    """Return the text of a template in which what is stored behind the product is the product.

    What only the epilogue needs is left out, and so are its loads, a bias among them; a conversion to the
    type that is stored stays. Where product and result share their memory nothing is left to do, as in a
    template that has no epilogue. The parameters stay.

    Args:
        source: the text of the kernel.

    Raises:
        ValueError: it is no such template, has no epilogue, or one in a form that is not known; says which.
    """
    products = {call["product"] for call in _CALL.finditer(source)}
    if not products:
        raise ValueError("not a template: nothing in it calls a micro_gemm")
    lines = source.split("\n")
    # What comes before the first product is the product itself.
    first = source.count("\n", 0, next(_CALL.finditer(source)).start())
    cut: set[int] = set()
    changed = False
    for at in range(first, len(lines)):
        store = _STORE.match(lines[at])
        if store is None:
            if _OTHER.match(lines[at]):
                raise ValueError(f"line {at + 1} of it stores in a form that is not known")
            continue
        if _overwritten(lines, at):
            cut.add(at)
            continue
        block = _values_above(lines, at, cut)
        loaded = [name for name, row in block.items() if _loads(lines[row], products)]
        value = store["value"] or store["scalar"]
        if value in loaded:
            continue
        if len(loaded) != 1 or value not in block:
            raise ValueError(
                f"line {at + 1} of it stores what is not made of the product by plain statements"
            )
        product, made = loaded[0], block[value]
        if convert := _CONVERT.fullmatch(_text(lines[made])):
            if convert["value"] == product:
                continue
            lines[made] = lines[made].replace(convert[0], f"{convert['head']}{product}{convert['rest']}")
        elif {_element(source, store["pointer"] or store["to"])} == {
            _element(source, name) for name in products
        }:
            lines[at] = (
                re.sub(rf"\b{value}\b", product, lines[at], count=1)
                if store["value"]
                else re.sub(rf"\b{value};$", f"{product};", lines[at])
            )
        else:
            raise ValueError(f"line {at + 1} of it stores another type than that of the product")
        changed = True
        cut |= set(block.values()) - _needed(lines, at, block)
    if not changed:
        raise ValueError("it has no epilogue: what it stores is the product")
    return "\n".join(line for at, line in enumerate(lines) if at not in cut)


def _overwritten(lines: list[str], at: int) -> bool:
    """Whether the next statement stores to the same place: a bias is added and stored before the rest."""
    place, after = (line.partition(".store(")[2] for line in lines[at : at + 2])
    return bool(place) and place == after


def _values_above(lines: list[str], at: int, passed: set[int]) -> dict[str, int]:
    """Return the rows of the statements `auto tmp1 = ...;` right above a store, by name."""
    found: dict[str, int] = {}
    row = at - 1
    while row in passed or (value := _VALUE.fullmatch(lines[row])):
        if row not in passed and value:
            found.setdefault(value["name"], row)
        row -= 1
    return found


def _loads(line: str, products: set[str]) -> bool:
    return any(f"loadu({name} + " in line or f"= {name}[" in line for name in products)


def _text(line: str) -> str:
    value = _VALUE.fullmatch(line)
    return value["text"] if value else ""


def _needed(lines: list[str], at: int, block: dict[str, int]) -> set[int]:
    """Return the rows of what the statement at row `at` is made of."""
    found: set[int] = set()
    waiting = [lines[at]]
    while waiting:
        for name in _WORD.findall(waiting.pop()):
            if name in block and block[name] not in found:
                found.add(block[name])
                waiting.append(_text(lines[block[name]]))
    return found


def _element(source: str, pointer: str) -> str | None:
    """Return the element type behind a pointer: a parameter, or a buffer that the kernel makes for itself."""
    made = rf"([\w:]+)\s*\*\s*(?:__restrict__ )?{pointer}\b|\b_{pointer} = std::make_unique<([\w:]+)\["
    found = re.search(made, source)
    return found[1] or found[2] if found else None
