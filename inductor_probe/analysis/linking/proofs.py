"""Buffers whose FX node is written down somewhere, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inductor_probe.analysis.graph import buffer_in
from inductor_probe.analysis.linking.fx_index import FxIndex
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.linking.kernel_nodes import KernelNodes
from inductor_probe.analysis.linking.runs import NodeStep
from inductor_probe.analysis.linking.shapes import Shape, may_hold
from inductor_probe.model.code import OutputCode
from inductor_probe.model.manifest import BufferOrigin
from inductor_probe.model.proof import KERNEL_COMMENT, RECORDED, Proof, read

_RETURNED = read("returned-position")


def proved_values(
    code: OutputCode | None,
    fx: FxIndex,
    *,
    shapes: Mapping[str, Shape],
    runs: Mapping[str, NodeStep],
    kernels: KernelNodes,
    origins: Mapping[str, BufferOrigin],
) -> dict[str, tuple[str, Proof]]:
    """Return the FX node of each buffer that something names, and what does; stronger proofs go first."""
    proved = {buffer: (node, _RETURNED) for buffer, node in _returned(code, fx, shapes)} if code else {}
    for members in kernels.members.values():
        written = kernels.written(runs[members[0].name].step)
        buffers = [buffer.name for leaf in members for buffer in leaf.outputs]
        if len(written) != len(buffers):
            continue
        for buffer, node in zip(buffers, written, strict=True):
            if node in fx.nodes and (buffer not in shapes or may_hold(shapes[buffer], fx.shape[node])):
                proved[buffer] = (node, KERNEL_COMMENT)
    for buffer, origin in origins.items():
        if origin.origin_node is not None and origin.origin_node in fx.nodes:
            proved[buffer] = (origin.origin_node, RECORDED)
    return proved


def _returned(code: OutputCode, fx: FxIndex, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, str]]:
    """What the graph returns stands in the same order in the wrapper, a view as one of its buffer."""
    if len(code.returns) != len(fx.graph.outputs):
        return
    for text, output in zip(code.returns, fx.graph.outputs, strict=True):
        buffer = buffer_in(text)
        node = output
        while text != buffer and node in fx.nodes and fx.op[node] in VIEWS:
            needs = fx.needs[node]
            base = fx.nodes.get(needs[0]) if needs else None  # the base may be a node of another module
            if base is None or needs[0] in fx.inputs or base.type is None:
                break
            node = needs[0]
        if node is None or node not in fx.nodes or node in fx.inputs:
            continue
        if buffer not in shapes or may_hold(shapes[buffer], fx.shape[node]):
            yield buffer, node
