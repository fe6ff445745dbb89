"""C++ kernels with parts left out, by text."""

from __future__ import annotations

import re

from inductor_probe.variants.accesses import Access
from inductor_probe.variants.code import KernelCode

CHECK = re.compile(r"^\s*(?:AOTI_)?TORCH_CHECK\(.*index out of bounds")
_COMBINED = re.compile(
    r"^(?P<indent>\s*)(?:masked_)?tmp_acc\d+\w*\s*=(?!=)\s*(?P<values>[^;]*\btmp\d+\b[^;]*);$"
)
_VALUE = re.compile(r"\btmp\d+\b")
# torch/_inductor/codegen/cpp_micro_gemm.py, CppMicroGemm.codegen_call: `micro_gemm<true>(&(X[..]), ...`.
# The product goes to the third pointer: to a buffer of its own, or to where the epilogue works in place.
_PRODUCT = re.compile(r"micro_gemm<[^\n]*>\((?:\s*\w+,)?(?:\s*&\(\w+\[[^\n]*\n){2}\s*&\((?P<product>\w+)\[")
_DEFINED = re.compile(r"\s*auto (?P<name>\w+) = (?P<text>.*);")
_STORE = re.compile(r"\s*(?P<value>\w+)\.store\((?P<pointer>\w+) \+ |\s*(?P<to>\w+)\[.*\] = (?P<scalar>\w+);")
_OTHER_STORE = re.compile(r"\s*\w+\[.*\] [-+*/]?= |.*\.store\(|.*\batomic_add")
_CONVERT = re.compile(r"(?P<head>(?:at::vec::convert|c10::convert)<[^()]*>\()(?P<value>\w+)(?P<rest>[,)].*)")


def without_reduction(kernel: KernelCode) -> str:
    """Return the source in which values meant for an accumulator go nowhere, but are still computed.

    `asm volatile` takes each as an operand in memory: the compiler must compute it, and combines nothing.
    """
    lines = kernel.source.split("\n")
    for number, line in enumerate(lines, 1):
        if combined := _COMBINED.match(line):
            values = dict.fromkeys(_VALUE.findall(combined["values"]))
            sinks = (f'{combined["indent"]}asm volatile("" : : "m"({value}));' for value in values)
            lines[number - 1] = " ".join(sinks)
        elif "tmp_acc" in line and _VALUE.search(line) and "=" in line and "tmpbuf" not in line:
            raise kernel.refusal(number, "a reduction in a form that is not known")
    return "\n".join(lines)


def with_index(kernel: KernelCode, pointer: str, kind: str, access: Access) -> tuple[int, int, str]:
    """Return the edit that puts the index of an access in the place of what is loaded or stored."""
    source, start, end = kernel.source, access.start, access.end
    value = f"static_cast<{kind}>({access.index})"
    if access.form == "load":
        return start, end, f"{access.maker.removesuffix('::loadu')}({value})"
    if access.form == "store":
        made = f"decltype({access.maker})({value}).store("
        return start, end, source[start:end].replace(f"{access.maker}.store(", made, 1)
    if access.writes:
        text = f"static_cast<int64_t>({access.index})] = {value};"
        return start, source.index(";", end) + 1, text
    return source.rindex(pointer, 0, start), end + 1, value


def without_epilogue(source: str) -> str:
    """Return the text of a template in which what is stored behind the product is the product.

    What only the epilogue needs is left out, and so are its loads, a bias among them; a conversion to the
    type that is stored stays. Where product and result share their memory nothing is left to do, as in a
    template that has no epilogue. The parameters stay.

        auto tmp0 = Y[x0];
        auto tmp1 = tmp0 * 2;
        Y[x0] = tmp1;              ->   auto tmp0 = Y[x0]; Y[x0] = tmp0;

    Raises:
        ValueError: it is no such template, has no epilogue, or one in a form that is not known; says which.
    """
    calls = list(_PRODUCT.finditer(source))
    products = {call["product"] for call in calls}
    if not products:
        raise ValueError("not a template: nothing in it calls a micro_gemm")
    lines = source.split("\n")
    cut: set[int] = set()
    changed = False
    # What comes before the first product is the product itself.
    for row in range(source.count("\n", 0, calls[0].start()), len(lines)):
        store = _STORE.match(lines[row])
        if store is None:
            if _OTHER_STORE.match(lines[row]):
                raise ValueError(f"line {row + 1} of it stores in a form that is not known")
            continue
        place, next_place = (line.partition(".store(")[2] for line in [*lines[row : row + 2], ""][:2])
        if place and place == next_place:  # a bias is added and stored before the rest
            cut.add(row)
            continue
        values = _values_above(lines, row, cut)
        loaded = [
            name
            for name, at in values.items()
            if any(f"loadu({product} + " in lines[at] or f"= {product}[" in lines[at] for product in products)
        ]
        value = store["value"] or store["scalar"]
        if value in loaded:
            continue
        if len(loaded) != 1 or value not in values:
            raise ValueError(
                f"line {row + 1} of it stores what is not made of the product by plain statements"
            )
        made = values[value]
        if convert := _CONVERT.fullmatch(_text(lines[made])):
            if convert["value"] == loaded[0]:
                continue
            lines[made] = lines[made].replace(convert[0], f"{convert['head']}{loaded[0]}{convert['rest']}")
        elif {_element(source, name) for name in products} == {
            _element(source, store["pointer"] or store["to"])
        }:
            before, after = (value, loaded[0]) if store["value"] else (f"{value};$", f"{loaded[0]};")
            lines[row] = re.sub(
                rf"\b{before}" + (r"\b" if store["value"] else ""), after, lines[row], count=1
            )
        else:
            raise ValueError(f"line {row + 1} of it stores another type than that of the product")
        changed = True
        cut |= set(values.values()) - _needed(lines, row, values)
    if not changed:
        raise ValueError("it has no epilogue: what it stores is the product")
    return "\n".join(line for row, line in enumerate(lines) if row not in cut)


def _values_above(lines: list[str], row: int, skipped: set[int]) -> dict[str, int]:
    """Return the rows of the statements `auto tmp1 = ...;` right above a store, by name."""
    values: dict[str, int] = {}
    row -= 1
    while row in skipped or (value := _DEFINED.fullmatch(lines[row])):
        if row not in skipped and value:
            values.setdefault(value["name"], row)
        row -= 1
    return values


def _text(line: str) -> str:
    value = _DEFINED.fullmatch(line)
    return value["text"] if value else ""


def _needed(lines: list[str], row: int, values: dict[str, int]) -> set[int]:
    """Return the rows of what the statement at `row` is made of."""
    needed: set[int] = set()
    waiting = [lines[row]]
    while waiting:
        for name in re.findall(r"\w+", waiting.pop()):
            if name in values and values[name] not in needed:
                needed.add(values[name])
                waiting.append(_text(lines[values[name]]))
    return needed


def _element(source: str, pointer: str) -> str | None:
    """Return the element type behind a pointer: a parameter, or a buffer that the kernel makes for itself."""
    made = rf"([\w:]+)\s*\*\s*(?:__restrict__ )?{pointer}\b|\b_{pointer} = std::make_unique<([\w:]+)\["
    match = re.search(made, source)
    return match[1] or match[2] if match else None
