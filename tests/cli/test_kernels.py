"""`probe kernels` as a user meets it."""

from __future__ import annotations

import json

from inline_snapshot import snapshot

import inductor_probe as ip
from inductor_probe.report.terminal import to_text
from tests.conftest import Probe, Screen
from tests.dumps import FLIP, LAYERNORM
from tests.dumps import TRAINING as MLP


def test_a_pipe_has_a_table_a_graph_and_whole_names(probe: Probe) -> None:
    assert probe("kernels", MLP).out.count("model__0_") == 2
    ran = probe("kernels", LAYERNORM)
    assert ran.out.count("model__0_") == 2
    assert "triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_2" in ran.out
    assert "…" not in ran.out


def test_json_has_arguments_launches_and_loops(probe: Probe) -> None:
    found = json.loads(probe("kernels", LAYERNORM, "--json").out)["rows"]
    assert len(found) == 4
    assert found[0]["args"][0] == {"name": "in_out_ptr0", "role": "inout", "type": "*fp32"}
    (launch,) = found[0]["launches"]
    assert launch["passed"][2]["layout"]["size"] == [8, 128, 768]
    nests = json.loads(probe("kernels", MLP, "--json", "--only", "cpp").out)["rows"][0]["details"]["nests"]
    assert nests[0]["loops"][0]["trips"] > 0


def test_filters_and_sorting(probe: Probe) -> None:
    rows = json.loads(probe("kernels", MLP, "--only", "extern", "--sort", "calls", "--json").out)["rows"]
    assert [row["name"] for row in rows] == [
        "extern_kernels.addmm",
        "aten.randint.low_out",
        "extern_kernels.mm",
    ]
    rows = json.loads(
        probe("kernels", MLP, "--only", "cpp", "--only", "reduction", "--sort", "bytes", "--json").out
    )["rows"]
    moved = [row["bytes_read"] + row["bytes_written"] for row in rows]
    assert len(moved) == 2
    assert moved == sorted(moved, reverse=True)


def test_an_empty_answer_explains_itself(screen: Screen) -> None:
    assert screen("kernels", MLP, "--only", "triton") == snapshot("""\
2> no kernel matches these filters (6 kernels)
""")
    assert screen("kernels", MLP, "--only", "scalr") == snapshot("""\
2> error: unknown trait of a kernel scalr
2> hint: did you mean scalar?
exit 2
""")


def test_remarks_name_their_kernel(screen: Screen) -> None:
    assert screen("kernels", FLIP) == snapshot("""\
model__0_inference_0.0  1 kernel
kernel            how           nodes  computes  loads  stores    reads   writes  calls
cpp_fused_flip_0  C++, 0/1 vec      1  rev           1       1  147 KiB  147 KiB      1
left out at 100 columns: from (a pipe has them)
  ! cpp_fused_flip_0: 1 of 1 loop nest is scalar (kernel reads and writes 294 KiB); the dump does
    not record why
""")


def test_the_page_of_a_kernel_is_that_of_the_command(screen: Screen) -> None:
    """What is on it: `test_show.py`."""
    page = to_text(ip.show("cpp_fused_flip_0", FLIP).document, 100)
    assert screen("show", "cpp_fused_flip_0", FLIP) == f"{page}\n"
    assert "void  kernel" not in page


def test_python_knows_what_the_command_line_knows() -> None:
    graph = ip.open_run(LAYERNORM).graphs[0]
    assert [row.name for row in graph.kernels()] == ["triton_per_fused_gelu_native_layer_norm_0"]
    assert "# op3 writes buf3" in graph.annotate("triton_per_fused_gelu_native_layer_norm_0")
