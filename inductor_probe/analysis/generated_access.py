"""How the generated kernels reach buffers: what codegen made of the accesses of the IR.

The loops of the IR are not those of the kernel. Codegen vectorises an outer loop of a reduction, transposes
tiles of 16 by 16, and keeps values in registers, so a stride along the innermost loop of the IR tells nothing
about the kernel:

    IR       op10 reads buf9 at p0 + 32*p1, innermost loop p1           stride 32
    kernel   for x0 by 16 { for x1 { loadu(in_ptr0 + x0 + 32L*x1) } }   a vector of 16 consecutive elements
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import INDIRECT, PIECEWISE, Index, parse_index
from inductor_probe.analysis.launches import launches
from inductor_probe.backends import backend_called
from inductor_probe.backends.triton import fastest_variables
from inductor_probe.model.code import CppFacts, Kernel, Loop, PointerUse, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Access, GeneratedAccess
from inductor_probe.model.links import Links
from inductor_probe.model.span import Span

_GATHER = re.compile(r"tmp\w*\[\w+\]")
"""`tmp19[x2_inner]`: one element of a vector of indices."""
_WITHIN = ("_inner", "_tail")
"""Ends of the variables that loop over the elements of a vector or a tile (`x1_inner`)."""


@dataclass(frozen=True, slots=True)
class _Use:
    """An access in a kernel's text. `gathers`: each element of a vector has an index of its own."""

    pointer: str
    direction: Literal["read", "write"]
    tail: bool
    index: Index | None
    made: GeneratedAccess
    gathers: bool = False


class GeneratedAccesses:
    """Answers for one graph; a kernel's text is read when the first access in it is asked for."""

    def __init__(self, graph: CompiledGraph, linked: Links) -> None:
        self._launches = launches(graph)
        self._links = linked
        self._index = index_of(graph)
        self._uses: dict[str, tuple[_Use, ...]] = {}

    def of(
        self, access: Access, buffer: str, direction: Literal["read", "write"], local: bool
    ) -> GeneratedAccess | None:
        """Return how the kernel that runs the node makes this access, None where that cannot be told.

        Args:
            access: of a node's loop body. buffer, direction: what it reaches.
            local: the wrapper has no memory for the buffer.
        """
        kernel = self._index.kernels.get(access.kernel or "")
        if kernel is None or not isinstance(kernel.details, CppFacts | TritonFacts):
            return None
        pointers = self._pointers(access.node, kernel.name, buffer)
        if not pointers:
            return GeneratedAccess("none") if local else None
        if kernel.name not in self._uses:
            self._uses[kernel.name] = tuple(_read(kernel))
        uses = [use for use in self._uses[kernel.name] if use.pointer in pointers]
        uses = [use for use in uses if use.direction == direction]
        if not uses:
            return GeneratedAccess("none") if direction == "read" else None
        return _same(uses, access)

    def _pointers(self, node: str, kernel: str, buffer: str) -> frozenset[str]:
        """The parameters through which the kernel reaches a buffer, by any name that the memory had."""
        link = self._links.nodes.get(node)
        calls = self._launches.get(kernel, ())
        linked = [call for call in calls if link is not None and call.span in link.launches]
        passed = [one for call in linked or calls for one in call.passed if one.arg and one.buffer]
        exact = frozenset(one.arg.name for one in passed if one.arg and one.buffer == buffer)
        if exact:
            return exact
        mutated_as = self._index.nodes.mutated_as
        return frozenset(
            one.arg.name
            for one in passed
            if one.arg
            and one.buffer
            and any(
                buffer in (name, *mutated_as.get(name, ())) for name in self._index.memory_names(one.buffer)
            )
        )


def _same(uses: list[_Use], access: Access) -> GeneratedAccess | None:
    """Of the uses of a pointer, return the one that this access became.

    Those whose index has the same strides are preferred, then those that are not in the rest of a vectorised
    loop. Where some are contiguous and others are not, the access gets the benefit of the doubt.
    """
    strides = _strides_of_ir(access)
    uses = [use for use in uses if use.index is not None and _strides(use.index) == strides] or uses
    uses = [use for use in uses if not use.tail] or uses
    made = [_with_indirect(use, access) for use in uses]
    for verdict in (True, None, False):
        if found := next((one for one in made if one.contiguous is verdict), None):
            return found
    return None


def _with_indirect(use: _Use, access: Access) -> GeneratedAccess:
    """Whether loaded values in an index vary with the innermost loop, the IR says: the text does not."""
    made = use.made
    if made.stride != INDIRECT or use.gathers:
        return made
    varies = _variable(made, access)
    if varies is None:
        return made if access.pattern.kind == "indirect" else replace(made, stride=None, contiguous=None)
    if any(varies in names for _, names in access.indirect):
        return made
    return replace(made, stride=0, contiguous=True)


def _variable(made: GeneratedAccess, access: Access) -> str | None:
    """The IR's variable of a C++ loop: both are numbered from the outermost on, and have as many steps."""
    looping = [(name, steps) for name, steps in access.ranges if steps != 1]
    number = (made.loop or "").lstrip("xi")
    if not number.isdecimal() or int(number) >= len(looping) or made.form != "element":
        return None
    name, steps = looping[int(number)]
    return name if steps == made.steps else None


def _strides_of_ir(access: Access) -> tuple[str, ...]:
    steps = dict(access.ranges)
    return tuple(
        sorted(
            str(stride)
            for name, stride in access.strides
            if steps[name] != 1 and stride not in (0, INDIRECT, PIECEWISE)
        )
    )


def _strides(index: Index) -> tuple[str, ...]:
    """The strides of a kernel's index, without loaded values and the variables within vectors."""
    return tuple(
        sorted(
            str(stride)
            for name in index.names
            if not name.startswith("tmp") and not name.endswith(_WITHIN)
            if (stride := index.stride(name)) not in (0, PIECEWISE)
        )
    )


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
            made = _in_loops(use, index, loops)
        else:
            made = _in_block(index, fastest)
        if kernel.span is not None:
            line = kernel.span.first + use.line - 1
            made = replace(made, span=Span(kernel.span.path, line, line))
        gathers = index is not None and any(_GATHER.fullmatch(text) for text, _ in index.opaque)
        yield _Use(use.pointer, "read" if use.how == "load" else "write", tail, index, made, gathers)


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
    looping = [loop for loop in loops if loop.trips != 1 or loop.step != 1]
    form: Literal["vector", "element"] = "vector" if use.vector else "element"
    if index is None:
        return GeneratedAccess(form)
    strides = {loop.variable: index.stride(loop.variable) for loop in looping}
    if form == "vector":
        unit = next((loop for loop in reversed(looping) if strides[loop.variable] == 1), None)
        if unit is None:  # the elements of `tmpbuf`, or a vector that no loop moves
            return GeneratedAccess(form, contiguous=True)
        return GeneratedAccess(form, unit.variable, 1, _length(unit), contiguous=True)
    if not looping:
        return GeneratedAccess(form, contiguous=True)
    innermost = looping[-1]
    stride = strides[innermost.variable]
    gathers = any(_GATHER.fullmatch(text) and innermost.variable in names for text, names in index.opaque)
    if gathers or (stride == 0 and any(name.startswith("tmp") for name in index.names)):
        stride = INDIRECT
    base = _base(innermost.variable)
    other = next(
        (loop for loop in reversed(looping) if strides[loop.variable] == 1 and loop.variable != base), None
    )
    if other is not None and _base(other.variable) == base:
        other = None
    return GeneratedAccess(
        form,
        base,
        None if stride == PIECEWISE else stride,
        _length(next((loop for loop in loops if loop.variable == base), innermost)),
        None if stride == PIECEWISE else stride in (0, 1),
        _base(other.variable) if other else None,
        _length(other) if other else None,
    )


def _base(variable: str) -> str:
    """`x1` of `x1_inner`."""
    return variable.removesuffix("_inner").removesuffix("_tail")


def _length(loop: Loop) -> Dim:
    """How many elements a loop runs over, whatever its step."""
    return replace(loop, step=1).trips


def _in_block(index: Index | None, fastest: frozenset[str]) -> GeneratedAccess:
    """A block of a Triton kernel has no loops: its elements are consecutive along one of its axes or none."""
    if index is None:
        return GeneratedAccess("block")
    strides = {name: index.stride(name) for name in sorted(fastest & index.names)}
    if PIECEWISE in strides.values():
        return GeneratedAccess("block")
    unit = next((name for name, stride in strides.items() if stride == 1), None)
    if unit is not None:
        return GeneratedAccess("block", unit, 1, contiguous=True)
    if any(name.startswith("tmp") for name in index.names):
        return GeneratedAccess("block", None, INDIRECT, contiguous=False)
    if not strides:
        return GeneratedAccess("block", contiguous=True)
    name, stride = min(strides.items(), key=lambda one: abs(one[1]) if isinstance(one[1], int) else 1 << 62)
    return GeneratedAccess("block", name, stride, contiguous=False)
