"""`probe show` as a user meets it: every kind of page, at every width, in JSON, and what is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import inductor_probe as ip
from tests.conftest import DUMPS, Probe, Ran
from tests.dumps import ANTIALIAS, FLIP, FOREACH, TRAINING, graph_in

SHORT_SOFTMAX = DUMPS / "torch-2.13.0-cpu-programs" / "short_softmax"
OLD = DUMPS / "torch-2.2.2-cpu" / "inplace_mutation"


def shown(ran: Ran) -> str:
    assert ran.status == 0, ran.err
    assert "\x1b" not in ran.out
    return ran.out


def test_a_graph_in_outline_fits_a_screen(probe: Probe) -> None:
    out = shown(probe("show", FLIP, COLUMNS="80"))
    assert len(out.splitlines()) <= 24
    assert "inputs     arg0_1 u8[1, 3, 224, 224] channels_last" in out
    assert "nodes      1 before fusion, 1 after: 1 pointwise" in out
    assert "cpp_fused_flip_0" in out
    assert "capture.py:34" in out


def test_a_node_is_linked_from_the_line_to_the_launch(probe: Probe) -> None:
    out = shown(probe("show", "op0", FLIP))
    assert "capture.py:34 -> rev -> op0 -> cpp_fused_flip_0 -> output_code.py:" in out
    assert "the launch writes buf0" in out
    assert "contiguous in runs of 3, reversed along p1" in out
    assert "computes\n  for " in out
    assert "class op0_loop_body" not in out


def test_the_dumped_text_has_its_line_numbers(probe: Probe) -> None:
    out = shown(probe("show", "op0", FLIP, "--raw"))
    lines = (graph_in(FLIP) / "ir_post_fusion.txt").read_text().split("\n")
    number = next(at for at, line in enumerate(lines, start=1) if line.startswith("class op0_loop_body"))
    assert f"{number}  class op0_loop_body:" in out
    assert "computes\n" not in out


def test_a_long_loop_body_becomes_a_few_lines(probe: Probe) -> None:
    out = shown(probe("show", "op3", ANTIALIAS, COLUMNS="110"))
    formula = out[out.index("computes\n") :].splitlines()
    assert len(formula) < 20
    assert any("buf1[" in line for line in formula)
    assert "- op3 reads buf1 as transposed [0, 2, 1, 3] and writes buf3 as contiguous" in " ".join(
        out.split()
    )


def test_a_fused_node_shows_its_members(probe: Probe) -> None:
    out = shown(probe("show", "op2_op3_op4", TRAINING, COLUMNS="100"))
    assert "op2_op3_op4  FusedSchedulerNode" in out
    assert "yes, they fit into one nest" in out
    assert "only inside  buf2 f32[32, 256]" in out
    for node in ("op2", "op3", "op4"):
        assert f"{node} computes" in out


def test_a_name_in_several_graphs_shows_each(probe: Probe) -> None:
    out = shown(probe("show", "op0", TRAINING))
    assert "model__0_forward_1.0" in out
    assert "model__0_backward_3.1" in out
    one = shown(probe("show", "op0", graph_in(TRAINING, "backward")))
    assert "model__0_forward_1.0" not in one


def test_a_buffer_shows_its_layout_and_what_computes_it(probe: Probe) -> None:
    out = shown(probe("show", "buf1", ANTIALIAS))
    assert out.startswith("buf1  transposed [0, 2, 1, 3]\n")
    assert "from     clone (inferred: the last FX node that op1 computes)" in out
    assert "computed by op1" in out
    assert "read by op3 3 times" in out


def test_an_input_has_no_producer(probe: Probe) -> None:
    out = shown(probe("show", "arg0_1", ANTIALIAS))
    assert "computed by" not in out
    assert "read by op1" in out


def test_a_kernel_may_be_named_by_its_start(probe: Probe) -> None:
    out = shown(probe("show", "cpp_fused_fl", FLIP))
    assert out.startswith("cpp_fused_flip_0  ")
    assert 'extern "C"' in shown(probe("show", "cpp_fused_flip_0", FLIP, "--code"))


def test_an_fx_node_shows_what_became_of_it(probe: Probe) -> None:
    out = shown(probe("show", "rev", FLIP))
    assert out.startswith("rev  FX node\n")
    assert "prims.rev" in out
    assert "op0   pointwise  buf0 u8[1, 3, 224, 224]  cpp_fused_flip_0" in out


def test_what_torch_lists_for_a_kernel_is_not_denied(probe: Probe) -> None:
    """`show log` said that no scheduler node is known to compute it."""
    out = shown(probe("show", "log", SHORT_SOFTMAX))
    assert "no scheduler node" not in out
    assert "op1   pointwise  buf1 f32[5, 10, 1]  cpp_fused__log_softmax_0" in out
    assert "output_code.py:135  cpp_fused__log_softmax_0  torch's provenance file\n" in out
    assert "FX nodes    log, sum_1, exp\n" in shown(probe("show", "op1", SHORT_SOFTMAX))
    assert "from     log (" in shown(probe("layouts", "buf1", SHORT_SOFTMAX))
    kernel = shown(probe("show", "cpp_fused__log_softmax_0", SHORT_SOFTMAX))
    assert "6 in torch's provenance file, 5 inferred from data flow" in kernel


def test_where_torchs_file_and_the_data_flow_differ_the_page_says_so(probe: Probe, tmp_path: Path) -> None:
    copy = shutil.copytree(SHORT_SOFTMAX, tmp_path / "copy")
    (file,) = copy.glob("run_*/torchinductor/*/inductor_provenance_tracking_node_mappings.json")
    mapping = json.loads(file.read_text())
    mapping["cppCodeToPost"]["cpp_fused__log_softmax_0:1"] = ["sub", "sub_1", "exp", "sum_1", "log", "tan"]
    file.write_text(json.dumps(mapping))
    unlisted = "! torch does not list amax for the kernel: inferred from data flow for op0"
    page = shown(probe("show", "cpp_fused__log_softmax_0", copy))
    assert f"{unlisted}\n" in page
    assert "lists tan for the kernel, but the dumped FX graph has no such node" in page
    for name in ("amax", "op0"):
        out = shown(probe("show", name, copy))
        assert unlisted.replace("the kernel", "cpp_fused__log_softmax_0") in out


def test_a_view_is_said_to_be_one(probe: Probe) -> None:
    out = shown(probe("show", "permute_3", TRAINING))
    assert "permute_3 is a view of tangents_1: nothing is computed for it\n" in out


def test_a_line_shows_what_became_of_it(probe: Probe) -> None:
    for place in ("capture.py:67", "/repro/capture.py:67"):
        out = shown(probe("show", place, ANTIALIAS))
        assert "h = (x[..., xi] * xw).sum(-1)" in out
        assert "aten.index.Tensor" in out
        assert "op1   pointwise" in out
        assert "output_code.py:593" in out


def test_what_was_changed_in_place_is_read_under_its_first_name(probe: Probe) -> None:
    out = shown(probe("show", "op20", FOREACH))
    assert "mutates arg0_1" in out
    assert "arg10_1 f32[64, 64]  [64, 1]  contiguous [0, 1]  contiguous" in out


@pytest.mark.parametrize("name", ["op1", "buf1", "sum_3", "capture.py:67", "cpp_fused_"])
@pytest.mark.parametrize("width", [80, 140])
def test_lines_fit(probe: Probe, name: str, width: int) -> None:
    out = shown(probe("show", name, ANTIALIAS, COLUMNS=str(width)))
    assert all(len(line) <= width for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "page", "keys"),
    [
        (["op1"], "NodePage", {"graph", "parts", "writes", "reads", "inside", "node_class"}),
        (["buf1"], "BufferPage", {"row", "producer"}),
        (["sum_3"], "TracePage", {"graph", "what", "lines", "fx", "nodes", "kernels", "holds", "maybe"}),
        (["capture.py:67"], "TracePage", {"what", "lines", "fx", "nodes", "kernels"}),
        (["cpp_fused_"], "KernelRow", {"name", "backend", "nodes", "launches"}),
        ([], "GraphPage", {"inputs", "outputs", "kernels", "lines", "summary", "unlinked"}),
    ],
)
def test_json(probe: Probe, arguments: list[str], page: str, keys: set[str]) -> None:
    ran = probe("show", *arguments, ANTIALIAS, "--json")
    assert ran.status == 0, ran.err
    (found,) = json.loads(ran.out)["pages"]
    assert found["page"]["record"] == page
    assert keys <= set(found["page"])


def test_json_of_a_node_has_formula_links_and_dependencies(probe: Probe) -> None:
    (shown,) = json.loads(probe("show", "op3", ANTIALIAS, "--json", "--raw").out)["pages"]
    (part,) = shown["page"]["parts"]
    assert part["row"]["link"]["launches"][0]["first"] == 593
    assert "sum_4" in part["row"]["link"]["fx"]
    assert {dep["record"] for dep in (*part["met"], *part["unmet"])} == {"MemoryDep"}
    assert part["formula"]["loops"][0] == {"variable": "p0", "size": 4, "reduced": False}
    assert shown["text"]["op3"][0] == "class op3_loop_body:"
    (shown,) = json.loads(probe("show", "op3", ANTIALIAS, "--json").out)["pages"]
    assert shown["text"]["op3"][0].startswith("for p0 < 4, ")
    store = shown["page"]["parts"][0]["formula"]["statements"][-1]
    assert (store["record"], store["target"]) == ("Store", "buf3[p0, p1, p2, p3]")


def test_json_has_the_text_of_a_kernel_where_it_is_asked_for(probe: Probe) -> None:
    for options, has_text in ([], False), (["--code"], True):
        (shown,) = json.loads(probe("show", "cpp_fused_", ANTIALIAS, "--json", *options).out)["pages"]
        assert (shown["page"]["name"] in shown["text"]) is has_text
        assert "source" not in shown["page"]


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["show", "buf9", ANTIALIAS], "has no node, buffer, kernel or FX node buf9", "buf3"),
        (["show", "op2", OLD], "has no node op2", "torch before 2.5 calls nodes after their buffers: buf2"),
        (["show", "capture.py:1", ANTIALIAS], "has no source line capture.py:1", "capture.py:"),
        (["show", "op99", TRAINING], "none of the 2 graphs", None),
        (["show", "op0", FLIP, "--annotate"], "--annotate needs the name of a kernel", "probe kernels"),
        (["show", "op0", FLIP, "-o", "x.cpp"], "-o needs --annotate", "--annotate -o FILE"),
        (["show", "cpp_fused_", TRAINING / "nowhere"], "does not exist", None),
        (["show", "op0"], "no run in", "probe dump"),
    ],
)
def test_what_is_not_there_gets_a_sentence(
    probe: Probe, arguments: list[str | Path], error: str, hint: str | None
) -> None:
    ran = probe(*arguments)
    assert ran.status == 2
    assert error in ran.err
    assert hint is None or hint in ran.err
    assert "Traceback" not in ran.err


def test_several_kernels_that_start_so_are_named(probe: Probe) -> None:
    backward = graph_in(TRAINING, "backward")
    ran = probe("show", "cpp_fused_", backward)
    assert ran.status == 2
    assert "2 kernels of model__0_backward_3.1 start with cpp_fused_" in ran.err
    assert "cpp_fused_sum_1" in ran.err


def test_annotated_text_is_written_once(probe: Probe, tmp_path: Path) -> None:
    assert "op0" in shown(probe("show", "cpp_fused_flip_0", FLIP, "--annotate"))
    target = tmp_path / "flip.cpp"
    assert probe("show", "cpp_fused_flip_0", FLIP, "--annotate", "-o", target).status == 0
    text = target.read_text()
    assert "op0" in text
    target.write_text("mine")
    ran = probe("show", "cpp_fused_flip_0", FLIP, "--annotate", "-o", target)
    assert ran.status == 2
    assert "--force" in ran.err
    assert target.read_text() == "mine"
    assert probe("show", "cpp_fused_flip_0", FLIP, "--annotate", "-o", target, "--force").status == 0
    assert target.read_text() == text


def test_the_api_mirrors_the_command() -> None:
    graph = ip.open_graph(FLIP)
    assert repr(graph.show("op0")).startswith("op0  pointwise")
    assert graph.show().shown.page == graph.show().record
    assert "<pre" in graph.show("buf0")._repr_html_()
    with pytest.raises(ip.NotFoundError):
        graph.show("buf9")
