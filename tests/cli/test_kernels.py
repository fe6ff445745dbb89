"""`probe kernels` as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import inductor_probe as ip
from tests.conftest import DUMPS, Probe
from tests.dumps import LAYERNORM

MLP = DUMPS / "torch-2.13.0-cpu" / "mlp_train"


@pytest.mark.parametrize("width", [80, 140])
def test_the_table_fits_the_terminal(probe: Probe, width: int) -> None:
    for dump in (MLP, LAYERNORM):
        ran = probe("kernels", dump, COLUMNS=str(width))
        assert ran.status == 0, ran.err
        assert all(len(line) <= width for line in ran.out.splitlines())
        assert ran.out.count("model__0_") == 2


def test_a_pipe_has_whole_names_and_no_colour(probe: Probe) -> None:
    ran = probe("kernels", LAYERNORM)
    assert "triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_2" in ran.out
    assert "\x1b" not in ran.out
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


def test_an_empty_answer_explains_itself(probe: Probe) -> None:
    ran = probe("kernels", MLP, "--only", "triton")
    assert (ran.status, ran.out) == (0, "")
    assert "no kernel matches these filters (6 kernels)" in ran.err
    ran = probe("kernels", MLP, "--only", "scalr")
    assert ran.status == 2
    assert "unknown trait of a kernel scalr" in ran.err
    assert "did you mean scalar" in ran.err


def test_remarks_name_their_kernel(probe: Probe) -> None:
    ran = probe("kernels", DUMPS / "torch-2.13.0-cpu" / "hflip_cl")
    assert (
        "! cpp_fused_flip_0: 1 of 1 loop nest is scalar (kernel reads and writes 294 KiB); the dump does not"
    ) in ran.out
    page = probe("show", "cpp_fused_flip_0", DUMPS / "torch-2.13.0-cpu" / "hflip_cl").out
    assert "! 1 of 1 loop nest is scalar" in page
    assert "it has reversed accesses" in page  # as a fact of the nest, and not as the cause


def test_the_page_of_a_kernel(read: Callable[..., object]) -> None:
    shown = repr(ip.show("cpp_fused_flip_0", DUMPS / "torch-2.13.0-cpu" / "hflip_cl"))
    for part in (
        "C++, 0/1 vec",
        "in_ptr0",
        "const uint8_t*",
        "uint8 [1, 3, 224, 224]",
        "x0 224 (omp for)",
        "launches",
    ):
        assert part in shown
    assert "void  kernel" not in shown


def test_python_knows_what_the_command_line_knows() -> None:
    graph = ip.open_run(LAYERNORM).graphs[0]
    assert [row.name for row in graph.kernels()] == ["triton_per_fused_gelu_native_layer_norm_0"]
    assert "# op3 writes buf3" in graph.annotate("triton_per_fused_gelu_native_layer_norm_0")
