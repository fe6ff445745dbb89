"""C++ kernels with parts left out."""

from __future__ import annotations

import re
from collections.abc import Callable

from inductor_probe.backends.cpp import SIGNATURE
from inductor_probe.variants.code import KernelCode
from inductor_probe.variants.places import Place, places

_ALIAS = re.compile(r"^\s*auto\s+(?P<alias>\w+)\s*=\s*(?P<pointer>\w+)\s*;$")
_PARAMETER = re.compile(r"(?:const\s+)?(?P<type>[\w:]+)\s*\*\s*(?P<name>\w+)")
_COMBINED = re.compile(
    r"^(?P<indent>\s*)(?:masked_)?tmp_acc\d+\w*\s*=(?!=)\s*(?P<what>[^;]*\btmp\d+\b[^;]*);$"
)
_VALUE = re.compile(r"\btmp\d+\b")
_CHECK = re.compile(r"^\s*(?:AOTI_)?TORCH_CHECK\(.*index out of bounds")


def without_reduction(kernel: KernelCode) -> str:
    """Return the source in which values meant for an accumulator go nowhere, but are still computed.

    `asm volatile` takes each as an operand in memory: the compiler must compute it, and combines nothing.
    """
    lines = kernel.source.split("\n")
    for number, line in enumerate(lines, 1):
        combined = _COMBINED.match(line)
        if combined:
            values = dict.fromkeys(_VALUE.findall(combined["what"]))
            lines[number - 1] = " ".join(
                f'{combined["indent"]}asm volatile("" : : "m"({each}));' for each in values
            )
        elif "tmp_acc" in line and re.search(r"\btmp\d+\b", line) and "=" in line and "tmpbuf" not in line:
            raise kernel.refusal(number, "a reduction in a form that is not known")
    return "\n".join(lines)


def without_loads(kernel: KernelCode) -> str:
    """Return the source in which each load gives its index, as a value of the type it loads."""

    def instead(place: Place, kind: str) -> str | None:
        if place.writes is None:
            raise kernel.refusal(place.line, "an atomic addition loads as well")
        if place.writes:
            return None
        value = f"static_cast<{kind}>({place.index})"
        if place.how == "element":
            return value
        return f"{place.maker.removesuffix('::loadu')}({value})"

    return _edited(kernel, instead)


def only_stores(kernel: KernelCode) -> str:
    """Return the source in which each store stores its index, so that the compiler drops all the rest."""

    def instead(place: Place, kind: str) -> str | None:
        if place.writes is None:
            raise kernel.refusal(place.line, "an atomic addition is no plain store")
        if not place.writes:
            return None
        value = f"static_cast<{kind}>({place.index})"
        if place.how == "element":
            rest = kernel.source[place.end :]
            return f"static_cast<int64_t>({place.index})] = {value};" if rest.startswith("]") else None
        return kernel.source[place.start : place.end].replace(
            f"{place.maker}.store(", f"decltype({place.maker})({value}).store(", 1
        )

    return _edited(kernel, instead)


def _edited(kernel: KernelCode, instead: Callable[[Place, str], str | None]) -> str:
    source = kernel.source
    lines = source.split("\n")
    found: list[tuple[int, int, str]] = []
    for name, kind in _pointers(source).items():
        for place in places(source, name, "cpp"):
            if isinstance(place, int):
                if not _ALIAS.match(lines[place - 1]):
                    raise kernel.refusal(place, f"{name} is used in a form that is not known")
                continue
            if place.writes and _VALUE.search(place.index):
                raise kernel.refusal(place.line, "it stores through an index that was loaded")
            text = instead(place, kind)
            if text is None:
                continue
            start, end = place.start, place.end
            if place.how == "element" and place.writes:
                end = source.index(";", place.end) + 1
            elif place.how == "element":
                start = source.rindex(name, 0, place.start)
                end = place.end + 1
            found.append((start, end, text))
    for start, end, text in sorted(found, reverse=True):
        source = source[:start] + text + source[end:]
    return "\n".join(line for line in source.split("\n") if not _CHECK.match(line))


def _pointers(source: str) -> dict[str, str]:
    """Return the element type behind each pointer: the parameters, and names that stand for them."""
    signature = SIGNATURE.search(source)
    found = {
        each["name"]: each["type"] for each in _PARAMETER.finditer(signature["params"] if signature else "")
    }
    for line in source.split("\n"):
        alias = _ALIAS.match(line)
        if alias and alias["pointer"] in found:
            found[alias["alias"]] = found[alias["pointer"]]
    return found
