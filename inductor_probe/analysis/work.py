"""What kernels have to do: bytes by layouts and dependencies, flops by what operators count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Literal

from inductor_probe.analysis.graph import GraphIndex, index_of
from inductor_probe.analysis.index import dims_sum, value_of
from inductor_probe.analysis.memory_format import ITEM_BYTES, size_bytes
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.symbols import symbols
from inductor_probe.model.code import Role
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.ir import Dep, Dim, MemoryDep, SchedulerNode, WeakDep
from inductor_probe.model.kernels import KernelLaunch, KernelRow, Passed
from inductor_probe.model.timing import FlopCount, KernelWork

_NAME = re.compile(r"[A-Za-z_]\w*")
_FAMILY = {"aten.addmm": "aten.mm", "aten.baddbmm": "aten.bmm"}
"""Inductor makes one of the other between the graph that ran and the one that it lowered."""
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def kernel_traffic(
    graph: CompiledGraph, launches: Sequence[KernelLaunch], nodes: Sequence[str]
) -> tuple[Dim | None, Dim | None]:
    """Return the bytes read and written over all launches by the generated kernel that runs `nodes`."""
    index = index_of(graph)
    leaves = [index.nodes.leaf[node] for node in nodes if node in index.nodes.leaf]
    read_elements, written_elements = _reached_elements(leaves, "reads"), _reached_elements(leaves, "writes")
    names_of_nodes = {leaf.name for leaf in leaves}
    read: list[Dim | None] = []
    written: list[Dim | None] = []
    for launch in launches:
        for buffer, passed in once_passed(launch, ("in", "inout")).items():
            names = memory_names(index, buffer, names_of_nodes)
            in_place = passed.arg is not None and passed.arg.role == "inout"
            # Memory whose whole content the kernel itself made is not read from outside.
            if not in_place or any(index.nodes.producer.get(name) not in names_of_nodes for name in names):
                read.append(_reached_bytes(passed, names, read_elements))
        for buffer, passed in once_passed(launch, ("out", "inout")).items():
            names = memory_names(index, buffer, names_of_nodes)
            written.append(_reached_bytes(passed, names, written_elements))
    return _total(read), _total(written)


def call_traffic(
    graph: CompiledGraph, launches: Sequence[KernelLaunch], nodes: Sequence[str]
) -> tuple[Dim | None, Dim | None]:
    """Return the bytes that library calls are passed to read, and those that `nodes` get from them."""
    index = index_of(graph)
    buffers = [
        buffer for node in nodes if node in index.nodes.leaf for buffer in index.nodes.leaf[node].outputs
    ]
    outputs = {buffer.name: index.layouts.get(buffer.name, buffer.layout) for buffer in buffers}
    # What writes into another buffer, as all_reduce_ does, has a buffer without memory for that.
    mutated = {name for buffer in buffers for name in buffer.mutations if name not in outputs}
    read = [
        size_bytes(passed.layout)
        for launch in launches
        for passed in {item.buffer: item for item in launch.passed if item.buffer is not None}.values()
        if passed.buffer not in outputs
    ]
    written = [
        size_bytes(layout)
        for layout in (*outputs.values(), *map(index.layouts.get, mutated))
        # The items of the first are buffers of their own, and the second has no memory.
        if layout is None or layout.kind not in ("MultiOutputLayout", "NoneLayout")
    ]
    return _total(read), _total(written) if written else None


def node_traffic(graph: CompiledGraph, nodes: Sequence[str]) -> int | None:
    """Return the bytes that unfused nodes read and write together, what they only pass on left out.

    Each buffer counts once a direction, with the elements that are reached. None where a size is not known.
    """
    index, members = index_of(graph).nodes, set(nodes)
    leaves = [index.leaf[node] for node in nodes if node in index.leaf]
    total = 0
    for side in ("reads", "writes"):
        for name, elements in _reached_elements(leaves, side).items():
            if _stays_inside(graph, name, members):
                continue
            size = _buffer_bytes(graph, name)
            if size is None:
                return None
            layout = index_of(graph).layouts[name]
            item = ITEM_BYTES[layout.dtype or ""]
            total += size if elements is None else min(size, elements * item)
    return total if leaves else None


def shared_bytes(graph: CompiledGraph, first: Sequence[str], second: Sequence[str]) -> int | None:
    """Return the bytes of the buffers that both groups of unfused nodes use, each once."""
    index = index_of(graph).nodes
    sides = [
        {
            dep.name
            for node in group
            if node in index.leaf
            for dep in (*index.leaf[node].reads, *index.leaf[node].writes)
            if not isinstance(dep, WeakDep)
        }
        for group in (first, second)
    ]
    sizes = [_buffer_bytes(graph, name) for name in sides[0] & sides[1]]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def buffer_traffic(graph: CompiledGraph, buffer: str) -> int | None:
    """Return the bytes of a buffer, once for its write and once for each node that reads it."""
    index = index_of(graph).nodes
    size = _buffer_bytes(graph, buffer)
    uses = (buffer in index.producer) + len(index.readers.get(buffer, ()))
    return None if size is None else size * uses


def _stays_inside(graph: CompiledGraph, buffer: str, nodes: set[str]) -> bool:
    """Whether only these nodes write and read a buffer: then fused code keeps it in registers."""
    index = index_of(graph)
    if buffer in index.returned or index.nodes.producer.get(buffer) not in nodes:
        return False
    return set(index.nodes.readers.get(buffer, ())) <= nodes and bool(index.nodes.readers.get(buffer))


def _buffer_bytes(graph: CompiledGraph, buffer: str) -> int | None:
    """Return the bytes of a buffer, symbolic sizes as they were when the graph was compiled."""
    layout = index_of(graph).layouts.get(buffer)
    if layout is not None and layout.dtype not in ITEM_BYTES:
        return None
    values = {symbol.name: symbol.value for symbol in symbols(graph) if symbol.value is not None}
    return value_of(size_bytes(layout), values)


def memory_names(index: GraphIndex, buffer: str, nodes: set[str]) -> list[str]:
    """The names that memory had, with those under which the kernel's nodes know it once they mutated it."""
    names = index.memory_names(buffer)
    mutated = (new for name in names for new in index.nodes.mutated_as.get(name, ()))
    return [*names, *(name for name in mutated if index.nodes.producer.get(name) in nodes)]


def once_passed(launch: KernelLaunch, roles: tuple[Role, ...]) -> dict[str, Passed]:
    """Return the buffers that are passed for parameters of these roles, each once."""
    return {
        passed.buffer: passed
        for passed in launch.passed
        if passed.buffer is not None and passed.arg is not None and passed.arg.role in roles
    }


def _reached_elements(
    leaves: Iterable[SchedulerNode], side: Literal["reads", "writes"]
) -> dict[str, int | None]:
    """Return how many elements of each buffer some nodes reach at most; None where that is not known."""
    elements: dict[str, int | None] = {}
    deps: dict[Dep, SchedulerNode] = {dep: leaf for leaf in leaves for dep in getattr(leaf, side)}
    for dep, node in deps.items():
        if not isinstance(dep, WeakDep):
            number, known = _elements(dep, node), elements.get(dep.name, 0)
            elements[dep.name] = None if number is None or known is None else known + number
    return elements


def _reached_bytes(passed: Passed, names: Iterable[str], elements: Mapping[str, int | None]) -> Dim | None:
    """Return the bytes of what is passed that are reached; all of it where that is not known."""
    size = size_bytes(passed.layout)
    reached = [elements[name] for name in names if name in elements]
    numbers = [number for number in reached if number is not None]
    if passed.layout is None or not isinstance(size, int) or not reached or len(numbers) < len(reached):
        return size
    return min(size, sum(numbers) * ITEM_BYTES[passed.layout.dtype or ""])


def _elements(dep: Dep, leaf: SchedulerNode) -> int | None:
    """As many as there are steps of the loops that the index varies with: 32 of `c0 + 8*c1` over 8 and 4.

    With an indirect index they are all loops of the node: the dependency names only some.
    """
    if not isinstance(dep, MemoryDep):
        return None
    names = _names(dep.index)
    sizes: list[Dim] = [size for name, size in dep.ranges if name in names]
    if any(name.startswith(("tmp", "indirect")) for name in names):
        if leaf.sizes is None:
            return None
        sizes = [size for group in leaf.sizes for size in group]
    numbers = [size for size in sizes if isinstance(size, int)]
    return prod(numbers) if len(numbers) == len(sizes) else None


@lru_cache(maxsize=4096)  # the layers of a network reach their buffers alike
def _names(index: str) -> frozenset[str]:
    return frozenset(_NAME.findall(index))


def _total(sizes: list[Dim | None]) -> Dim | None:
    known = [size for size in sizes if size is not None]
    return dims_sum(known) if len(known) == len(sizes) else None


def kernel_work(
    graph: CompiledGraph,
    rows: Sequence[KernelRow],
    flops: Sequence[FlopCount] | None,
    sizes: Mapping[str, int] | None = None,
) -> tuple[KernelWork, ...]:
    """Return the work of each kernel that is launched, in the order of `rows`: see `kernel_rows`.

    `flops` are of each operator that registers a count, in the order of the graph; `sizes` are symbolic ones
    that are bound otherwise than they were when the graph was compiled.
    """
    counts = flops_by_node(graph.fx, flops) if graph.fx is not None and flops is not None else {}
    in_loops = counts_in_loops(rows, counts)
    index = index_of(graph)
    bound = {symbol.name: symbol.value for symbol in symbols(graph) if symbol.value is not None}
    bound.update(sizes or {})
    work = []
    for row in (row for row in rows if row.launches):
        counted = [name for name in row.fx if name in (counts if _is_product(row) else in_loops)]
        leaves = [index.nodes.leaf[name] for name in row.nodes if name in index.nodes.leaf]
        read, written = value_of(row.bytes_read, bound), value_of(row.bytes_written, bound)
        dtypes = (_DTYPES.get((index.fx[name].type or "").partition("[")[0]) for name in counted)
        indices = [dep.index for leaf in leaves for dep in leaf.reads if isinstance(dep, MemoryDep)]
        work.append(
            KernelWork(
                name=row.name,
                moved=read + written if read is not None and written is not None else None,
                flops=sum(counts[name] for name in counted) if counted else None,
                dtype=next(filter(None, dtypes), None),
                indirect=any("tmp" in index or "indirect" in index for index in indices),
            )
        )
    return tuple(work)


def counts_in_loops(rows: Sequence[KernelRow], counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of operators that generated loops compute: those that nothing else is launched for.

    Kernels that lay out a convolution's operands (`cpp_fused_convolution_0` around
    `extern_kernels.convolution`) have the FX node of the convolution for their origin, and do none of its
    operations.
    """
    elsewhere = {name for row in rows if row.launches and _is_product(row) for name in row.fx}
    return {name: count for name, count in counts.items() if name not in elsewhere}


def _is_product(row: KernelRow) -> bool:
    """Whether a row is a library call or a template, which computes an operator as a whole."""
    return row.backend == "extern" or row.kind == "template"


def flops_by_node(graph: FxGraph, flops: Sequence[FlopCount]) -> dict[str, int]:
    """Return the count of each FX node, where the operators that ran are those of the graph one by one.

    Empty where they are not: an operator that runs as others, or a loop.
    """
    operators = [_FAMILY.get(count.operator, count.operator) for count in flops]
    nodes = [(node.name, packet) for node in graph.nodes if (packet := _packet(node)) in operators]
    if [packet for _, packet in nodes] != operators:
        return {}
    return {name: count.flops for (name, _), count in zip(nodes, flops, strict=True)}


def _packet(node: FxNode) -> str:
    """`aten.mm` of `torch.ops.aten.mm.default`, and of its kin that counts the same."""
    packet = operator(node.target).packet
    return _FAMILY.get(packet, packet)
