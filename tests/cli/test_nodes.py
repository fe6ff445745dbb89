"""`probe nodes` as a user meets it."""

from __future__ import annotations

import json
import re

import pytest
from inline_snapshot import snapshot

import inductor_probe as ip
from tests.conftest import Probe, Ran, Screen
from tests.dumps import ANTIALIAS, LAYERNORM, TRAINING


def names(ran: Ran) -> list[str]:
    assert ran.status == 0, ran.err
    return [row["node"] for row in json.loads(ran.out)["rows"]]


def test_a_table_a_graph(screen: Screen) -> None:
    assert screen("nodes", TRAINING) == snapshot("""\
model__0_forward_1.0  6 nodes (3 extern, 3 pointwise), 3 of them in 1 fused; 3 kernels
node  does       fused  writes             loops  kernel
op0   extern         -  buf0 f32[32, 256]  -      extern_kernels.addmm
op1   extern         -  buf1 i64[1]        -      aten.randint.low_out
op2   pointwise      1  buf2 f32[32, 256]  8192   cpp_fused_gelu_native_dropout_0
op3   pointwise      1  buf3 b8[32, 256]   8192   cpp_fused_gelu_native_dropout_0
op4   pointwise      1  buf4 f32[32, 256]  8192   cpp_fused_gelu_native_dropout_0
op5   extern         -  buf5 f32[32, 64]   -      extern_kernels.addmm
left out at 100 columns: reads, ops, users, from (a pipe has them)
fused  node         class
    1  op2_op3_op4  FusedSchedulerNode

model__0_backward_3.1  6 nodes (3 extern, 2 reduction, 1 pointwise); 3 kernels
node  does           writes              loops     reads                  kernel
op0   extern         buf0 f32[32, 256]   -         primals_4, tangents_1  extern_kernels.mm
op1   extern         buf1 f32[64, 256]   -         mul_4, tangents_1      extern_kernels.mm
op2   reduction sum  buf2 f32[1, 64]     64 | 32   tangents_1             cpp_fused_gelu_…sum_0
op3   pointwise      buf3 f32[32, 256]   8192      addmm, gt, buf0        cpp_fused_gelu_…sum_0
op4   extern         buf4 f32[256, 128]  -         primals_3, buf3        extern_kernels.mm
op5   reduction sum  buf5 f32[1, 256]    256 | 32  buf3                   cpp_fused_sum_1
left out at 100 columns: ops, users, memory, from (a pipe has them)
""")


def test_a_pipe_gets_everything_on_one_line_a_node(probe: Probe) -> None:
    ran = probe("nodes", LAYERNORM)
    (line,) = [line for line in ran.out.splitlines() if line.startswith("op4 ") and "buf3" not in line]
    assert "triton_per_fused_gelu_native_layer_norm_0" in line
    (number,) = re.findall(r"^op4 +\w+ +(\d+) ", line)
    assert re.search(rf"^ +{number}  op0_op1_op3_op4_op5  FusedSchedulerNode$", ran.out, re.MULTILINE)


def test_fused_nodes_that_do_not_fit_into_one_nest_are_marked(probe: Probe) -> None:
    out = probe("nodes", LAYERNORM, COLUMNS="120").out
    assert "786432 ≠" in out
    assert "do not fit into one nest of loops" in out


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--kind", "reduction"], ["op2", "op5"]),
        (["--kind", "ExternKernelOut"], ["op0", "op5", "op0", "op1", "op4"]),
        (["--kind", "fused"], ["op2", "op3", "op4"]),
        (["--kernel", "cpp_fused_sum"], ["op5"]),
        (["--reads", "tangents_1"], ["op0", "op1", "op2"]),
        (["--writes", "buf3"], ["op3", "op3"]),
        (["--op", "erf"], ["op4", "op3"]),
        (["--op", "sum"], ["op2", "op5"]),
        (["--kind", "reduction", "--reads", "buf3"], ["op5"]),
    ],
)
def test_filters(probe: Probe, arguments: list[str], found: list[str]) -> None:
    assert names(probe("nodes", TRAINING, "--json", *arguments)) == found


def test_nodes_of_a_line(probe: Probe) -> None:
    by_line = names(probe("nodes", ANTIALIAS, "--json", "--source", "capture.py:67"))
    assert by_line == ["op1"]
    assert names(probe("nodes", ANTIALIAS, "--json", "--source", "67")) == by_line


def test_sorting_is_by_graph_first(probe: Probe) -> None:
    found = names(probe("nodes", TRAINING, "--json", "--sort", "ops"))
    assert found[:3] == ["op4", "op2", "op3"]
    assert found[6:8] == ["op3", "op2"]


def test_json_has_loops_buffers_and_links(probe: Probe) -> None:
    ran = probe("nodes", TRAINING, "--json", "--kernel", "cpp_fused_sum")
    (row,) = json.loads(ran.out)["rows"]
    assert (row["ranges"], row["reductions"]) == ({"iteration": [256], "reduction": [32]}, ["sum"])
    assert (row["op_count"], row["writes"][0]["name"]) == (sum(row["operations"].values()), "buf5")
    assert row["writes"][0]["layout"]["stride"] == [256, 1]
    assert row["link"]["kernel_proof"] == {
        "code": "writes-buffer", "knowledge": "read", "operands": {"step": "launch", "buffer": "buf5"},
    }  # fmt: skip


def test_before_fusion_there_are_at_least_as_many(probe: Probe) -> None:
    before = names(probe("nodes", LAYERNORM, "--json", "--pre"))
    assert len(before) >= len(names(probe("nodes", LAYERNORM, "--json")))


def test_what_nothing_has_is_said_with_near_names(screen: Screen) -> None:
    options = [["--kind", "reductio"], ["--reads", "buf99"], ["--kernel", "cpp_fused_sun"]]
    assert "".join(screen("nodes", TRAINING, *option) for option in options) == snapshot("""\
2> error: unknown kind of node reductio
2> hint: did you mean reduction or result?
exit 2
2> error: no buffer or input buf99
2> hint: did you mean buf5 or buf4 or buf3?
exit 2
2> error: no node runs in a kernel cpp_fused_sun
2> hint: did you mean cpp_fused_sum_1 or cpp_fused_gelu_native_dropout_0?
exit 2
""")
    assert screen("nodes", ANTIALIAS, "--source", "capture.py:1") == snapshot("""\
2> error: no node is known to come from capture.py:1
2> hint: did you mean /repro/capture.py:51 or /repro/capture.py:69 or /repro/capture.py:68?
exit 2
""")


@pytest.mark.parametrize("arguments", [["--kind", "scan"], ["--kind", "unlinked"], ["--op", "tan"]])
def test_none_is_an_answer(probe: Probe, arguments: list[str]) -> None:
    ran = probe("nodes", TRAINING, *arguments)
    assert (ran.status, ran.out) == (0, "")
    assert "no node matches these filters (12 nodes)" in ran.err
    assert names(probe("nodes", TRAINING, "--json", *arguments)) == []


def test_the_api_mirrors_the_command() -> None:
    run = ip.open_run(TRAINING)
    found = run.nodes()
    assert len(found) == 12
    assert [row.node for row in found.where(kind="reduction")] == ["op2", "op5"]
    assert repr(run.graphs[0].nodes()).startswith("model__0_forward_1.0  6 nodes")
