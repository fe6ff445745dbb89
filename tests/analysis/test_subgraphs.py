"""Branches of conditionals and bodies of loops: each is read by its name, and linked in its function."""

from __future__ import annotations

from collections import Counter

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.links import links
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.analysis.summary import summarise
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.reader.debug_dir import read_graph, read_run, texts_of
from tests.dumps import PROGRAMS, run_in

BODY = "while_loop_body_graph_0"


def read(program: str) -> tuple[DebugDir, CompiledGraph]:
    path = run_in(PROGRAMS / program)
    run = read_run(path)
    return run, read_graph(run.graphs[0])


def test_the_nodes_of_every_subgraph_are_read_and_linked() -> None:
    run, graph = read("control_flow")
    rows = node_rows(graph)
    counts = Counter(row.subgraph for row in rows)
    assert counts == {
        None: 9, "true_graph_0": 1, "false_graph_0": 1, "while_loop_cond_graph_0": 1, BODY: 3
    }  # fmt: skip
    checked = check_graph(graph, texts_of(graph))
    assert (checked.unlinked, checked.problems, checked.remarks) == ((), (), ())
    kernels = {row.node: row.link.kernel for row in rows if row.subgraph == BODY}
    assert kernels[f"{BODY}_op0"] == "extern_kernels.mm"
    assert graph.code is not None
    for row in rows:
        for span in row.link.launches:
            assert graph.code.subgraph_at(span.first) == row.subgraph
    names = [part.name for part in summarise(run, [graph]).graphs[0].subgraphs]
    assert names == ["true_graph_0", "false_graph_0", "while_loop_cond_graph_0", BODY]


def test_fx_nodes_of_one_name_in_several_subgraphs_are_told_apart() -> None:
    _, graph = read("control_flow")
    linked = links(graph)
    assert "true_graph_0_rev" in linked.nodes["true_graph_0_op0"].fx
    assert linked.nodes[f"{BODY}_op2"].fx == (f"{BODY}_add",)
    assert {line.code for line in linked.nodes["true_graph_0_op0"].sources} == {
        "y = cond(p, lambda x: x.sin() + x.flip(0), lambda x: (x * 2).cos(), (x,))"
    }


def test_what_a_subgraph_takes_is_not_an_input_of_the_graph() -> None:
    _, graph = read("control_flow")
    rows = {row.buffer: row for row in layouts(graph)}
    assert [row.buffer for row in rows.values() if row.role == "input" and not row.subgraph] == [
        "arg0_1",
        "arg1_1",
    ]
    assert rows["true_graph_0_arg0_1"].subgraph == "true_graph_0"
    assert rows[f"{BODY}_buf2"].role == "output"


def test_of_a_dump_that_torch_made_alone_the_lost_ir_is_named() -> None:
    _, graph = read("conditional")
    (remark,) = check_graph(graph, texts_of(graph)).remarks
    assert (remark.code, remark.number("kernels")) == ("kernels-without-ir", 2)
