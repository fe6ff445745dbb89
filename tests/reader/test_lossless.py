"""Every line of every dump is read, and what was read says all that the text said."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dotted, LoopBody, Op, Ref, SchedulerNode, Value
from inductor_probe.reader import blocks
from tests.conftest import all_graph_dirs
from tests.dumps import read_at

GRAPHS = all_graph_dirs()


@pytest.mark.parametrize("folder", GRAPHS, ids=lambda folder: f"{folder.parents[3].name}-{folder.name}")
def test_nothing_of_a_dump_is_left_unread(folder: Path) -> None:
    assert_all_is_read(folder, read_at(folder))


def assert_all_is_read(folder: Path, graph: CompiledGraph) -> None:
    assert not graph.problems
    assert {file.path.name: file.unread for file in graph.files if file.unread} == {}
    for path in sorted(folder.glob("ir_*_fusion*.txt")):  # a file for each subgraph, too
        nodes = graph.pre if path.name.startswith("ir_pre") else graph.post
        nodes = tuple(top for top in nodes if top.span and top.span.path == path)
        text = path.read_text()
        lines = text.split("\n")
        ends = [0, *(last for _, last in blocks.split(text).pieces)]
        pieces = [line for first, last in pairwise(ends) for line in lines[first:last]]
        assert pieces == lines, "lines were lost or doubled"
        for top in nodes:
            for leaf in top.leaves():
                assert leaf.fields == ()
                _assert_body_says_its_lines(leaf, lines)


def _assert_body_says_its_lines(node: SchedulerNode, lines: list[str]) -> None:
    if node.body is None:
        return
    assert node.body.span is not None
    printed = [line.strip() for line in lines[node.body.span.first : node.body.span.last]]
    assert [_plain(line) for line in _written(node.body)] == [_plain(line) for line in printed]


def _plain(line: str) -> str:
    """Numbers are compared as numbers elsewhere: `1e-05` and `0.00001` are one; so are None and nothing."""
    line = re.sub(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])", lambda match: repr(float(match[0])), line)
    return line.replace(", )", ")").replace(",)", ")").replace("return None", "return").replace('"', "'")


def _written(body: LoopBody) -> list[str]:
    """Print a body from its record, as torch prints it."""
    ranges = ", ".join(f"{name}: {size}" for name, size in body.var_ranges)
    lines = [f"var_ranges = {{{ranges}}}", *(f"{name} = {text}" for name, text in body.indexes)]
    for block in body.blocks:
        lines.append(f"def {block.name}({', '.join(block.params)}):")
        lines.extend(_written_op(op) for op in block.ops)
        lines.append(f"return {_value(block.result)}")
    return lines


def _written_op(op: Op) -> str:
    if op.target == "[]":
        return f"{op.result} = {_value(op.args[0])}[{op.args[1]}]"
    arguments = [*map(_value, op.args), *(f"{name} = {_value(value)}" for name, value in op.kwargs)]
    return f"{op.result} = {op.target}({', '.join(arguments)})"


def _value(value: Value) -> str:
    match value:
        case Ref(name):
            return name
        case Dotted(text):
            return text
        case tuple():
            return f"({', '.join(map(_value, value))})"
        case str():
            return repr(value)
    return str(value)
