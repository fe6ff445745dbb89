"""`probe fusion` as a user meets it: names and targets, widths, pipes, JSON, and strangers' logs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import inductor_probe
from tests.conftest import DUMPS, Probe, Screen
from tests.dumps import LAYERNORM

WITHOUT_LOG = DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl"


def test_a_graph_shows_rounds_groups_steps_and_refusals(screen: Screen) -> None:
    assert screen("fusion", LAYERNORM) == snapshot("""\
model__0_forward_1.0  5 nodes before fusion, 1 after
rounds
  round      nodes   could be fused  fused  refused
  1          5 -> 2               4      3        3
  2          2 -> 1               1      1        0
  reordered  -                    0      0        0
fused
  node after fusion    of  kind   kernel                                     steps
  op0_op1_op3_op4_op5   5  Fused  triton_per_fused_gelu_native_layer_norm_0  1-4
steps
  step  round  first        second     shared  log
     1  1      op0          op1         3 MiB  stderr.txt:18
     2  1      op4          op5         3 MiB  stderr.txt:20
     3  1      op0_op1      op3         4 KiB  stderr.txt:24
     4  2      op0_op1_op3  op4_op5  3.01 MiB  stderr.txt:34
refused (pairs not fused in the end, pairs in all, lines of the log)
  unfused  pairs  lines  reason
        0      2      2  intermediate nodes between node1 & node2
                         A third node reads what one of them computes and computes what the other
                         reads, so it has to run between them: fuse it with one of them first.
        0      1      1  numel/rnumel mismatch (non-reduce) (…, …), (…, …)
                         They compute different numbers of elements: a Triton kernel has one grid.
log at stderr.txt:1: part 1 of 2, as the graph in the run, with its nodes before fusion and after

model__0_backward_3.1  9 nodes before fusion, 4 after
rounds
  round      nodes   could be fused  fused  refused
  1          9 -> 4               7      5       14
  2          4 -> 4               0      0        3
  reordered  -                    0      0        3
fused (2 nodes not fused)
  node after fusion    of  kind   kernel                                            steps
  op0_op1_op2_op3_op4   5  Fused  triton_per_fused_gelu_gelu…layer_norm_backward_0  1, 3-5
  op5_op7               2  Fused  triton_red_fused_gelu_gelu…layer_norm_backward_1  2
steps
  step  round  first    second             shared  log
     1  1      op1      op2                 6 MiB  stderr.txt:92
     2  1      op5      op7                 6 MiB  stderr.txt:94
     3  1      op3      op4                 3 MiB  stderr.txt:96
     4  1      op1_op2  op3_op4          9.02 MiB  stderr.txt:98
     5  1      op0      op1_op2_op3_op4  6.01 MiB  stderr.txt:100
refused (pairs not fused in the end, pairs in all, lines of the log)
  unfused  pairs  lines  reason
        3     14     17  no shared data
                         No access is the same in both (buffer, index and ranges), and torch counts
                         only such accesses as memory traffic saved.
                         torch._inductor.config.loop_ordering_after_fusion = True reorders the loops
                         of one node to make its accesses those of the other (not set in this dump)
        0      3      3  intermediate nodes between node1 & node2
                         A third node reads what one of them computes and computes what the other
                         reads, so it has to run between them: fuse it with one of them first.
tried and not fused, most shared first
  first                second   shared  reason
  op0_op1_op2_op3_op4  op5_op7     0 B  no shared data
  op5_op7              op6         0 B  no shared data
  op5_op7              op8         0 B  no shared data
log at stderr.txt:44: part 2 of 2, as the graph in the run, with its nodes before fusion and after
""")


def test_settings_that_cannot_help_are_not_offered(probe: Probe, tmp_path: Path) -> None:
    """For a CPU pair with a reduction two were offered: one for GPUs, one for pairs without a reduction."""
    reductions = DUMPS / "torch-2.13.0-cpu" / "multi_output_no_fuse"
    page = probe("fusion", "op3", "op4", reductions).out
    assert "torch says  no shared data" in page
    assert "torch._inductor.config" not in page
    # What was refused and is fused in the end needs no setting.
    (forward, backward) = json.loads(probe("fusion", LAYERNORM, "--json").out)["rows"]
    for count in (*forward["refusals"], *backward["refusals"]):
        assert count["unfused"] or not count["settings"]
    offered = probe("fusion", "op0", "op7", LAYERNORM).out
    assert "loop_ordering_after_fusion = True reorders" in offered
    assert "(not set in this dump)" in offered
    copy = shutil.copytree(LAYERNORM, tmp_path / "copy")
    for runnable in copy.rglob("fx_graph_runnable.py"):
        at = "import torch._inductor.config\n"
        assert at in runnable.read_text()
        line = "torch._inductor.config.loop_ordering_after_fusion = True\n"
        runnable.write_text(runnable.read_text().replace(at, at + line, 1))
    assert "loop_ordering_after_fusion" not in probe("fusion", "op0", "op7", copy).out  # it is set already


def test_a_pair_is_shown_in_every_graph_that_has_it(screen: Screen) -> None:
    out = screen("fusion", "op2", "op5", LAYERNORM)
    assert out == snapshot("""\
op2 and op5  refused  in model__0_backward_3.1
  torch says  no shared data
  meaning     No access is the same in both (buffer, index and ranges), and torch counts only such
              accesses as memory traffic saved.

            op2                                          op5
does        reduction                                    reduction
writes      buf2                                         buf5
device      cuda:0                                       cuda:0
loops       1024 elements reducing 768                   6144 elements reducing 128
sizes       [8, 128] and [768]                           [8, 768] and [128]
from        sum_2, mul_15, mul_13, mul_11, add_4,        sum_3, mul_18, mul_11, add_4, mul_6, add_2,
            mul_6, add_2, erf, mul_3, mul_10 and 6 more  erf, mul_3, mul_10, mul_9 and 5 more
fused into  op0_op1_op2_op3_op4                          op5_op7
kernel      triton_per_fused_gelu…layer_norm_backward_0  triton_red_fused_gelu…layer_norm_backward_1
order  neither needs the other
loops  do not fit: a Triton kernel has one number of elements and one reduction; these have 1024
       elements reducing 768 and 6144 elements reducing 128
used by both
  ! getitem_1  both read, no access is the same in both
      op2  128*d0 + d1 over d0: 8, d1: 128
      op5  128*d0 + d2 over d0: 8, d1: 768, d2: 128
  ! primals_1  both read, no access is the same in both
      op2  98304*d0 + 768*d1 + d2 over d0: 8, d1: 128, d2: 768
      op5  98304*d0 + d1 + 768*d2 over d0: 8, d1: 768, d2: 128
  ! rsqrt  both read, no access is the same in both
      op2  128*d0 + d1 over d0: 8, d1: 128
      op5  128*d0 + d2 over d0: 8, d1: 768, d2: 128
  ! tangents_1  both read, no access is the same in both
      op2  98304*d0 + 768*d1 + d2 over d0: 8, d1: 128, d2: 768
      op5  98304*d0 + d1 + 768*d2 over d0: 8, d1: 768, d2: 128
  ! buf0  both read, no access is the same in both
      op2  98304*d0 + 768*d1 + d2 over d0: 8, d1: 128, d2: 768
      op5  98304*d0 + d1 + 768*d2 over d0: 8, d1: 768, d2: 128
in the log (at stderr.txt:44: part 2 of 2, as the graph in the run, with its nodes before fusion and
after)
  round      pair                              shared  what                     line
  1          op2 with op5                         0 B  refused: no shared data    62
  2          op0_op1_op2_op3_op4 with op5_op7     0 B  refused: no shared data   110
  reordered  op0_op1_op2_op3_op4 with op5_op7     0 B  refused: no shared data   126
""")
    assert "model__0_forward_1.0" not in out  # it has no op2


@pytest.mark.parametrize("names", [["op3", "op4"], ["buf3", "buf4"], ["op3"], []])
def test_the_target_may_be_left_out_where_the_run_is(probe: Probe, tmp_path: Path, names: list[str]) -> None:
    shutil.copytree(LAYERNORM, tmp_path / "torch_compile_debug")
    here = probe("fusion", *names, cwd=tmp_path)
    named = probe("fusion", *names, "model__0_forward", cwd=tmp_path)
    assert here.status == named.status == 0
    assert named.out.rstrip("\n") in here.out
    assert "model__0_backward_3.1" in here.out
    assert "model__0_backward_3.1" not in named.out


def test_without_a_log_the_way_to_one_is_named(probe: Probe, screen: Screen) -> None:
    assert screen("fusion", "op2", "op3", WITHOUT_LOG) == snapshot("""\
op2 and op3  not fused, there is no log that says why  in model__0_inference_0.0
  The loops differ, from the outermost in: 256 and 4 x 3 x 256 x 256. (inferred)
  No access is the same in both (buffer, index and ranges): torch counts no traffic saved.
  Both run in cpp_fused__to_copy_abs_…view_where_zeros_like_0, unfused: a C++ function may have
  several loop nests.

        op2                                            op3
does    pointwise                                      pointwise
writes  buf2                                           buf3
device  cpu                                            cpu
loops   256                                            4 x 3 x 256 x 256
sizes   [256] and []                                   [4, 3, 256, 256] and []
from    iota_2, mul_3, add_7, convert_element_type_3,  iota_2, mul_3, add_7, convert_element_type_3,
        add_8, mul_4, sub_4, add_9,                    add_8, mul_4, sub_4, add_9,
        convert_element_type_4, clamp_min_2 and 22     convert_element_type_4, clamp_min_2 and 30
        more                                           more
kernel  cpp_fused__to_copy_abs_…where_zeros_like_0     cpp_fused__to_copy_abs_…where_zeros_like_0
order  op2 before op3, which reads what op2 writes
loops  do not fit: the loops differ, from the outermost in: 256 and 4 x 3 x 256 x 256
used by both
  ! buf2  op2 writes, op3 reads, no access is the same in both
      op2  c0 over c0: 256
      op3  c1 over c0: 12, c1: 256
no log: there is no log of the compiler with this run
to record why: `probe dump SCRIPT` records the reasons; so does
TORCH_LOGS=fusion,loop_ordering,schedule
""")
    assert "probe dump SCRIPT" in probe("fusion", WITHOUT_LOG).out


def test_a_pipe_gets_a_sentence_in_one_line(probe: Probe) -> None:
    out = probe("fusion", LAYERNORM).out
    assert "torch counts only such accesses as memory traffic saved" in out


def test_long_lists_end_with_how_to_see_the_rest(probe: Probe) -> None:
    target = DUMPS / "torch-2.13.0-cpu-programs" / "optimizer"
    short = probe("fusion", target, COLUMNS="120").out
    long = probe("fusion", "--all", target, COLUMNS="120").out
    assert "more: --all shows them" in short
    assert "more: --all shows them" not in long
    assert len(long.splitlines()) > len(short.splitlines())


@pytest.mark.parametrize(
    ("arguments", "record"),
    [([], "GraphFusion"), (["op0"], "NodeFusion"), (["op2", "op5"], "FusionDecision")],
)
def test_json_says_which_record_a_row_is(probe: Probe, arguments: list[str], record: str) -> None:
    ran = probe("fusion", *arguments, LAYERNORM, "--json")
    assert ran.status == 0
    assert {row["record"] for row in json.loads(ran.out)["rows"]} == {record}


def test_json_of_a_pair_has_reason_numbers_and_settings(probe: Probe) -> None:
    (row,) = json.loads(probe("fusion", "op0", "op7", LAYERNORM, "--json").out)["rows"]
    assert row["outcome"] == "refused"
    assert row["refusal"]["reason"] == "no shared data"
    assert row["settings"][0] == {
        "name": "torch._inductor.config.loop_ordering_after_fusion", "offered": "True", "value": "default",
    }  # fmt: skip
    assert row["attempts"][-1]["span"]["first"] > 0


def test_what_cannot_be_answered_is_a_sentence_and_a_hint(screen: Screen) -> None:
    names = (["op77", "op0"], ["op0", "buf0"], ["primals_1"], ["op0", "op1", "op2"])
    questions = [*([*each, LAYERNORM] for each in names), ["op0", "/not/there"], ["op0"]]
    assert "".join(screen("fusion", *words) for words in questions) == snapshot("""\
2> error: none of the 2 graphs of DUMPS/torch-2.11.0-cuda/layernorm_grad/run_2026_11_21_02_14_37_973433-pid_1237 has it: model__0_forward_1.0 has no node, buffer, kernel, FX node or operator op77
2> hint: did you mean op5 or op4 or op3?
exit 2
2> error: op0 and buf0 both name op0
2> hint: name two different nodes or buffers
exit 2
2> error: none of the 2 graphs of DUMPS/torch-2.11.0-cuda/layernorm_grad/run_2026_11_21_02_14_37_973433-pid_1237 has it: primals_1 is an input of model__0_forward_1.0: no node writes it, so none can be fused
2> hint: name a node (op3) or a buffer that one writes (buf3); probe show primals_1 has what this is
exit 2
2> error: at most 2 names and a run or graph, not 4 arguments
2> hint: see probe fusion --help
exit 2
2> error: /not/there does not exist
exit 2
2> error: no run in TMP/torch_compile_debug
2> hint: dump a script first: probe dump check_hflip.py
exit 2
""")  # noqa: E501


def test_a_log_and_ir_that_disagree_are_warned_of(probe: Probe, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(DUMPS / "torch-2.4.1-cpu" / "layernorm_grad", copy)
    log = copy / "stderr.txt"
    lines = log.read_text().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if "] fusing " in line)
    log.write_text("".join(lines[:first] + lines[first + 1 :]))
    ran = probe("fusion", copy)
    assert ran.status == 2
    assert "before fusion; it ends with others" in ran.out
    assert "warning: " in ran.err
    assert "but no earlier line creates them" in ran.err


def test_a_strangers_log_cannot_act_on_the_terminal(probe: Probe, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(LAYERNORM, copy)
    log = copy / "stderr.txt"
    evil = "no shared data \x1b]0;owned\x07\x1b[2J[bold]x[/bold] \u202e"
    log.write_text(log.read_text().replace("no shared data", evil))
    for arguments in ([], ["op2", "op5"], ["op2"]):
        ran = probe("fusion", *arguments, copy)
        assert not {"\x1b", "\x07", "\u202e"} & set(ran.out + ran.err)
    assert "[bold]x[/bold]" in probe("fusion", "op2", "op5", copy).out


def test_fusion_never_imports_torch() -> None:
    code = (
        "import sys; from inductor_probe.cli import run;"
        f"status = run(['fusion', {str(LAYERNORM)!r}]);"
        "heavy = {'torch', 'libcst', 'numpy'} & set(sys.modules); sys.exit(status or bool(heavy))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_library_answers_as_the_command_does() -> None:
    rows = inductor_probe.fusion("op2", "op5", LAYERNORM)
    assert len(rows) == 1
    assert rows.problems == ()
    assert "op2 and op5" in repr(rows)
    graph = inductor_probe.open_run(LAYERNORM).graph("model__0_backward_3.1")
    assert graph.fusion("op2", "op5") == rows
    assert graph.fusion()[0].graph == graph.name
