"""`probe expect` as it is typed: what holds, what fails, what is not known, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from tests.conftest import DUMPS

HFLIP = DUMPS / "torch-2.13.0-cpu" / "hflip_cf"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--kernels", "1", "--no-extern"), 0, "2 expectations: all hold"),
        (("--kernels", "1", "--vectorised"), 1, "--vectorised FAILS: cpp_fused_flip_0 has a loop nest"),
        (("--vectorised", "op0", "--layout", "buf0=contiguous"), 1, "+ --layout buf0=contiguous: buf0 is"),
        (("--no-copy",), 2, "--no-copy is not known: the dump does not record copies"),
        (("--no-copy", "--kernels", "3"), 1, "1 failed (--kernels 3), 1 not known (--no-copy)"),
    ],
)
def test_the_exit_status_says_whether_all_hold(
    words: tuple[str, ...], status: int, says: str, probe: Callable[..., Any]
) -> None:
    ran = probe("expect", HFLIP, *words)
    assert says in ran.out
    assert ran.status == status, ran.err


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (
            (HFLIP, "--fused", "op0+op7"),
            "FX node or operator op7",
            "did you mean op0?",
        ),
        ((HFLIP, "--layout", "arg0=contiguous"), "has no buffer arg0", "arg0_1"),
        ((HFLIP,), "nothing is expected", "--kernels 1 --vectorised"),
        ((HFLIP, "--case", "channels_last", "--kernels", "1"), "was made already", "name the script"),
        ((HFLIP, "--fused", "op0"), "invalid --fused op0", "write --fused op0+op1"),
        (("nowhere", "--kernels", "1"), "there is no script nowhere", ""),
        ((HFLIP, "--no-copies"), "No such option", ""),
    ],
)
def test_what_is_not_there_is_a_sentence(
    words: tuple[str | Path, ...], says: str, hint: str, probe: Callable[..., Any]
) -> None:
    ran = probe("expect", *words)
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err
    assert hint in ran.err


def test_what_fails_fails_beside_a_file_that_cannot_be_read(
    tmp_path: Path, probe: Callable[..., Any]
) -> None:
    """It ended with status 2, as if nothing could be said."""
    shutil.copytree(HFLIP, tmp_path / "dump")
    (transformed,) = (tmp_path / "dump").rglob("fx_graph_transformed.py")
    transformed.write_bytes(b"\0" * 9)
    ran = probe("expect", tmp_path / "dump", "--vectorised")
    assert (ran.status, "fx_graph_transformed.py" in ran.err) == (1, True), ran.err
    assert probe("expect", tmp_path / "dump", "--kernels", "1").status == 2


def test_json_has_the_decisions(probe: Callable[..., Any]) -> None:
    ran = probe("expect", HFLIP, "--vectorised", "--kernels", "1", "--json")
    assert ran.status == 1
    output = json.loads(ran.out)
    assert (output["verb"], output["ok"]) == ("expect", False)
    assert [one["standing"] for one in output["outcomes"]] == ["fails", "holds"] or [
        one["standing"] for one in output["outcomes"]
    ] == ["holds", "fails"]
    (failed,) = [one for one in output["outcomes"] if one["standing"] == "fails"]
    assert failed["expectation"]["kind"] == "vectorised"
    assert failed["causes"]


@pytest.mark.compiles
@pytest.mark.usefixtures("warm")
def test_a_part_that_torch_silently_leaves_out_of_cuda_graphs_fails(
    tmp_path: Path, probe: Callable[..., Any]
) -> None:
    """pytorch/pytorch#147648: copies to the CPU and back, and what is added there, are no part of a graph."""
    run = ip.dump(Path(__file__).with_name("partitioned_program.py"), target="h100", out=tmp_path)
    ran = probe("expect", run.path, "--cudagraphed")
    assert ran.status == 1, ran.err
    assert "--cudagraphed FAILS: CUDA graphs replay 2 parts, without op2, op3, op4" in ran.out
    assert "partitioned_program.py:13 in f: y_cpu = y1.cpu() + 1" in ran.out
    assert "partitioned_program.py:15 in f: return x1 + y1 + z + y_cpu.cuda()" in ran.out
    assert probe("expect", run.path, "--cudagraphed", "op0").status == 0
    assert probe("expect", run.path, "--cudagraphed", "op3").status == 1
    (row,) = ip.memory(run, measure=False).record.rows  # partitions are followed where they are called
    assert row.uncounted == ()
    assert row.left == 16
    assert probe("expect", HFLIP, "--cudagraphed").status == 2  # it says nothing of CUDA graphs
