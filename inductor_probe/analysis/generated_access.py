"""How the generated kernels reach buffers: what codegen made of the accesses of the IR.

The loops of the IR are not those of the kernel. Codegen vectorises an outer loop of a reduction, transposes
tiles of 16 by 16, and keeps values in registers, so a stride along the innermost loop of the IR says nothing
about the kernel:

    IR       op10 reads buf9 at p0 + 32*p1, innermost loop p1           stride 32
    kernel   for x0 by 16 { for x1 { loadu(in_ptr0 + x0 + 32L*x1) } }   a vector of 16 consecutive elements
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.access import Direction
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import INDIRECT, PIECEWISE, Index, parse_index
from inductor_probe.analysis.links import launches
from inductor_probe.backends import backend_called
from inductor_probe.backends.triton import fastest_variables
from inductor_probe.model.code import CppFacts, Kernel, Loop, PointerUse, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.layouts import Access, GeneratedAccess
from inductor_probe.model.links import Links
from inductor_probe.model.span import Span

_GATHER = re.compile(r"tmp\w*\[\w+\]")
"""`tmp19[x2_inner]`: one element of a vector of indices."""
_WITHIN = ("_inner", "_tail")
"""Ends of the variables that loop over the elements of a vector or a tile (`x1_inner`)."""


class _Use(Struct, frozen=True):
    """An access in a kernel's text. `tail`: in the rest of a vectorised loop."""

    pointer: str
    direction: Direction
    tail: bool
    index: Index | None
    access: GeneratedAccess

    @property
    def gathers(self) -> bool:
        """Whether each element of a vector has an index of its own."""
        return self.index is not None and any(_GATHER.fullmatch(text) for text, _ in self.index.opaque)


class GeneratedAccesses:
    """Answers for one graph; a kernel's text is read when the first access in it is asked for."""

    def __init__(self, graph: CompiledGraph, linked: Links) -> None:
        self._launches = launches(graph)
        self._links = linked
        self._index = index_of(graph)
        self._uses: dict[str, tuple[_Use, ...]] = {}

    def of(self, access: Access, buffer: str, direction: Direction, local: bool) -> GeneratedAccess | None:
        """Return how the kernel that runs the node makes this access, None where that is not known.

        The wrapper has no memory for a `local` buffer.
        """
        kernel = self._index.kernels.get(access.kernel or "")
        if kernel is None or not isinstance(kernel.details, CppFacts | TritonFacts):
            return None
        pointers = self.pointers(access.node, kernel.name, buffer)
        if not pointers:
            return GeneratedAccess("none") if local else None
        if kernel.name not in self._uses:
            self._uses[kernel.name] = tuple(_read(kernel))
        uses = [use for use in self._uses[kernel.name] if use.pointer in pointers]
        uses = [use for use in uses if use.direction == direction]
        if not uses:
            return GeneratedAccess("none") if direction == "read" else None
        return _same(uses, access)

    def pointers(self, node: str, kernel: str, buffer: str) -> frozenset[str]:
        """Return the parameters through which the kernel reaches a buffer, by any name its memory had."""
        link = self._links.nodes.get(node)
        calls = self._launches.get(kernel, ())
        linked = [call for call in calls if link is not None and call.span in link.launches]
        passed = [
            (item.arg.name, item.buffer)
            for call in linked or calls
            for item in call.passed
            if item.arg and item.buffer
        ]
        mutated_as = self._index.nodes.mutated_as
        return frozenset(name for name, memory in passed if memory == buffer) or frozenset(
            name
            for name, memory in passed
            if any(buffer in (old, *mutated_as.get(old, ())) for old in self._index.memory_names(memory))
        )


def _same(uses: list[_Use], access: Access) -> GeneratedAccess | None:
    """Of the uses of a pointer, return the one that this access became.

    Those whose index has the same strides are preferred, then those that are not in the rest of a vectorised
    loop. Where some are contiguous and others are not, the access gets the benefit of the doubt.
    """
    steps = dict(access.ranges)
    strides = sorted(
        str(stride)
        for name, stride in access.strides
        if steps[name] != 1 and stride not in (0, INDIRECT, PIECEWISE)
    )
    uses = [use for use in uses if use.index is not None and _strides(use.index) == strides] or uses
    uses = [use for use in uses if not use.tail] or uses
    candidates = [_with_indirect(use, access) for use in uses]
    return min(candidates, key=lambda candidate: (True, None, False).index(candidate.contiguous))


def _strides(index: Index) -> list[str]:
    """The strides of a kernel's index, without loaded values and the variables within vectors."""
    return sorted(
        str(stride)
        for name in index.names
        if not name.startswith("tmp") and not name.endswith(_WITHIN)
        if (stride := index.stride(name)) not in (0, PIECEWISE)
    )


def _with_indirect(use: _Use, access: Access) -> GeneratedAccess:
    """Whether loaded values in an index vary with the innermost loop, the IR says: the text does not."""
    generated = use.access
    if generated.stride != INDIRECT or use.gathers:
        return generated
    variable = _variable(generated, access)
    if variable is None and access.pattern.kind != "indirect":
        return replace(generated, stride=None, contiguous=None)
    if variable is None or any(variable in names for _, names in access.indirect):
        return generated
    return replace(generated, stride=0, contiguous=True)


def _variable(generated: GeneratedAccess, access: Access) -> str | None:
    """The IR's variable of a C++ loop: both are numbered from the outermost on, and have as many steps."""
    looping = [(name, steps) for name, steps in access.ranges if steps != 1]
    number = (generated.loop or "").lstrip("xi")
    if not number.isdecimal() or int(number) >= len(looping) or generated.form != "element":
        return None
    name, steps = looping[int(number)]
    return name if steps == generated.steps else None


def _read(kernel: Kernel) -> Iterator[_Use]:
    backend = backend_called(kernel.backend)
    if backend is None:
        return
    pointers = frozenset(arg.name for arg in kernel.args if arg.role != "size")
    fastest = fastest_variables(kernel.source) if isinstance(kernel.details, TritonFacts) else frozenset()
    for use in backend.pointer_uses(kernel.source, pointers):
        index = _parsed(use.index)
        tail = False
        if isinstance(kernel.details, CppFacts):
            loops, tail = _around(kernel.details, use.line)
            access = _in_loops(use, index, loops)
        else:
            access = _in_block(index, fastest)
        if kernel.span is not None:
            line = kernel.span.first + use.line - 1
            access = replace(access, span=Span(kernel.span.path, line, line))
        yield _Use(use.pointer, "read" if use.kind == "load" else "write", tail, index, access)


@lru_cache(maxsize=4096)  # the layers of a network have the same indexes
def _parsed(text: str | None) -> Index | None:
    try:
        return None if text is None else parse_index(text.replace("::", "."))
    except ValueError:
        return None


def _around(facts: CppFacts, line: int) -> tuple[list[Loop], bool]:
    """Return the loops around a line, outermost first, and whether they are the rest of a vectorised loop."""
    for nest in facts.nests:
        if nest.line <= line <= nest.last:
            loops = [loop for loop in nest.loops if loop.line <= line <= loop.last]
            tail = nest.kind == "tail" or any(loop.variable.endswith("_tail") for loop in loops)
            return sorted(loops, key=lambda loop: loop.depth), tail
    return [], False


def _in_loops(use: PointerUse, index: Index | None, loops: list[Loop]) -> GeneratedAccess:
    """How the loops of a C++ kernel move an access: what is consecutive, and which loop has stride 1."""
    looping = [loop for loop in loops if loop.trips != 1 or loop.step != 1]
    form: Literal["vector", "element"] = "vector" if use.vector else "element"
    if index is None:
        return GeneratedAccess(form)
    strides = {loop.variable: index.stride(loop.variable) for loop in looping}
    units = [loop for loop in reversed(looping) if strides[loop.variable] == 1]
    length = {loop.variable: replace(loop, step=1).trips for loop in loops}  # in elements, whatever the step
    if form == "vector":
        if not units:  # the elements of `tmpbuf`, or a vector that no loop moves
            return GeneratedAccess(form, contiguous=True)
        return GeneratedAccess(form, units[0].variable, 1, length[units[0].variable], contiguous=True)
    if not looping:
        return GeneratedAccess(form, contiguous=True)
    innermost = looping[-1].variable
    stride = strides[innermost]
    gathers = any(_GATHER.fullmatch(text) and innermost in names for text, names in index.opaque)
    if gathers or (stride == 0 and any(name.startswith("tmp") for name in index.names)):
        stride = INDIRECT
    base = _base(innermost)
    unit = next((loop.variable for loop in units if loop.variable != base), None)
    if unit is not None and _base(unit) == base:
        unit = None
    return GeneratedAccess(
        form,
        base,
        None if stride == PIECEWISE else stride,
        length.get(base, length[innermost]),
        None if stride == PIECEWISE else stride in (0, 1),
        _base(unit) if unit else None,
        length[unit] if unit else None,
    )


def _base(variable: str) -> str:
    """`x1` of `x1_inner`."""
    return variable.removesuffix("_inner").removesuffix("_tail")


def _in_block(index: Index | None, fastest: frozenset[str]) -> GeneratedAccess:
    """A block of a Triton kernel has no loops: its elements are consecutive along one of its axes or none."""
    strides = {name: index.stride(name) for name in sorted(fastest & index.names)} if index else {}
    if index is None or PIECEWISE in strides.values():
        return GeneratedAccess("block")
    unit = next((name for name, stride in strides.items() if stride == 1), None)
    if unit is not None:
        return GeneratedAccess("block", unit, 1, contiguous=True)
    if any(name.startswith("tmp") for name in index.names):
        return GeneratedAccess("block", None, INDIRECT, contiguous=False)
    if not strides:
        return GeneratedAccess("block", contiguous=True)
    name, stride = min(
        strides.items(), key=lambda item: abs(item[1]) if isinstance(item[1], int) else 1 << 62
    )
    return GeneratedAccess("block", name, stride, contiguous=False)
