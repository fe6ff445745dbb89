"""Files of a graph held against each other: nodes before and after fusion, the FX graph and the wrapper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from inductor_probe.analysis.graph import GraphIndex
from inductor_probe.model.code import OutputCode
from inductor_probe.model.fx import FxGraph
from inductor_probe.model.ir import LoopBody, SchedulerNode
from inductor_probe.model.span import Problem, Span

# What `Scheduler.fuse_nodes` and the passes behind it leave as it was. Loops, and the deps made of them, are
# merged and reordered, and deps are pruned.
_SAME_OF_NODE = ("kind", "ir", "kernel", "device", "min_input_distance", "max_input_distance")
_SAME_OF_BUFFER = ("layout", "aliases", "mutations", "users")


def fusion_problems(index: GraphIndex, path: Path) -> Iterator[Problem]:
    """Yield nodes that one IR file has and the other lacks, or that differ; `path` is the later file."""
    before, after = index.pre.leaf, index.post.leaf
    for name in before.keys() - after.keys():
        yield Problem(f"{name} is missing: ir_pre_fusion.txt has it", Span(path, 1, 1))
    for name, leaf in after.items():
        if name not in before:
            yield Problem(f"{name} is not in ir_pre_fusion.txt", _first(leaf))
        elif "Template" not in leaf.ir + before[name].ir:  # whose choice is made while nodes are fused
            yield from _changed(before[name], leaf)


def _changed(before: SchedulerNode, after: SchedulerNode) -> Iterator[Problem]:
    for key in _SAME_OF_NODE:
        if getattr(before, key) != getattr(after, key):
            yield Problem(f"{key} of {after.name} is another one in ir_pre_fusion.txt", _first(after))
    if before.body and after.body and _operations(before.body) != _operations(after.body):
        yield Problem(
            f"the loop body of {after.name} has other operations in ir_pre_fusion.txt", _first(after)
        )
    earlier = {buffer.name: buffer for buffer in before.outputs}
    later = {buffer.name: buffer for buffer in after.outputs}
    for name in earlier.keys() ^ later.keys():
        yield Problem(f"one of the IR files only has the output {name} of {after.name}", _first(after))
    for name in earlier.keys() & later.keys():
        for key in _SAME_OF_BUFFER:
            if getattr(earlier[name], key) != getattr(later[name], key):
                yield Problem(f"{key} of {name} is another one in ir_pre_fusion.txt", _first(after))


def _operations(body: LoopBody) -> Counter[str]:
    """How often a body does what; merging and reordering its loops traces it again, with other indexes."""
    return Counter(op.target for block in body.blocks for op in block.ops if op.target.startswith("ops."))


def wrapper_problems(fx: FxGraph, code: OutputCode, path: Path) -> Iterator[Problem]:
    """Yield where the wrapper takes or returns other values than the FX graph that was lowered."""
    names = tuple(node.name for node in fx.inputs)
    if names != code.inputs:
        wrapper, graph = _list(code.inputs), _list(names)
        yield Problem(f"the wrapper takes {wrapper}, the FX graph {graph}", Span(path, 1, 1))
    if len(fx.outputs) != len(code.returns):
        message = f"the wrapper returns {len(code.returns)} values, the FX graph {len(fx.outputs)}"
        yield Problem(message, Span(path, 1, 1))


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _first(leaf: SchedulerNode) -> Span | None:
    span = leaf.span
    return Span(span.path, span.first, span.first) if span else None
