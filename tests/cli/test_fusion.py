"""`probe fusion` as a user meets it: names and targets, widths, pipes, JSON, and strangers' logs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import inductor_probe
from tests.conftest import DUMPS, Probe
from tests.dumps import LAYERNORM

WITHOUT_LOG = DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl"


def test_a_graph_shows_rounds_groups_steps_and_refusals(probe: Probe) -> None:
    ran = probe("fusion", LAYERNORM)
    assert (ran.status, ran.err) == (0, "")
    assert "model__0_forward_1.0  5 nodes before fusion, 1 after" in ran.out
    for title in ("rounds", "steps", "refused (", "tried and not fused, most shared first"):
        assert f"\n{title}" in ran.out
    assert "torch._inductor.config.loop_ordering_after_fusion = True reorders" in ran.out


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


def test_a_pair_is_shown_in_every_graph_that_has_it(probe: Probe) -> None:
    ran = probe("fusion", "op2", "op5", LAYERNORM)
    assert ran.status == 0
    assert "op2 and op5" in ran.out
    assert "model__0_backward_3.1" in ran.out
    assert "model__0_forward_1.0" not in ran.out  # it has no op2


@pytest.mark.parametrize("names", [["op3", "op4"], ["buf3", "buf4"], ["op3"], []])
def test_the_target_may_be_left_out_where_the_run_is(probe: Probe, tmp_path: Path, names: list[str]) -> None:
    shutil.copytree(LAYERNORM, tmp_path / "torch_compile_debug")
    here = probe("fusion", *names, cwd=tmp_path)
    named = probe("fusion", *names, "model__0_forward", cwd=tmp_path)
    assert here.status == named.status == 0
    assert here.out.startswith(named.out.rstrip("\n"))
    assert "model__0_backward_3.1" in here.out
    assert "model__0_backward_3.1" not in named.out


def test_without_a_log_the_way_to_one_is_named(probe: Probe) -> None:
    ran = probe("fusion", "op2", "op3", WITHOUT_LOG)
    assert ran.status == 0
    assert "not fused, there is no log that says why" in ran.out
    assert "TORCH_LOGS=fusion,loop_ordering,schedule" in ran.out
    assert "probe dump SCRIPT" in probe("fusion", WITHOUT_LOG).out


@pytest.mark.parametrize("columns", [80, 140])
def test_pages_fit_the_terminal(probe: Probe, columns: int) -> None:
    for arguments in ([], ["op0"], ["op0", "op4"], ["op2", "op3"]):
        ran = probe("fusion", *arguments, LAYERNORM, COLUMNS=str(columns))
        assert all(len(line) <= columns for line in ran.out.splitlines())


def test_a_pipe_gets_whole_lines_without_colours(probe: Probe) -> None:
    out = probe("fusion", LAYERNORM).out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())
    assert "torch counts only such accesses as memory traffic saved" in out  # in one line


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["op77", "op0", LAYERNORM], "has no node or buffer op77"),
        (["op0", "buf0", LAYERNORM], "both name op0"),
        (["primals_1", LAYERNORM], "is an input"),
        (["op0", "op1", "op2", LAYERNORM], "at most 2 names"),
        (["op0", "/not/there"], "/not/there does not exist"),
        (["op0"], "no run in"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence_and_a_hint(
    probe: Probe, arguments: list[str], said: str
) -> None:
    ran = probe("fusion", *arguments)
    assert ran.status == 2
    assert said in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


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
