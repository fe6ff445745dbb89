"""Drawings of graphs: what is in them, which read is not contiguous, and that all of it can be chosen."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.analysis.profiled import node_seconds
from inductor_probe.model.decision import DECISIONS_NAME, Decisions
from inductor_probe.model.profile import LineTime, NestTime, Profile
from inductor_probe.report.plots.drawing import drawing_svg
from inductor_probe.report.plots.folding import fold
from inductor_probe.report.plots.outline import MOST_UNITS, costly_path, outline_of
from inductor_probe.store.decisions import write_decisions
from tests.builders import decision
from tests.dumps import ANTIALIAS, LATEST, run_in
from tests.report.harmless import checked


@pytest.fixture
def antialias() -> ip.Graph:
    return ip.open_graph(LATEST / "aa_separable_cl")


def test_nodes_and_the_buffers_between_them_are_drawn(antialias: ip.Graph) -> None:
    found = outline_of(antialias.nodes(), antialias.layouts())
    assert [unit.name for unit in found.units] == ["op0", "op1", "op2", "op3"]
    assert {row.buffer for row in found.buffers} == {"arg0_1", "buf0", "buf1", "buf2", "buf3"}
    assert set(found.writes) == {("op0", "buf0"), ("op1", "buf1"), ("op2", "buf2"), ("op3", "buf3")}
    reads = {(read.buffer, read.unit): read.slow for read in found.reads}
    assert reads == {
        ("arg0_1", "op1"): True,
        ("buf0", "op1"): False,
        ("buf1", "op3"): False,
        ("buf2", "op3"): False,
    }


def test_what_lives_inside_of_a_fused_node_is_not_drawn() -> None:
    graph = ip.open_graph(ip.open_run(LATEST / "mlp_train").graphs[0].path)
    found = outline_of(graph.nodes(), graph.layouts())
    (fused,) = (unit for unit in found.units if len(unit.rows) > 1)
    assert (fused.nodes, fused.kernel) == ({"op2", "op3", "op4"}, "cpp_fused_gelu_native_dropout_0")
    assert "buf2" not in {row.buffer for row in found.buffers}
    assert {"buf3", "buf4"} <= {row.buffer for row in found.buffers}


@pytest.mark.parametrize(
    ("around", "units"),
    [
        ("buf1", {"op1", "op3"}),
        ("buf0", {"op0", "op1"}),
        ("op0", {"op0", "op1"}),
        ("arg0_1", {"op1"}),
        ("cpp_fused", {"op0", "op1", "op2", "op3"}),
    ],
)
def test_a_drawing_around_a_name_has_its_neighbours(
    antialias: ip.Graph, around: str, units: set[str]
) -> None:
    found = antialias.draw(around).outline
    assert {unit.name for unit in found.units} == units
    names = {row.buffer for row in found.buffers}
    assert all(read.buffer in names and read.unit in units for read in found.reads)
    assert all(buffer in names and unit in units for unit, buffer in found.writes)
    assert around not in ("buf1", "op1") or "arg0_1" in names  # what a reader pays for is seen


def test_a_drawing_around_nothing_names_what_is_near(antialias: ip.Graph) -> None:
    with pytest.raises(ip.NotFoundError, match="has no node, buffer or kernel buf11"):
        antialias.draw("buf11")


def test_every_box_is_there_and_can_be_chosen(antialias: ip.Graph) -> None:
    found = checked(antialias.draw()._repr_html_())
    assert len(found.of_class("ip-node")) == 4
    assert len(found.of_class("ip-buffer")) == 5
    ids = [each["id"] for each in found.of_class("ip-pick")]
    wanted = {attributes["for"] for tag, attributes in found.elements if tag == "label"}
    assert len(set(ids)) == len(ids)
    assert wanted == set(ids)
    assert len(found.of_class("ip-panel")) == len(ids)
    (checked_,) = (each for each in found.of_class("ip-pick") if "checked" in each)
    labels = [attributes["for"] for tag, attributes in found.elements if tag == "label"]
    names = [attributes["data-name"] for tag, attributes in found.elements if tag == "g"]
    kernels, labels = labels[:1], labels[1:]
    assert kernels
    assert names[labels.index(checked_["id"]) // 2] == "op1"  # it pays, so a reader looks for it


def test_only_the_non_contiguous_read_is_red(antialias: ip.Graph) -> None:
    found = checked(antialias.draw()._repr_html_())
    assert len(found.of_class("ip-wire")) == 8
    assert len([each for each in found.of_class("ip-wire") if "ip-slow" in each["class"]]) == 1


def test_two_drawings_on_one_page_do_not_share_choices(antialias: ip.Graph) -> None:
    pages = [checked(antialias.draw()._repr_html_()) for _ in range(2)]
    names = [{each["name"] for each in found.of_class("ip-pick")} for found in pages]
    assert len(names[0]) == len(names[1]) == 1
    assert not names[0] & names[1]


def test_a_graph_of_hundreds_is_folded_and_every_node_is_in_a_box(antialias: ip.Graph) -> None:
    rows = antialias.nodes()
    many = [
        replace(rows[number % 4], node=f"op{number}", writes=rows[number % 4].writes) for number in range(200)
    ]
    outline = outline_of(many, antialias.layouts(), most=MOST_UNITS)
    assert len(outline.units) <= MOST_UNITS
    assert [row.node for unit in outline.units for row in unit.rows] == [row.node for row in many]
    (layers,) = (unit for unit in outline.units if unit.period)
    assert len(layers.parts) % layers.period == 0
    assert len(layers.parts) > 190
    found = checked(drawing_svg(outline, {}))
    assert "as above" in found.text
    (box,) = found.of_class("ip-fold")
    assert set(box["data-nodes"].split()) == layers.nodes


@pytest.mark.parametrize("most", [3, 7, 60])
def test_nodes_of_small_cost_are_folded_between_those_of_the_greatest(most: int) -> None:
    costs = [1.0 * (number % 17 == 3) * number for number in range(150)]
    runs = fold(range(150), costs, most)
    assert len(runs) <= most
    assert [place for run in runs for place in range(run.first, run.last)] == [*range(150)]
    heaviest = sorted(range(150), key=lambda place: -costs[place])[: min((most - 1) // 2, 9)]
    assert {(place, place + 1) for place in heaviest} <= {(run.first, run.last) for run in runs}


def test_layers_of_a_deep_graph_are_folded_however_many_others_are_around_them() -> None:
    layers = [("norm", 0), ("product", 0), ("norm", 0), ("product", 0), ("norm", 0), ("product", 0)]
    marks = [mark for block in range(1200) for mark in (*layers, ("of its own", block))]
    runs = fold(marks, [1.0] * len(marks), len(marks))
    assert [place for run in runs for place in range(run.first, run.last)] == [*range(len(marks))]
    assert [(run.first, run.last, run.period) for run in runs if run.many > 1] == [
        (7 * block + 2, 7 * block + 6, 2) for block in range(1200)
    ]


def test_a_shorter_repetition_has_what_a_longer_one_leaves_of_it() -> None:
    runs = fold("aaaa" + "xyz" * 4 + "x", [1.0] * 17, 17)
    assert [(run.first, run.last, run.period) for run in runs] == [
        (0, 1, 0), (1, 4, 1), (4, 5, 0), (5, 6, 0), (6, 7, 0), (7, 16, 3), (16, 17, 0),
    ]  # fmt: skip


def test_the_path_that_takes_most_time_is_marked_and_not_that_of_most_bytes(antialias: ip.Graph) -> None:
    nodes, buffers = antialias.nodes(), antialias.layouts()
    by_bytes = costly_path(outline_of(nodes, buffers))
    by_time = costly_path(outline_of(nodes, buffers, seconds={"op2": 9.0, "op3": 1.0}))
    assert by_time == ("op2", "buf2", "op3")
    assert by_bytes == ("op0", "buf0", "op1", "buf1", "op3")


def test_seconds_of_a_launch_are_those_of_its_loop_nests(antialias: ip.Graph) -> None:
    rows = antialias.nodes()
    (line,) = rows[0].link.launches
    whole = LineTime(line, "kernel(buf0)", "launch", "kernel", 8.0, 0.0, 1.0, 1)
    nests = tuple(
        NestTime("kernel", number, None, 0, 0, (), seconds, 0.0, 0.0, nodes=(f"op{number}",))
        for number, seconds in ((1, 1.0), (2, 3.0))
    )
    profile = Profile("g", "2", "cpu", 1, "tsc", 8.0, 8.0, 0.0, 1, (), nests, (whole,))
    assert node_seconds(rows, profile) == {"op0": 0.0, "op1": 2.0, "op2": 6.0, "op3": 0.0}


def test_a_damaged_graph_is_drawn_as_far_as_it_is_read(
    tmp_path: Path, dump_dir: Callable[[str], Path]
) -> None:
    (graph,) = ip.open_run(dump_dir("torch-2.13.0-cpu/aa_separable_cl")).graphs
    copy = tmp_path / graph.name
    copy.mkdir()
    (copy / "ir_post_fusion.txt").write_text((graph.path / "ir_post_fusion.txt").read_text()[:-300])
    found = checked(ip.open_graph(copy)._repr_html_())
    assert len(found.of_class("ip-node")) >= 3
    (copy / "ir_post_fusion.txt").write_text("")
    checked(ip.open_graph(copy)._repr_html_())


def test_a_drawing_is_a_table_in_a_prompt(antialias: ip.Graph) -> None:
    assert repr(antialias.draw("op0")).startswith("model__0_inference_0.0  ")


def test_what_was_missed_is_marked_where_it_is(tmp_path: Path) -> None:
    run = shutil.copytree(run_in(ANTIALIAS), tmp_path / "run")
    (graph,) = ip.open_run(run).graphs
    realised = {"node": "sum_3", "operations": 114, "operations_limit": 50, "setting": "s"}
    scalar = partial(decision, "vectorisation", outcome="scalar", cause="no-vector-isa")
    limits = {"nodes": 2, "limit": 1}
    decisions = [
        decision("fusion", "op1, op3", "refused", "fusion-size-limit", operands=limits),
        scalar("op0", number=2),
        decision(
            "realization",
            "buf2",
            "realised",
            "operations",
            number=3,
            operands=realised,
            subject_type="buffer",
        ),
        decision("vectorisation", "op2", "vectorised", "one-dimension", number=4),
        scalar("op2", number=5, speculative=True),
    ]
    kinds = ("fusion", "vectorisation", "realization")
    write_decisions(graph.path / DECISIONS_NAME, Decisions("2.13.0", kinds, tuple(decisions)))
    drawing = ip.open_graph(graph.path).draw()
    found = checked(drawing._repr_html_())
    titles = re.findall(r'class="ip-(?:node|buffer)[^>]*><title>(.*?)</title>', drawing.html, re.DOTALL)
    marked = [title for title in titles if "! " in title]
    assert [title.splitlines()[0].split(",")[0] for title in marked] == ["op0", "intermediate buf2"]
    assert "op0 is scalar" in marked[0]
    assert "buf2 is a buffer of its own" in marked[1]
    assert drawing.html.count("! op1 and op3 are not fused") == 1
    assert "!: a missed optimisation" in found.text


def test_a_graph_in_which_nothing_was_missed_has_no_marks(antialias: ip.Graph) -> None:
    assert "missed optimisation" not in antialias.draw().html
