"""Where the buffers of a graph lie, and what the graph returns: from the IR and the wrapper, read apart.

The IR says how a buffer was planned, the wrapper how it was allocated; a comparison needs both.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from inductor_probe.analysis.graph import index_of
from inductor_probe.model.code import Allocation
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim


@dataclass(frozen=True, slots=True)
class Placed:
    """A buffer: its layout as planned and as allocated, and where its memory comes from.

    `memory` is `new`, `reuse`, `view`, `alias`, `input`, or `none` for a buffer without memory of its own.
    """

    planned: BufferLayout | None
    allocated: BufferLayout | None
    memory: str | None

    @property
    def layout(self) -> BufferLayout | None:
        """The planned layout, completed from the allocated one."""
        if self.planned is None or self.planned.size is None:
            return self.allocated or self.planned
        if self.planned.dtype is None and self.allocated is not None:
            return replace(self.planned, dtype=self.allocated.dtype, device=self.allocated.device)
        return self.planned


@dataclass(frozen=True, slots=True)
class Returned:
    """A value that the graph returns. `buffer` is None for None and numbers; `view`: how it is looked at."""

    buffer: str | None
    text: str
    view: BufferLayout | None = None


def placed_buffers(graph: CompiledGraph) -> dict[str, Placed]:
    """Return every buffer and input of the graph."""
    index = index_of(graph)
    planned, buffers, allocations = index.nodes.layouts, index.nodes.buffers, index.allocations
    externs = graph.code.externs if graph.code else ()
    returned_by_calls = {text for call in externs for text in call.outputs}
    placed: dict[str, Placed] = {}
    for name in dict.fromkeys([*allocations, *planned, *buffers]):
        mutated = buffers[name].mutations[:1] if name in buffers else ()
        allocation = next((allocations[each] for each in (name, *mutated) if each in allocations), None)
        placed[name] = Placed(
            planned.get(name),
            allocation.layout if allocation else None,
            _memory(allocation, graph, name in returned_by_calls),
        )
    return placed


def _memory(allocation: Allocation | None, graph: CompiledGraph, filled: bool) -> str | None:
    if allocation is not None:
        return allocation.kind
    if graph.code is None:
        return None
    return "new" if filled else "none"


def returned_values(graph: CompiledGraph) -> tuple[Returned, ...]:
    """Return what the graph returns, in order; by the users of its buffers where there is no wrapper."""
    if graph.code is not None and graph.code.entry is not None:
        return tuple(_returned(text) for text in graph.code.returns)
    return tuple(Returned(name, name) for name in index_of(graph).nodes.returned)


def _returned(text: str) -> Returned:
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Returned(None, text)
    match node:
        case ast.Name(id=name):
            return Returned(name, text)
        case ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[ast.Name(id=name), size, stride, *rest]):
            offset = _dim(rest[0]) if rest else 0
            return Returned(name, text, BufferLayout("View", None, None, _dims(size), _dims(stride), offset))
    return Returned(None, text)


def _dims(node: ast.expr) -> tuple[Dim, ...] | None:
    return tuple(_dim(element) for element in node.elts) if isinstance(node, ast.Tuple | ast.List) else None


def _dim(node: ast.expr) -> Dim:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return ast.unparse(node)
