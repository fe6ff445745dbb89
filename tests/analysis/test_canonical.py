"""Equal keys for what computes the same, other keys for what does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.analysis.canonical import canonical
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.reader.ir import parse_ir

NODE = """op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0: 512})]
op0.unmet_dependencies = []
op0.met_dependencies = [MemoryDep('arg0_1', c0, {c0: 512}), MemoryDep('arg1_1', c0, {c0: 512})]
op0.group.device = cpu
op0.group.iteration = ((64, 8), ())
op0.sizes = ([64, 8], [])
class op0_loop_body:
    var_ranges = {p0: 64, p1: 8}
    index0 = 8*p0 + p1
    index1 = 7 - (ModularIndexing(p1, 1, 4))
    def body(self, ops):
        get_index = self.get_index('index0')
        load = ops.load('arg0_1', get_index)
        get_index_1 = self.get_index('index1')
        load_1 = ops.load('arg1_1', get_index_1)
        mul = ops.mul(load, load_1)
        constant = ops.constant(0.5, torch.float32)
        sub = ops.sub(mul, constant)
        get_index_2 = self.get_index('index0')
        store = ops.store('buf0', get_index_2, sub, None)
        return store
"""


def key(text: str) -> str | None:
    parsed = parse_ir(text, Path("ir_pre_fusion.txt"))
    assert not parsed.problems
    return canonical(parsed.nodes[0])


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"\bp(\d)", r"z\1"),
        (r"op0", "op71"),
        (r"arg0_1", "primals_3"),
        (r"(?<!\.)\bmul\b", "mul_7"),
        (r"ops\.mul\(load, load_1\)", "ops.mul(load_1, load)"),
        (r"7 - \(ModularIndexing\(p1, 1, 4\)\)", "7 - ModularIndexing(p1, 1, 4)"),
        (r"8\*p0 \+ p1", "p1 + 8*p0"),
        (r"\bsub\b(?!\()", "difference"),
        (r"        sub = ", "        twice = ops.mul(load, load_1)\n        sub = "),
    ],
)
def test_another_spelling_is_the_same(pattern: str, replacement: str) -> None:
    assert key(re.sub(pattern, replacement, NODE)) == key(NODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p0: 64, p1: 8", "p0: 64, p1: 9"),
        ("8*p0 + p1", "p0 + 64*p1"),
        ("ops.constant(0.5, torch.float32)", "ops.constant(0.25, torch.float32)"),
        ("ops.constant(0.5, torch.float32)", "ops.constant(0.5, torch.float64)"),
        ("ops.sub(mul, constant)", "ops.sub(constant, mul)"),
        ("ops.load('arg1_1', get_index_1)", "ops.load('arg0_1', get_index_1)"),
        ("sub, None)", "sub, 'atomic_add')"),
        ("ops.mul(load, load_1)", "ops.maximum(load, load_1)"),
    ],
)
def test_another_computation_is_another(old: str, new: str) -> None:
    assert old in NODE
    assert key(NODE.replace(old, new)) != key(NODE)


def test_a_store_to_what_is_read_is_not_a_store_to_another_buffer() -> None:
    assert key(NODE.replace("'buf0'", "'arg0_1'")) != key(NODE)


def leaves(graph: CompiledGraph) -> list[SchedulerNode]:
    return [leaf for top in graph.nodes for leaf in top.leaves()]


def test_torch_2_1_and_2_13_write_the_same_programs(read: Callable[..., CompiledGraph]) -> None:
    old = [canonical(node) for node in leaves(read("torch-2.1.2-cpu/dynamic_shapes"))]
    new = [canonical(node) for node in leaves(read("torch-2.13.0-cpu/dynamic_shapes"))]
    assert [found for found in old if found] == [found for found in new if found]
    assert len({found for found in old if found}) >= 2


def test_a_node_without_a_body_has_no_key(read: Callable[..., CompiledGraph]) -> None:
    without = [node for node in leaves(read("torch-2.13.0-cpu/mlp_train")) if node.body is None]
    assert without
    assert {canonical(node) for node in without} == {None}
