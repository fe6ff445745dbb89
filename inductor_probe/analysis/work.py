"""What kernels have to do: bytes by layouts and dependencies, flops by what operators count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Literal

from inductor_probe.analysis.graph import GraphIndex, index_of, once_per_graph
from inductor_probe.analysis.index import all_numbers, dims_sum, known_sum, value_of
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.links import launches, links, tensors_in
from inductor_probe.analysis.memory_format import ITEM_BYTES, element_bytes
from inductor_probe.analysis.operators import WAITS, operator
from inductor_probe.analysis.symbols import symbol_values
from inductor_probe.model.code import Role
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.ir import Buffer, BufferLayout, Dep, Dim, MemoryDep, SchedulerNode, StarDep, WeakDep
from inductor_probe.model.kernels import KernelLaunch, KernelRow, Passed
from inductor_probe.model.record import collected
from inductor_probe.model.span import Span
from inductor_probe.model.timing import FlopCount, KernelWork

_NAME = re.compile(r"[A-Za-z_]\w*")
_FAMILY = {"aten.addmm": "aten.mm", "aten.baddbmm": "aten.bmm"}
"""Inductor makes one of the other between the graph that ran and the one that it lowered."""
_MOVE_NOTHING = (VIEWS - {"lift_fresh_copy"}) | {
    *WAITS, "_conj", "_neg_view", "imag", "real", "view_as_complex", "resize_storage_bytes_", "set_",
    "shallow_copy_data_",
}  # fmt: skip
"""Library functions that give memory a view, a size or an owner, or wait for it.

The scheduler's `SetSourceTensorKernel` calls `aten.set_`, since torch 2.15 `aten.shallow_copy_data_`.
"""
_MKL_LINEAR = "_mkl_linear"
"""It is passed a weight that MKL packed, and the weight, and reads one of them (`ATen/native/mkl`). The
packed one has room for workspaces of MKL: 5.6 MiB for 64 x 64 elements.
"""
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def kernel_traffic(
    graph: CompiledGraph, launches: Sequence[KernelLaunch], nodes: Sequence[str]
) -> tuple[Dim | None, Dim | None]:
    """Return the bytes read and written over all launches by the generated kernel that runs `nodes`."""
    index = index_of(graph)
    leaves = index.nodes.named(nodes)
    read_elements = _reached_elements(index, leaves, "reads")
    written_elements = _reached_elements(index, leaves, "writes")
    names_of_nodes = {leaf.name for leaf in leaves}
    read: list[Dim | None] = []
    written: list[Dim | None] = []
    for launch in launches:
        for buffer, passed in once_passed(launch, ("in", "inout")).items():
            names = memory_names(index, buffer, names_of_nodes | read_elements.keys())
            in_place = passed.arg is not None and passed.arg.role == "inout"
            # Memory whose whole content the kernel itself made is not read from outside.
            if not in_place or any(index.nodes.producer.get(name) not in names_of_nodes for name in names):
                read.append(_reached_bytes(passed, names, read_elements))
        for buffer, passed in once_passed(launch, ("out", "inout")).items():
            names = memory_names(index, buffer, names_of_nodes)
            written.append(_reached_bytes(passed, names, written_elements))
    return _total(read), _total(written)


def call_traffic(
    graph: CompiledGraph, target: str, calls: Sequence[KernelLaunch]
) -> tuple[Dim | None, Dim | None]:
    """Return the bytes that calls of a library function read and write: what they are passed and return.

    Of a view that is passed its own elements count, and what one call is passed twice counts once. An
    argument that is mutated is read and written. Views of what is passed move nothing.
    """
    if operator(target).name in _MOVE_NOTHING:
        return 0, 0
    index, known = index_of(graph), _calls(graph)
    read: list[Dim | None] = []
    written: dict[str, Dim | None] = {}
    nodes: dict[str, SchedulerNode] = {}
    for call in calls:
        _, returned, names = known.get((target, call.span), (call, (), ()))
        own = {name: index.nodes.leaf[name] for name in names}
        buffers = {buffer.name: buffer for leaf in own.values() for buffer in leaf.outputs}
        outputs = {*returned, *buffers}
        passed = _passed_bytes(index, call.passed)
        # What writes into another buffer, as all_reduce_ does, has a buffer without memory for that.
        mutated = {name for buffer in buffers.values() for name in buffer.mutations if name not in buffers}
        if mutated or not buffers or not all(map(_is_view, buffers.values())):
            operands = [one for one in call.passed if one.text.removeprefix("out=") not in outputs]
            if operator(target).name == _MKL_LINEAR:
                del operands[1:2]
            read += _passed_bytes(index, operands).values()
        memory = {old: name for name in passed for old in index.memory_names(name)}
        for name in mutated:
            here = passed.get(memory.get(name, name))
            whole = element_bytes(index.layouts.get(name))
            written[f"{name} at {call.span.first}"] = whole if here is None else here
        nodes |= own
    has_results = False
    for leaf in nodes.values():
        for buffer in leaf.outputs:
            layout = index.layouts.get(buffer.name, buffer.layout)
            kind = layout.kind if layout is not None else None
            has_results |= kind == "MultiOutputLayout"  # its items are buffers of their own
            if kind not in ("MultiOutputLayout", "NoneLayout") and not _is_view(buffer):
                written.setdefault(buffer.name, element_bytes(layout))
    unknown = not written and (has_results or not nodes)
    return _total(read), None if unknown else _total([*written.values()])


def _is_view(buffer: Buffer) -> bool:
    """Whether a call returned its argument as this buffer, and did not write it into a part of another."""
    owns = buffer.layout is None or buffer.layout.kind != "NonOwningLayout"
    return bool(buffer.aliases) and owns


@once_per_graph
def _calls(
    graph: CompiledGraph,
) -> dict[tuple[str, Span], tuple[KernelLaunch, tuple[str, ...], tuple[str, ...]]]:
    """Return each library call, what it returns or is passed to write, and the unfused nodes that it may run.

    By its target and its line.
    """
    linked = links(graph).nodes.values()
    nodes = collected(((link.kernel, span), link.node) for link in linked for span in link.launches)
    outputs = {(call.target, call.span): call.outputs for call in graph.code.externs} if graph.code else {}
    return {
        (target, call.span): (call, outputs.get((target, call.span), ()), nodes.get((target, call.span), ()))
        for target, calls in launches(graph).items()
        if target not in index_of(graph).kernels
        for call in calls
    }


def _passed_bytes(index: GraphIndex, arguments: Iterable[Passed]) -> dict[str, Dim | None]:
    """Return the bytes that a call is passed of each buffer: of several views their sum, or all of it."""
    views: dict[str, dict[BufferLayout | None, None]] = {}
    for passed in arguments:
        for name, layout in tensors_in(passed, index.layouts):
            views.setdefault(name, {})[layout] = None
    return {
        name: _together([*map(element_bytes, layouts)], element_bytes(index.layouts.get(name)))
        for name, layouts in views.items()
    }


def _together(parts: Sequence[Dim | None], whole: Dim | None) -> Dim | None:
    """Return the bytes of parts of a buffer, of several no more than it has."""
    total = _total(parts)
    several = len(parts) > 1 and isinstance(total, int) and isinstance(whole, int)
    return min(total, whole) if several else total  # type: ignore[type-var]  # both are numbers


def node_traffic(graph: CompiledGraph, nodes: Sequence[str]) -> int | None:
    """Return the bytes that unfused nodes read and write together, what they only pass on left out.

    Each buffer counts once a direction, with the elements that are reached, and what the nodes themselves
    made is not read from outside; of a library call what `call_traffic` says. None where a size is not known.
    """
    index, members = index_of(graph), set(nodes)
    called: dict[str, dict[Span, KernelLaunch]] = {}
    leaves = []
    for node in nodes:
        calls = _library_calls(graph, node)
        for target, made in calls.items():
            called.setdefault(target, {}).update({call.span: call for call in made})
        if not calls and node in index.nodes.leaf:
            leaves.append(index.nodes.leaf[node])
    values = symbol_values(graph)
    sizes: list[Dim | None] = [
        value_of(size, values)
        for target, made in called.items()
        for size in call_traffic(graph, target, tuple(made.values()))
    ]
    reads, writes = (_reached_of(graph, leaves, side).items() for side in ("reads", "writes"))
    sizes += [size for name, size in reads if index.nodes.producer.get(name) not in members]
    memory: dict[str, list[int | None]] = {}
    for name, size in writes:
        if not _stays_inside(graph, name, members):
            memory.setdefault(_mutated(index, name), []).append(size)
    sizes += [_together(parts, _buffer_bytes(graph, name)) for name, parts in memory.items()]
    return known_sum(sizes) if leaves or called else None


def _library_calls(graph: CompiledGraph, node: str) -> dict[str, tuple[KernelLaunch, ...]]:
    """Return the calls that run a node, by their target: none where a generated kernel does."""
    link = links(graph).nodes.get(node)
    if link is None or link.kernel is None or link.kernel in index_of(graph).kernels:
        return {}
    calls = (_calls(graph).get((link.kernel, span)) for span in link.launches)
    return {link.kernel: tuple(call[0] for call in calls if call is not None)}


def counted_nodes(graph: CompiledGraph, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return nodes, in the place of those that a library call runs the first of them.

    What a call moves is all of what each of its nodes moves: it counts once for all of them.
    """
    counted = []
    for node in nodes:
        calls = _library_calls(graph, node)
        run = [_calls(graph)[target, call.span][2] for target, made in calls.items() for call in made]
        counted.append(run[0][0] if run and run[0] else node)
    return tuple(dict.fromkeys(counted))


def argument_bytes(graph: CompiledGraph, text: str) -> Dim | None:
    """Return the bytes of the tensors in an argument of a call: `buf0`, a view, a list; None if not known."""
    passed = Passed(None, text if text.startswith(("[", "(")) else f"[{text}]")
    sizes = _passed_bytes(index_of(graph), [passed])
    return _total(sizes.values()) if sizes else None


def parts_passed(graph: CompiledGraph, node: str) -> dict[str, tuple[BufferLayout, ...]]:
    """Return of which buffers the library calls of a node are passed a part alone, and its views."""
    index, parts = index_of(graph), dict[str, tuple[BufferLayout, ...]]()
    arguments = [
        passed for made in _library_calls(graph, node).values() for call in made for passed in call.passed
    ]
    for name, size in _passed_bytes(index, arguments).items():
        whole = element_bytes(index.layouts.get(name))
        if isinstance(size, int) and isinstance(whole, int) and size < whole:
            tensors = (tensor for passed in arguments for tensor in tensors_in(passed, index.layouts))
            views = (layout for buffer, layout in tensors if buffer == name and layout is not None)
            parts[name] = tuple(dict.fromkeys(views))
    return parts


def _reached_of(
    graph: CompiledGraph, leaves: Iterable[SchedulerNode], side: Literal["reads", "writes"]
) -> dict[str, int | None]:
    """Return the bytes of each buffer that nodes reach; None where that is not known."""
    sizes: dict[str, int | None] = {}
    for name, elements in _reached_elements(index_of(graph), leaves, side).items():
        size = sizes[name] = _buffer_bytes(graph, name)
        layout = _layout(index_of(graph), name)
        if size is not None and elements is not None and layout is not None:
            sizes[name] = min(size, elements * ITEM_BYTES[layout.dtype or ""])
    return sizes


def shared_bytes(graph: CompiledGraph, first: Sequence[str], second: Sequence[str]) -> int | None:
    """Return the bytes of the buffers that both groups of unfused nodes use, each once."""
    index = index_of(graph).nodes
    sides = [
        {
            dep.name
            for leaf in index.named(group)
            for dep in (*leaf.reads, *leaf.writes)
            if not isinstance(dep, WeakDep)
        }
        for group in (first, second)
    ]
    return known_sum(_buffer_bytes(graph, name) for name in sides[0] & sides[1])


def buffer_traffic(graph: CompiledGraph, buffer: str) -> int | None:
    """Return the bytes of a buffer that its writer and each of its readers reach: none in registers."""
    index, whole = index_of(graph), _buffer_bytes(graph, buffer)
    if whole is None:
        return None
    if not is_stored(graph, buffer):
        return 0
    writer = index.nodes.producer.get(buffer)
    uses: list[tuple[str, Literal["reads", "writes"]]] = [(writer, "writes")] if writer else []
    uses += [(reader, "reads") for reader in index.nodes.readers.get(buffer, ())]
    total = 0
    for node, side in uses:
        if calls := _library_calls(graph, node):
            for target, made in calls.items():
                if call_traffic(graph, target, made) != (0, 0):
                    passed = _passed_bytes(index, (one for call in made for one in call.passed)).get(buffer)
                    total += passed if isinstance(passed, int) else whole
        else:
            reached = _reached_of(graph, [index.nodes.leaf[node]], side).get(buffer)
            total += whole if reached is None else reached
    return total


def is_stored(graph: CompiledGraph, buffer: str) -> bool:
    """Whether a buffer has memory: one that a kernel writes and is passed to none is in its registers.

    `Scheduler.remove_kernel_local_buffers` of torch drops what all readers were fused with.
    """
    index = index_of(graph)
    link = links(graph).nodes.get(index.nodes.producer.get(buffer, ""))
    if link is None or link.kernel not in index.kernels or _mutated(index, buffer) != buffer:
        return True
    return buffer in _passed_buffers(graph)


@once_per_graph
def _passed_buffers(graph: CompiledGraph) -> frozenset[str]:
    calls = (call for made in launches(graph).values() for call in made)
    return frozenset(passed.buffer for call in calls for passed in call.passed if passed.buffer is not None)


def _mutated(index: GraphIndex, name: str) -> str:
    """Return the buffer whose memory has this name since it was mutated; `name` where none was."""
    older = name
    while (known := index.nodes.buffers.get(older)) is not None and known.mutations:
        older = known.mutations[0]
    return older


def _stays_inside(graph: CompiledGraph, buffer: str, nodes: set[str]) -> bool:
    """Whether only these nodes write and read a buffer: then fused code keeps it in registers.

    A buffer that a mutation renamed shares its memory with the one before: that memory is written.
    """
    index = index_of(graph)
    if buffer in index.returned or index.nodes.producer.get(buffer) not in nodes:
        return False
    if _mutated(index, buffer) != buffer:
        return False
    return set(index.nodes.readers.get(buffer, ())) <= nodes and bool(index.nodes.readers.get(buffer))


def _buffer_bytes(graph: CompiledGraph, buffer: str) -> int | None:
    """Return the bytes of a buffer, symbolic sizes as they were when the graph was compiled."""
    layout = _layout(index_of(graph), buffer)
    if layout is not None and layout.dtype not in ITEM_BYTES:
        return None
    return value_of(element_bytes(layout), symbol_values(graph))


def _layout(index: GraphIndex, buffer: str) -> BufferLayout | None:
    """Return the layout of a buffer; of the name that a call gives what it mutates, that of the memory."""
    layout, known = index.layouts.get(buffer), index.nodes.buffers.get(buffer)
    if layout is None and known is not None and known.mutations:
        return index.layouts.get(known.mutations[0])
    return layout


def memory_names(index: GraphIndex, buffer: str, known: set[str]) -> list[str]:
    """The names that memory had, and since it was mutated those that are `known`, or whose nodes are."""
    names = index.memory_names(buffer)
    mutated = (new for name in names for new in index.nodes.mutated_as.get(name, ()))
    return [*names, *(name for name in mutated if name in known or index.nodes.producer.get(name) in known)]


def once_passed(launch: KernelLaunch, roles: tuple[Role, ...]) -> dict[str, Passed]:
    """Return the buffers that are passed for parameters of these roles, each once."""
    return {
        passed.buffer: passed
        for passed in launch.passed
        if passed.buffer is not None and passed.arg is not None and passed.arg.role in roles
    }


def _reached_elements(
    index: GraphIndex, leaves: Iterable[SchedulerNode], side: Literal["reads", "writes"]
) -> dict[str, int | None]:
    """Return how many elements of each buffer some nodes reach at most; None where that is not known."""
    elements: dict[str, int | None] = {}
    deps: dict[Dep, SchedulerNode] = {dep: leaf for leaf in leaves for dep in getattr(leaf, side)}
    for dep, node in deps.items():
        if not isinstance(dep, WeakDep) and not _is_order(index, dep, node):
            number, known = _elements(dep, node), elements.get(dep.name, 0)
            elements[dep.name] = None if number is None or known is None else known + number
    return elements


def _is_order(index: GraphIndex, dep: Dep, leaf: SchedulerNode) -> bool:
    """Whether a node only follows what wrote the memory that it mutates: `Scheduler.compute_dependencies`."""
    mutated = (_mutated(index, name) for buffer in leaf.outputs for name in buffer.mutations)
    return isinstance(dep, StarDep) and _mutated(index, dep.name) in mutated


def _reached_bytes(passed: Passed, names: Iterable[str], elements: Mapping[str, int | None]) -> Dim | None:
    """Return the bytes of what is passed that are reached; all of it where that is not known."""
    size = element_bytes(passed.layout)
    reached = all_numbers(elements[name] for name in names if name in elements)
    if passed.layout is None or not isinstance(size, int) or not reached:
        return size
    return min(size, sum(reached) * ITEM_BYTES[passed.layout.dtype or ""])


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
    numbers = all_numbers(sizes)
    return None if numbers is None else prod(numbers)


@lru_cache(maxsize=4096)  # the layers of a network reach their buffers alike
def _names(index: str) -> frozenset[str]:
    return frozenset(_NAME.findall(index))


def _total(sizes: Iterable[Dim | None]) -> Dim | None:
    sizes = tuple(sizes)
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
    bound = symbol_values(graph) | dict(sizes or {})
    work = []
    for row in (row for row in rows if row.launches):
        counted = [name for name in row.fx if name in (counts if _is_product(row) else in_loops)]
        leaves = index.nodes.named(row.nodes)
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
