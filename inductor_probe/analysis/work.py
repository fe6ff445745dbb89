"""What each kernel has to do: bytes by the scheduler's dependencies, flops by what its operators count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.symbols import symbols, value_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.ir import MemoryDep
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.timing import FlopCount, KernelWork

_FAMILY = {"aten.addmm": "aten.mm", "aten.baddbmm": "aten.bmm"}
"""Inductor makes one of the other between the graph that ran and the one that it lowered."""
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def kernel_work(
    graph: CompiledGraph,
    rows: Sequence[KernelRow],
    flops: Sequence[FlopCount] | None,
    sizes: Mapping[str, int] | None = None,
) -> tuple[KernelWork, ...]:
    """Return the work of each kernel that is launched, in the order of `rows`.

    Args:
        graph: what `rows` are of.
        rows: see `kernel_rows`.
        flops: of each operator that registers a count, in the order of the graph.
        sizes: symbolic sizes that are bound otherwise than they were when the graph was compiled.
    """
    counted = flops_by_node(graph.fx, flops) if graph.fx is not None and flops is not None else {}
    index = index_of(graph)
    leaves, nodes = index.nodes.leaf, index.fx
    bound = {symbol.name: symbol.value for symbol in symbols(graph) if symbol.value is not None}
    bound.update(sizes or {})
    found = []
    for row in rows:
        if not row.launches:
            continue
        own = [name for name in row.fx if name in counted]
        deps = [dep for name in row.nodes if name in leaves for dep in leaves[name].reads]
        read, written = value_of(row.bytes_read, bound), value_of(row.bytes_written, bound)
        found.append(
            KernelWork(
                name=row.name,
                moved=read + written if read is not None and written is not None else None,
                flops=sum(counted[name] for name in own) if own else None,
                dtype=next((dtype for name in own if (dtype := _dtype(nodes[name]))), None),
                indirect=any(isinstance(dep, MemoryDep) and _loaded(dep) for dep in deps),
            )
        )
    return tuple(found)


def flops_by_node(graph: FxGraph, flops: Sequence[FlopCount]) -> dict[str, int]:
    """Return the count of each FX node, where the operators that ran are those of the graph one by one.

    Empty where they are not: an operator that runs as others, or a loop.
    """
    counting = {_FAMILY.get(count.operator, count.operator) for count in flops}
    own = [(node.name, packet) for node in graph.nodes if (packet := _packet(node)) in counting]
    if [packet for _, packet in own] != [_FAMILY.get(count.operator, count.operator) for count in flops]:
        return {}
    return {name: count.flops for (name, _), count in zip(own, flops, strict=True)}


def _packet(node: FxNode) -> str:
    """`aten.mm` of `torch.ops.aten.mm.default`, and of its kin that counts the same."""
    packet = operator(node.target).packet
    return _FAMILY.get(packet, packet)


def _dtype(node: FxNode) -> str | None:
    """`float32` of a node of type `f32[4, 3]`."""
    return _DTYPES.get((node.type or "").partition("[")[0])


def _loaded(dep: MemoryDep) -> bool:
    return "tmp" in dep.index or "indirect" in dep.index
