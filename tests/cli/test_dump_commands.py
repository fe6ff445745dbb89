"""`probe dump -- COMMAND` and `probe dump -m MODULE`, and how runs of ranks are shown and named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Probe

RANK = """
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

dist.init_process_group("gloo")
torch.compile(lambda x: functional.all_reduce(x.relu(), "sum", dist.group.WORLD) + 1)(torch.ones(64))
dist.destroy_process_group()
"""
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.mark.compiles
def test_ranks_of_torchrun_are_one_dump(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(RANK)
    ran = probe("dump", "--label", "two", "--", sys.executable, "-m", *TORCHRUN, "rank.py")
    assert ran.status == 0, ran.err
    assert ran.out.count("model__0_inference_0.0") == 1
    assert "rank0, rank1 compiled the same graphs (1): same kernels, same collectives" in ran.out
    runs = [line.split() for line in ran.err.splitlines() if line.startswith("run: ")]
    assert [words[2] for words in runs] == ["rank0,", "rank1,"]

    listed = probe("runs").out.splitlines()
    assert len(listed) == 2
    assert listed[1].split()[:4] == ["two", "2:", "ranks", "0-1"]
    rows = json.loads(probe("runs", "--json").out)["rows"]
    assert sorted((row["rank"], row["pid"]) for row in rows) == [(0, int(runs[0][4])), (1, int(runs[1][4]))]
    assert len({row["dump"] for row in rows}) == 1

    assert probe("kernels", "two").out.count("cpp_fused_add_1") == 1
    of_rank = probe("kernels", "two@rank1", "--json")
    assert json.loads(of_rank.out)["rows"][0]["graph"] == "model__0_inference_0.0"
    assert probe("kernels", "@rank1:0").out == probe("kernels", "@rank0/model__0").out
    checked = [json.loads(probe("check", *target, "--json").out)["check"] for target in ((), ("two",))]
    assert [len(check["graphs"]) for check in checked] == [2, 2]  # those of rank 1, too
    assert len(json.loads(probe("check", "two@rank1", "--json").out)["check"]["graphs"]) == 1
    missing = probe("kernels", "two@rank2")
    assert (missing.status, missing.err.splitlines()[-1]) == (2, "hint: there is @rank0, @rank1")
    assert len(list(tmp_path.glob("torch_compile_debug/run_*"))) == 2
    assert probe("runs", "--rm", "--yes", "two").status == 0
    assert not list(tmp_path.glob("torch_compile_debug/run_*"))


@pytest.mark.compiles
def test_a_module_runs_as_python_runs_it(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys, torch\nprint(sys.argv[1:], __name__, __spec__.name, sys.path[0])\n"
        "torch.compile(lambda x: x + 1)(torch.ones(4))\n"
    )
    ran = probe("dump", "-m", "package", "-q", "--json")
    assert ran.status == 0, ran.err
    assert ran.out.startswith(f"['-q', '--json'] __main__ package.__main__ {tmp_path}\n")
    assert "model__0_inference_0.0" in ran.out


def test_what_cannot_be_run_is_said(probe: Probe) -> None:
    for words, status, error, hint in (
        (("-m", "not_there"), 2, "there is no module not_there that can be run", "it is looked for in"),
        (("--", "not_there"), 2, "cannot start not_there: No such file or directory", ""),
        (("sh",), 2, "there is no script sh", "for a command put -- in front of it: probe dump -- sh ..."),
        (("--case", "a", "-m", "json"), 2, "--case is for scenarios, and json is a module", ""),
        (("--",), 2, "-- needs a COMMAND behind it", ""),
        (("-m",), 2, "-m needs a MODULE behind it", ""),
    ):
        ran = probe("dump", *words)
        assert (ran.status, ran.out) == (status, ""), words
        assert f"error: {error}" in ran.err
        assert hint in ran.err


def test_a_command_that_is_no_python_ends_as_it_does(probe: Probe) -> None:
    ran = probe("dump", "--", "sh", "-c", "echo said; exit 3")
    assert (ran.status, ran.out) == (2, "said\n")
    assert "sh exited with status 3; nothing had been dumped yet" in ran.err
