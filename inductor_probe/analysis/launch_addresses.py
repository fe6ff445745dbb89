"""Where the memory that a launch passes starts and how far it spans, against what Triton was promised.

Codes of what does not fit, and their numbers in order:

- `not-divisible`: argument, divisor, passed. `not-aligned`: argument, alignment, passed, offset (bytes).
- `int32-overflow`: argument, passed. `int32-extent`: argument, passed, elements (from first to last).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductor_probe.analysis.expression import parse_expression
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.model.code import TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.kernels import Aspect, KernelLaunch, Mismatch, Passed

ALIGNMENT = 16
LARGEST_INT32 = (1 << 31) - 1
_NUMBER = re.compile(r"-?\d{1,19}")


class Addresses:
    """Compares addresses and index widths of one graph; build it once."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._allocations = index_of(graph).allocations

    def divisible(self, facts: TritonFacts, launch: KernelLaunch) -> Iterator[tuple[Aspect, Mismatch | None]]:
        """Yield for each argument that is promised to be a multiple of 16 whether it is.

        Triton loads 16 bytes at once where it was promised that; an address between faults.
        """
        for passed in launch.passed:
            if passed.arg is None or passed.arg.name not in facts.divisible:
                continue
            value = number(passed.text)
            if value is not None:
                numbers = (("argument", passed.arg.name), ("divisor", ALIGNMENT), ("passed", value))
                yield "divisibility", Mismatch("not-divisible", numbers) if value % ALIGNMENT else None
            elif (offset := self._offset_bytes(passed)) is not None:
                address = (
                    ("argument", passed.arg.name),
                    ("alignment", ALIGNMENT),
                    ("passed", passed.text),
                    ("offset", offset),
                )
                yield "divisibility", Mismatch("not-aligned", address) if offset % ALIGNMENT else None

    def _offset_bytes(self, passed: Passed) -> int | None:
        """Return where a buffer starts in its memory, which starts aligned; views of views add up."""
        if passed.buffer is None or passed.layout is None:
            return None
        item = ITEM_BYTES.get(passed.layout.dtype or "")
        offset = 0 if passed.text == passed.buffer else _view_offset(passed.text)
        name: str | None = passed.buffer
        seen: set[str] = set()
        while offset is not None and name and name not in seen and (made := self._allocations.get(name)):
            seen.add(name)
            if made.how == "view":
                known = made.layout is not None and isinstance(made.layout.offset, int)
                offset = offset + int(made.layout.offset) if known and made.layout else None
            name = made.of if made.how in ("reuse", "alias", "view") else None
        return None if item is None or offset is None else offset * item

    def width(self, facts: TritonFacts, launch: KernelLaunch) -> Iterator[tuple[Aspect, Mismatch | None]]:
        """Yield for each number whether its type holds it, for each buffer whether 32 bits index it."""
        types = dict(facts.signature)
        for passed in launch.passed:
            if passed.arg is None:
                continue
            kind, value = types.get(passed.arg.name, ""), number(passed.text)
            if kind == "i32" and value is not None:
                wide = Mismatch("int32-overflow", (("argument", passed.arg.name), ("passed", value)))
                yield "index width", wide if abs(value) > LARGEST_INT32 else None
            elif kind.startswith("*") and facts.index_width == "int32" and passed.layout is not None:
                extent = _extent(passed.layout)
                if extent is not None:
                    span = (("argument", passed.arg.name), ("passed", passed.text), ("elements", extent))
                    far = extent - 1 > LARGEST_INT32
                    yield "index width", Mismatch("int32-extent", span) if far else None


def number(text: str) -> int | None:
    """Return a text that is a whole number as one."""
    return int(text) if _NUMBER.fullmatch(text) else None


def _view_offset(text: str) -> int | None:
    """Return the offset of `reinterpret_tensor(buf0, size, stride, offset)`, in elements."""
    try:
        call = parse_expression(text)
    except ValueError:
        return None
    match call:
        case ast.Call(
            func=ast.Name(id="reinterpret_tensor"), args=[_, _, _, ast.Constant(value=int() as offset)]
        ):
            return offset
        case ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[_, _, _]):
            return 0
    return None


def _extent(layout: BufferLayout) -> int | None:
    """Return the number of elements from the first to the last that a layout reaches."""
    size, stride = ints(layout.size), ints(layout.stride)
    if size is None or stride is None:
        return None
    return 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) if all(size) else 0


def ints(dims: tuple[Dim, ...] | None) -> list[int] | None:
    """Return sizes that are all numbers; None otherwise."""
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        return None
    return [dim for dim in dims if isinstance(dim, int)]
