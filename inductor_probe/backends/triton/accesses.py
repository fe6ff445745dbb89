"""Where a Triton kernel reads and writes through its pointers."""

from __future__ import annotations

import re
from typing import Literal

from inductor_probe.backends.brackets import inside, split_arguments, unwrapped
from inductor_probe.model.code import PointerUse

_ACCESS = re.compile(r"\btl\.(?P<how>load|store|atomic_\w+)(?P<opening>\()")
_ASSIGNED = re.compile(r"^[ \t]*(?P<name>\w+)(?:[ \t]*:[^=\n]*)?[ \t]*=(?!=)(?P<value>[^\n]*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_EVICTION = re.compile(r"eviction_policy=['\"](\w+)['\"]")

_FASTEST = re.compile(
    r"^[ \t]*(?P<name>\w+) = (?:[xyzr]\w{0,9}index|\([xyzr]\w{0,9}index % [^()\n]*\))[ \t]*$",
    re.MULTILINE,
)


def fastest_variables(source: str) -> frozenset[str]:
    """Return the variables that go up by one from each element of a block to the next.

    Of `x0 = (xindex % 16)`, `x1 = xindex // 16`, `x2 = xindex`, `r0_3 = r0_index` those are x0, x2 and r0_3
    (`IterationRangesEntry` in `torch/_inductor/codegen/triton.py`). A load is coalesced along an axis of its
    block where one of them stands with a stride of 1 in its index.
    """
    return frozenset(found["name"] for found in _FASTEST.finditer(source, max(source.find("@triton.jit"), 0)))


def pointer_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    """Return the loads, stores and atomics through `pointers`, or through names made of them, in order."""
    start = max(source.find("@triton.jit"), 0)
    roots = {name: name for name in pointers}
    for found in _ASSIGNED.finditer(source, start):  # `A = arg_A`, `x_ptrs = x_ptr + offsets`
        if "tl.load(" not in found["value"]:
            for word in _WORD.findall(found["value"]):
                if word in roots:
                    roots.setdefault(found["name"], roots[word])
                    break
    uses: list[PointerUse] = []
    line, at = 1, 0
    for match in _ACCESS.finditer(source, start):
        line += source.count("\n", at, match.start())
        at = match.start()
        text = inside(source[match.start() : match.start() + _LONGEST], match.end() - 1 - match.start())
        arguments = split_arguments(text or "")
        if not arguments:
            continue
        name = next((word for word in _WORD.findall(arguments[0]) if word in roots), None)
        if name is not None:
            uses.append(_use(line, match["how"], arguments, name, roots[name]))
    return tuple(uses)


_LONGEST = 20_000
"""Characters of one access at most: a bracket that is never closed must not cost the whole text each time."""


def _use(line: int, what: str, arguments: list[str], name: str, pointer: str) -> PointerUse:
    how: Literal["load", "store", "atomic"] = (
        "load" if what == "load" else "store" if what == "store" else "atomic"
    )
    rest = [argument for argument in arguments[1:] if not re.match(r"\w+\s*=(?!=)", argument)]
    named = [argument.partition("=")[2].strip() for argument in arguments if argument.startswith("mask")]
    masks = rest[0 if how == "load" else 1 :] + named
    _, plus, index = arguments[0].partition(f"{name} + ")
    return PointerUse(
        line=line,
        how=how,
        pointer=pointer,
        index=unwrapped(index) if plus else None,
        mask=masks[0] if masks and masks[0] != "None" else None,
        eviction=match[1] if (match := _EVICTION.search(", ".join(arguments))) else None,
        alias=name if name != pointer else None,
    )
