"""FX graph files: nodes, their types and the user's lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.span import SourceLine
from inductor_probe.reader.fx import parse_fx_graph

Read = Callable[..., CompiledGraph]
QUOTED = """
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "u8[1, 3]", arg1_1: "Sym(s77)"):
        # File: /repro/my script.py:34 in <lambda>, code: return x.flip(-1)
        rev: "u8[1, 3]" = torch.ops.prims.rev.default(arg0_1, [3]);  arg0_1 = None
        return (rev, None)
"""


def test_types_quoted_and_not() -> None:
    for text in (QUOTED, QUOTED.replace('"', "")):
        graph = parse_fx_graph(text, Path("fx.py"))
        assert [(node.name, node.type) for node in graph.inputs] == [
            ("arg0_1", "u8[1, 3]"),
            ("arg1_1", "Sym(s77)"),
        ]
        (node,) = graph.nodes
        assert (node.name, node.target, node.type) == ("rev", "torch.ops.prims.rev.default", "u8[1, 3]")
        assert node.source == SourceLine("/repro/my script.py", 34, "<lambda>", "return x.flip(-1)")
        assert graph.outputs == ("rev", None)


def test_a_comment_speaks_for_the_lines_up_to_the_next_empty_one() -> None:
    lines = QUOTED.replace(
        "        return", "\n        neg = torch.ops.aten.neg.default(rev)\n        return"
    )
    graph = parse_fx_graph(lines, Path("fx.py"))
    assert [node.source is None for node in graph.nodes] == [False, True]


def test_a_whole_graph_is_read(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/aa_separable_cl").fx
    assert graph is not None
    assert len(graph.nodes) == 82
    assert graph.outputs == ("sum_4",)
    horizontal = graph.node("sum_3")
    assert horizontal is not None
    assert horizontal.source is not None
    assert (horizontal.source.line, horizontal.source.function) == (67, "aa_separable")


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_fx_graph(text, Path("fx.py"))
