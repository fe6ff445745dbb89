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
  round  first        second     shared  decision                                  log
  1      op0          op1         3 MiB  fused: step 1, both use primals_1 (read)  stderr.txt:18
  1      op4          op5         3 MiB  fused: step 2, second reads first (read)  stderr.txt:20
  1      op0_op1      op3         4 KiB  fused: step 3, second reads first (read)  stderr.txt:24
  2      op0_op1_op3  op4_op5  3.01 MiB  fused: step 4, second reads first (read)  stderr.txt:34
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
  round  first    second             shared  decision
  1      op1      op2                 6 MiB  fused: step 1, both use tangents_1, buf0 and 1 more
                                             (read)
  1      op5      op7                 6 MiB  fused: step 2, both use tangents_1, buf0 (read)
  1      op3      op4                 3 MiB  fused: step 3, second reads first (read)
  1      op1_op2  op3_op4          9.02 MiB  fused: step 4, second reads first (read)
  1      op0      op1_op2_op3_op4  6.01 MiB  fused: step 5, second reads first (read)
left out at 100 columns: log (a pipe has them)
not fused in the end
          about               kind    decision                                                 bytes
  missed  op0_…op4 + op5_op7  fusion  refused: buf0 in another order of loops (read)        9.01 MiB
                                      [loop-order-differs]
  missed  op5_op7 + op6       fusion  refused: buf5 in another order of loops (read)          24 KiB
                                      [loop-order-differs]
  missed  op5_op7 + op8       fusion  refused: buf7 in another order of loops (read)          24 KiB
                                      [loop-order-differs]
log at stderr.txt:44: part 2 of 2, as the graph in the run, with its nodes before fusion and after
""")


def test_settings_that_cannot_help_are_not_offered(probe: Probe, tmp_path: Path) -> None:
    """For a CPU pair with a reduction two were offered: one for GPUs, one for pairs without a reduction."""
    reductions = DUMPS / "torch-2.13.0-cpu" / "multi_output_no_fuse"
    page = probe("fusion", "op3", "op4", reductions).out
    assert "arg0_1 as" in page or "arg0_1 at" in page
    assert "torch._inductor.config" not in page
    offered = "torch._inductor.config.loop_ordering_after_fusion = True (False in this dump)"
    assert offered not in probe("fusion", "op0", "op7", LAYERNORM).out  # which is torch's default
    copy = shutil.copytree(LAYERNORM, tmp_path / "copy")
    for runnable in copy.rglob("fx_graph_runnable.py"):
        at = "import torch._inductor.config\n"
        assert at in runnable.read_text()
        line = "torch._inductor.config.loop_ordering_after_fusion = False\n"
        runnable.write_text(runnable.read_text().replace(at, at + line, 1))
    assert offered in probe("fusion", "op0", "op7", copy).out


def test_a_pair_is_shown_in_every_graph_that_has_it(screen: Screen) -> None:
    out = screen("fusion", "op2", "op5", LAYERNORM)
    assert out == snapshot("""\
op2 and op5  refused  in model__0_backward_3.1
! op0_op1_op2_op3_op4 and op5_op7 are not fused: op0_op1_op2_op3_op4 writes buf0 at 98304*d0 +
  768*d1 + d2 over d0: 8, d1: 128, d2: 768, op5_op7 reads it at 98304*d0 + d1 + 768*d2 over d0: 8,
  d1: 768, d2: 128; these would be equal in another order of loops, and torch reorders loops that do
  not reduce, and both nodes reduce, so it counts 0 bytes as shared [loop-order-differs] (read in
  the dump)
  probe why op2 op5 shows what was compared, and what changes it

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
loops  do not fit: both reduce: op2 768 elements each to 1024, op5 128 to 6144; a Triton kernel has
       one size of both
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
decided about them, and about nodes that hold them
  round  first                second   shared  decision
  -      op2                  op5           -  refused: primals_1 in another order of loops (read)
  -      op0_op1_op2_op3_op4  op5_op7       -  refused: buf0 in another order of loops (read)
left out at 100 columns: log (a pipe has them)
log at stderr.txt:44: part 2 of 2, as the graph in the run, with its nodes before fusion and after
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
op2 and op3  refused  in model__0_inference_0.0
! op2 and op3 are not fused: op2 writes buf2 at c0 over c0: 256, op3 reads it at c1 over c0: 12, c1:
  256; torch counts a buffer as shared only where both use it at the same index in the same loops,
  so it counts 0 bytes [accesses-differ] (inferred)
  probe why op2 op3 shows what was compared, and what changes it
  kernel  cpp_fused__to_copy_abs_…view_where_zeros_like_0 runs both all the same: a C++ function may
          have several loop nests

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
loops  do not fit: the loops of op2 are (256), those of op3 (4, 3, 256, 256); C++ code has one loop
       nest for both only if these are equal, the first runs over all that the second reduces, or
       one is a single loop over as many elements; of the outer loops 0 agree
used by both
  ! buf2  op2 writes, op3 reads, no access is the same in both
      op2  c0 over c0: 256
      op3  c1 over c0: 12, c1: 256
no log: there is no log of the compiler with this run
to record reasons: `probe dump SCRIPT` records the reasons; so does
TORCH_LOGS=fusion,loop_ordering,schedule
""")
    assert "probe dump SCRIPT" in probe("fusion", WITHOUT_LOG).out


def test_a_pipe_gets_a_sentence_in_one_line(probe: Probe) -> None:
    out = probe("fusion", LAYERNORM).out
    assert "fused: step 4, second reads first (read)" in out


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


def test_json_of_a_pair_has_the_cause_of_why_and_each_try() -> None:
    [row] = inductor_probe.fusion("op0", "op7", LAYERNORM)
    [cause] = inductor_probe.why("op0", "op7", LAYERNORM, kinds=["fusion"])[0].causes
    assert cause in row.causes
    assert (row.outcome, cause.knowledge) == ("refused", "read")
    assert cause.decision is not None
    assert cause.decision.cause == "loop-order-differs"
    assert row.tried[-1] == cause.decision
    assert cause.decision.span is not None


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
