"""Which kernel runs a node, and which FX node and line of the user's a buffer came from.

Only what is proved is linked: a kernel is linked to a node when a launch passes it the node's output to
write, or when nothing else could run it. Where several FX nodes are possible they are all named.
"""

from __future__ import annotations

import re

from inductor_probe.model.code import Launch, OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.layouts import Origin
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.span import Span

_NAME = re.compile(r"[A-Za-z_]\w*")
_VIEW = re.compile(r"reinterpret_tensor\((\w+),")
_NO_KERNEL = ("NopKernelSchedulerNode",)


def buffer_in(text: str) -> str:
    """Return the buffer that a launch argument names: `reinterpret_tensor(buf3, ...)` names buf3."""
    match = _VIEW.match(text)
    return match[1] if match else text


def node_kernels(graph: CompiledGraph) -> dict[str, str]:
    """Return the kernel of each unfused node that one could be linked to."""
    if graph.code is None:
        return {}
    writers = _writers(graph.code)
    linked: dict[str, str] = {}
    unlinked: list[SchedulerNode] = []
    for top in graph.nodes:
        leaves = list(top.leaves())
        for leaf in leaves:
            kernel = leaf.kernel or next(
                (writers[name] for name in _written_names(leaf) if name in writers), None
            )
            if kernel:
                linked[leaf.name] = kernel
        kernels = {linked[leaf.name] for leaf in leaves if leaf.name in linked}
        for leaf in leaves:
            if leaf.name not in linked and len(kernels) == 1:  # fused: they run together
                linked[leaf.name] = next(iter(kernels))
            elif leaf.name not in linked and leaf.kind not in _NO_KERNEL:
                unlinked.append(leaf)
    generated = graph.code.kernels
    if len(generated) == 1:  # whatever is not a library call runs in the only kernel there is
        linked.update({leaf.name: generated[0].name for leaf in unlinked if leaf.body is not None})
    return linked


def _written_names(node: SchedulerNode) -> list[str]:
    """Buffers a node writes; one that mutates an input is launched with the input."""
    return [name for buffer in node.outputs for name in (buffer.name, *buffer.mutations)]


def _writers(code: OutputCode) -> dict[str, str]:
    """Return the kernel that writes each buffer. A buffer that several launches write has the first."""
    writers: dict[str, str] = {}
    for launch in code.launches:
        for name in _launch_outputs(code, launch):
            writers.setdefault(name, launch.kernel)
    for call in code.externs:
        for name in call.outputs:
            writers.setdefault(buffer_in(name), call.target)
    for allocation in code.allocations:  # `buf1 = buf0[0]`: an item of what a library call returned
        if allocation.how == "alias" and allocation.of in writers:
            writers.setdefault(allocation.name, writers[allocation.of])
    return writers


def _launch_outputs(code: OutputCode, launch: Launch) -> list[str]:
    kernel = code.kernel(launch.kernel)
    if kernel is None or not kernel.args:
        return []
    pairs = zip(kernel.args, launch.args, strict=False)
    return [buffer_in(text) for arg, text in pairs if arg.role in ("out", "inout")]


def buffer_origin(
    graph: CompiledGraph, buffer: str, layout: BufferLayout | None, kernel: str | None
) -> Origin | None:
    """Return the FX node that `buffer` came from, with the proof in words; None when nothing tells."""
    if graph.fx is None:
        return None
    if any(node.name == buffer for node in graph.fx.inputs):
        return Origin(buffer, None, "graph input")
    if graph.record:
        for recorded in graph.record.origins:
            if recorded.buffer == buffer and recorded.origin_node:
                return _origin(graph, recorded.origin_node, "recorded while compiling")
            if recorded.buffer == buffer and recorded.origins:
                return Origin(None, None, "recorded while compiling", recorded.origins)
    if graph.code and len(graph.code.returns) == len(graph.fx.outputs):
        for text, name in zip(graph.code.returns, graph.fx.outputs, strict=True):
            if name is not None and buffer_in(text) == buffer:
                return _origin(graph, name, "its place in the graph's return")
    candidates = _kernel_candidates(graph, layout, kernel)
    if len(candidates) == 1:
        return _origin(graph, candidates[0].name, "the only FX node of its kernel with its shape")
    if candidates:
        names = tuple(node.name for node in candidates)
        return Origin(None, None, "FX nodes of its kernel with its shape", names)
    return None


def _origin(graph: CompiledGraph, name: str, how: str) -> Origin:
    node = graph.fx.node(name) if graph.fx else None
    return Origin(name, node.source if node else None, how)


def _kernel_candidates(graph: CompiledGraph, layout: BufferLayout | None, kernel: str | None) -> list[FxNode]:
    if graph.fx is None or kernel is None or layout is None or layout.size is None:
        return []
    wanted = f"[{', '.join(str(dim) for dim in layout.size)}]"
    names = graph.provenance.kernels.get(kernel, ()) if graph.provenance else ()
    nodes = [node for name in names if (node := graph.fx.node(name))]
    return [node for node in nodes if node.type and node.type[node.type.find("[") :] == wanted]


def returned_buffers(graph: CompiledGraph) -> frozenset[str]:
    """Return the buffers that the graph returns, by what the wrapper says or else by their users."""
    if graph.code is not None:
        return frozenset(buffer_in(text) for text in graph.code.returns if _NAME.match(text))
    leaves = (leaf for top in graph.nodes for leaf in top.leaves())
    return frozenset(
        buffer.name
        for leaf in leaves
        for buffer in leaf.outputs
        if any(user.node == "OUTPUT" for user in buffer.users)
    )


def links(graph: CompiledGraph) -> Links:
    """Link every unfused node of `graph`."""
    kernels = node_kernels(graph)
    launches: dict[str, list[Span]] = {}
    for launch in graph.code.launches if graph.code else ():
        launches.setdefault(launch.kernel, []).append(launch.span)
    nodes = {}
    for top in graph.nodes:
        for leaf in top.leaves():
            kernel = kernels.get(leaf.name)
            nodes[leaf.name] = NodeLink(
                node=leaf.name,
                top=top.name,
                buffers=tuple(buffer.name for buffer in leaf.outputs),
                kernel=kernel,
                kernel_how="",
                launches=tuple(launches.get(kernel or "", ())),
            )
    return Links(nodes)
