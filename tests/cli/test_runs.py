"""`probe runs`: what is there, and taking away what is no longer wanted."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.discovery.walk import Below, everything_below
from inductor_probe.model.manifest import CompileFailure, DumpProcess, DumpRecord, GraphBreak, GraphRecord
from tests.builders import manifest_text
from tests.conftest import Probe
from tests.dumps import FLIP as HFLIP
from tests.dumps import FOREACH, graph_in

PROBE = str(Path(sys.executable).with_name("probe"))
FLIP = graph_in(HFLIP)
CUDA = graph_in(FOREACH)


def manifest(graph: str | None, **changes: object) -> str:
    graphs = (GraphRecord(graph, "0/0", "first", case="channels_last"),) if graph else ()
    versions = (("torch", "2.13.0+cpu"),)
    return manifest_text(scenario="check_flip", duration_s=3.0, versions=versions, graphs=graphs, **changes)


def stamped(age: timedelta, pid: int) -> str:
    return f"run_{datetime.now() - age:%Y_%m_%d_%H_%M_%S_%f}-pid_{pid}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Four runs: labelled, of CUDA without a manifest, failed and empty, empty without a manifest."""
    tree = tmp_path / "torch_compile_debug"
    runs = {
        stamped(timedelta(hours=1), 900001): (FLIP, manifest(FLIP.name, label="before")),
        stamped(timedelta(days=2), 900002): (CUDA, None),
        stamped(timedelta(days=8), 900003): (None, manifest(None, outcome="failed", exit_status=1)),
        stamped(timedelta(days=30), 900004): (None, None),
    }
    for name, (graph, text) in runs.items():
        (tree / name / "torchdynamo").mkdir(parents=True)
        (tree / name / "torchinductor").mkdir()
        if graph:
            shutil.copytree(graph, tree / name / "torchinductor" / graph.name)
        if text:
            (tree / name / "probe.json").write_text(text)
    return tree


def test_a_run_that_is_removed_while_runs_are_listed_costs_no_other(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk_and_remove(path: Path, *, archives: bool) -> Below:
        found = everything_below(path, archives=archives)
        shutil.rmtree(next(run.path for run in found if run.path.name.endswith("900001")))
        return found

    monkeypatch.setattr("inductor_probe.api.runs.everything_below", walk_and_remove)
    rows = ip.runs(str(tree))
    assert [row.path.name[-6:] for row in rows] == ["900002", "900003", "900004"]
    (said,) = map(str, rows.problems)
    assert said.endswith("900001 was removed while it was read")


def two_processes(tmp_path: Path, ranks: tuple[int | None, int | None], **of_second: object) -> None:
    """Make the runs of a dump of two processes."""
    names = {pid: stamped(timedelta(minutes=pid - 900000), pid) for pid in (900001, 900002)}
    processes = tuple(
        DumpProcess(pid, 1, rank, 1, ("python",), name, 0, "ok", 0, None)
        for rank, (pid, name) in zip(ranks, names.items(), strict=True)
    )
    for pid, name in names.items():
        (tmp_path / name / "torchdynamo").mkdir(parents=True)
        record = DumpRecord("one", pid, 900001, processes)
        text = manifest(None, dump=record, **(of_second if pid == 900002 else {}))
        (tmp_path / name / "probe.json").write_text(text)


def test_a_dump_is_failed_where_a_compile_of_another_process_failed(probe: Probe, tmp_path: Path) -> None:
    """Its row said `ok`, as the script's own compiles were, above the line with the failure of a fork."""
    failure = CompileFailure("scheduling", "IndexError", "out of range", raised="InductorError")
    two_processes(tmp_path, (None, None), failures=(failure,))
    row = next(line for line in probe("runs", str(tmp_path)).out.splitlines() if "check_flip" in line)
    assert row.split()[-1] == "failed"


def test_ranks_that_ran_eagerly_are_not_said_to_have_called_no_compile(probe: Probe, tmp_path: Path) -> None:
    """DDP of a module that dynamo gives up on: the script itself has no graph break, its ranks have."""
    two_processes(tmp_path, (None, 0), graph_breaks=(GraphBreak("a hook", "ddp.py:7"),))
    said = probe("runs", str(tmp_path)).out
    assert said.count("everything ran eagerly: dynamo gave up on every function") == 2
    assert "nothing was compiled" not in said


def test_runs_are_listed_latest_first(probe: Probe, tree: Path) -> None:
    ran = probe("runs", cwd=tree.parent)
    assert ran.status == 0
    assert ran.err == ""
    header, *rows = ran.out.splitlines()
    assert header.split() == ["run", "scenario", "cases", "torch", "device", "graphs", "size", "age", "state"]
    assert rows[0].split()[:6] == ["before", "check_flip", "channels_last", "2.13.0", "cpu", "1"]
    assert "900002" in rows[1]
    assert " cuda " in rows[1]
    assert " 2.11.0 " in rows[1]
    assert rows[2].endswith("8 d  failed")
    assert rows[3].endswith("30 d  empty")
    assert any("consistent with a warm cache" in row for row in rows[4:])
    assert any("the script exited with status 1 before inductor compiled anything" in row for row in rows[4:])


def test_json_has_states_sizes_and_ages(probe: Probe, tree: Path) -> None:
    rows = json.loads(probe("runs", "--json", cwd=tree.parent).out)["rows"]
    assert [row["state"] for row in rows] == ["ok", "unknown", "failed", "empty"]
    assert rows[0]["size"] == sum(
        path.stat().st_size for path in Path(rows[0]["path"]).rglob("*") if path.is_file()
    )
    assert [row["devices"] for row in rows] == [["cpu"], ["cuda"], [], []]
    assert time.time() - rows[0]["made"] == pytest.approx(3600, abs=300)


def test_80_columns_hold_and_names_work_as_they_are_shown(probe: Probe, tree: Path) -> None:
    ran = probe("runs", cwd=tree.parent, COLUMNS="80")
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    for row in ran.out.splitlines()[1:5]:
        (one,) = json.loads(probe("runs", row.split()[0], "--json", cwd=tree.parent).out)["rows"]
        assert one["label"] == row.split()[0] or one["name"].startswith(row.split()[0])


def test_runs_of_several_trees_are_called_by_the_way_to_them(probe: Probe, tree: Path) -> None:
    other = tree.parent / "older" / "torch_compile_debug" / stamped(timedelta(days=400), 900005)
    shutil.copytree(FLIP, other / "torchinductor" / FLIP.name)
    shutil.copytree(FLIP, tree.parent / "kept" / "best graph")
    out = probe("runs", cwd=tree.parent).out
    assert "\nolder " in out
    assert "  1 y" in out
    assert any(line.startswith("kept ") and line.endswith("graphs") for line in out.splitlines())
    (one,) = json.loads(probe("runs", "older", "--json", cwd=tree.parent).out)["rows"]
    assert one["path"] == str(other)


@pytest.mark.parametrize(
    "inside", ["torch_compile_debug", "torch_compile_debug/{}", "torch_compile_debug/{}/torchinductor"]
)
def test_from_inside_of_a_tree_the_tree_is_meant(probe: Probe, tree: Path, inside: str) -> None:
    cwd = tree.parent / inside.format(min(tree.iterdir()).name)
    assert len(json.loads(probe("runs", "--json", cwd=cwd).out)["rows"]) == 4


def test_an_archive_is_listed_and_not_removed(probe: Probe, tree: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "sent"), "gztar", tree.parent, tree.name)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "empty").mkdir()
    rows = json.loads(probe("runs", "../sent.tar.gz", "--json", cwd=tmp_path / "empty", **environment).out)[
        "rows"
    ]
    assert len(rows) == 4
    ran = probe("runs", "--rm", "--empty", "--yes", "../sent.tar.gz", cwd=tmp_path / "empty", **environment)
    assert ran.status == 2
    assert ran.out.count("unpacked from") == 2
    assert all(Path(row["path"]).exists() for row in rows)


def test_nothing_there_is_said(probe: Probe, tmp_path: Path) -> None:
    ran = probe("runs")
    assert (ran.status, ran.out, ran.err) == (0, "", f"no run below {tmp_path}\n")
    assert json.loads(probe("runs", "--json").out)["rows"] == []


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["before"], 3),
        (["--empty"], 2),
        (["--older-than", "7d"], 2),
        (["--older-than", "7d", "--empty"], 2),
        (["--older-than", "1w", "torch_compile_debug"], 2),
        (["--older-than", "60d"], 4),
        (["--older-than", "30m"], 0),
    ],
)
def test_runs_are_picked_by_name_age_and_emptiness(
    probe: Probe, tree: Path, arguments: list[str], left: int
) -> None:
    dry = probe("runs", "--rm", *arguments, "--dry-run", cwd=tree.parent)
    assert dry.status == 0
    assert dry.out.count("would remove") == 4 - left
    assert len(list(tree.iterdir())) == 4
    ran = probe("runs", "--rm", *arguments, "--yes", cwd=tree.parent)
    assert ran.status == 0
    assert ran.out.count("removed ") == 4 - left
    assert len(list(tree.iterdir())) == left


def test_a_run_that_is_kept_is_told_and_the_others_go(probe: Probe, tree: Path) -> None:
    oldest = min(tree.iterdir())
    (oldest / "notes.txt").write_text("mine")
    ran = probe("runs", "--rm", "--empty", "--yes", cwd=tree.parent)
    assert ran.status == 2
    assert f"kept {oldest}: notes.txt was not written by torch or probe" in ran.out
    assert len(list(tree.iterdir())) == 3
    (row,) = json.loads(probe("runs", "--rm", oldest, "--yes", "--json", cwd=tree.parent).out)["removals"]
    assert row["removed"] is False
    assert row["removal"]["blockers"] == [{"code": "foreign-file", "subject": "notes.txt"}]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--rm"], "--rm needs the runs to remove"),
        (["--rm", "torch_compile_debug"], "is not a run: it holds 4"),
        (["--rm", "before"], "cannot ask whether to remove them"),
        (["--rm", "nothing"], "no graph or run called nothing"),
        (["--rm", "run_", "--yes"], "run_ is the start of 4 runs"),
        (["--older-than", "soon"], "invalid age 'soon'"),
        (["--older-than", "9999999999d"], "invalid age"),
        (["/no/such/place"], "/no/such/place does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_removed(
    probe: Probe, tree: Path, arguments: list[str], error: str
) -> None:
    ran = probe("runs", *arguments, cwd=tree.parent)
    assert ran.status == 2
    assert error in ran.err
    assert len(list(tree.iterdir())) == 4


@pytest.mark.parametrize("link", ["link", "./link/", "links/../link", "trees/{}", "link/torchinductor/.."])
def test_a_link_that_is_named_does_not_remove_the_run_behind_it(probe: Probe, tree: Path, link: str) -> None:
    run = max(tree.iterdir())
    (tree.parent / "links").mkdir()
    (tree.parent / "link").symlink_to(run)
    (tree.parent / "trees").symlink_to(tree)
    for picked in ([], ["--older-than", "0s"]):
        ran = probe("runs", "--rm", "--yes", *picked, link.format(run.name), cwd=tree.parent)
        assert (ran.status, run.is_dir(), len(list(tree.iterdir()))) == (2, True, 4)
        assert f"it is reached through a link, and lies at {run}" in " ".join(ran.out.split())
    ran = probe("runs", "--rm", "--yes", "links/../torch_compile_debug/" + run.name, cwd=tree.parent)
    assert (ran.status, run.exists()) == (0, False)


def test_a_path_of_a_file_beside_a_run_does_not_remove_the_run(probe: Probe, tree: Path) -> None:
    run, *others = tree.iterdir()
    for other in others:
        shutil.rmtree(other)
    for file in (tree / "notes.txt", tree.parent / "notes.txt", run / "torchinductor" / "notes.txt"):
        file.write_text("mine")
        for picked in ([], ["--older-than", "0s"]):
            ran = probe("runs", "--rm", "--yes", *picked, file, cwd=tree.parent)
            assert ran.status == 2
            assert f"{file} is a file and not a run" in ran.err
        file.unlink()
        assert run.is_dir()


def test_a_question_is_asked_in_a_terminal(tree: Path) -> None:
    pty = pytest.importorskip("pty")
    for answer, left in ((b"n\n", 4), (b"y\n", 3)):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(tree.parent)
            os.execv(PROBE, ["probe", "runs", "--rm", "before"])  # noqa: S606 - a terminal of its own
        said = b""
        os.write(terminal, answer)
        try:
            while data := os.read(terminal, 1000):
                said += data
        except OSError:  # the terminal is closed when the command ends
            pass
        os.waitpid(pid, 0)
        assert b"Remove 1 run," in said
        assert len(list(tree.iterdir())) == left


def test_the_list_shows_itself(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.parent)
    runs = ip.runs(older_than=timedelta(days=1))
    assert len(runs) == 3
    assert "failed" in repr(runs)
    assert "<table" in runs._repr_html_()
