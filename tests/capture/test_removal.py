"""What is removed of a run, and everything that keeps it: no file of a user's is ever lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_probe.api.runs import remove_run
from inductor_probe.bench_file.bench_file import is_as_made, seal
from inductor_probe.capture import removal as removal_of_runs
from inductor_probe.capture.removal import plan_removal, remove
from inductor_probe.errors import ProbeError
from inductor_probe.files import write_whole
from inductor_probe.model.runs import Blocker, Removal
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.report.words.runs import blocker_text
from inductor_probe.store.made_here import remember
from tests.conftest import DUMPS
from tests.dumps import graph_in

FLIP = graph_in(DUMPS / "torch-2.13.0-cpu" / "hflip_cl")
NAME = "run_2026_11_21_02_09_10_346092-pid_999999"
GRAPH = f"torchinductor/{FLIP.name}"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run as torch 2.13 leaves it, with a neighbour, in a folder with a user's things."""
    tree = tmp_path / "work" / "torch_compile_debug"
    for name in (NAME, "run_2026_11_22_00_00_00_000000-pid_999998"):
        shutil.copytree(FLIP, tree / name / GRAPH)
        (tree / name / "torchinductor" / "aot_model___0_debug.log").touch()
        (tree / name / "torchdynamo").mkdir()
        (tree / name / "torchdynamo" / "debug.log").touch()
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    (home / "thesis.txt").write_text("ten years of work")
    (tmp_path / "work" / "script.py").write_text("mine")
    return tree / NAME


def plan(run: Path) -> Removal:
    return plan_removal(read_run(run), lambda path: is_as_made(path.read_text()))


def everything(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    for path in sorted(folder.rglob("*")):
        is_file = path.is_file() and not path.is_symlink()
        yield path.relative_to(folder).as_posix(), path.read_bytes() if is_file else None


def test_a_run_goes_and_nothing_beside_it(run: Path, tmp_path: Path) -> None:
    before = dict(everything(tmp_path))
    remove(plan(run))
    after = dict(everything(tmp_path))
    gone = set(before) - set(after)
    assert after == {name: data for name, data in before.items() if name not in gone}
    assert all(f"torch_compile_debug/{NAME}" in name for name in gone)
    assert not run.exists()


def test_what_probe_and_torch_add_goes_as_well(run: Path) -> None:
    added = [
        "probe.json",
        "probe_logs/fusion.log",
        f"{GRAPH}/probe_inputs/arg0_1.bin",
        f"{GRAPH}/output_code_bench.json",
        f"{GRAPH}/inductor_generated_kernel_to_post_grad_nodes.json",
        f"{GRAPH}/graph_diagram.svg",
        f"{GRAPH}/output_code.cpp",
        f"{GRAPH}/compile.prof",
    ]
    for name in added:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text('{"schema": 1}')
    (run / GRAPH / "output_code_bench.py").write_text(seal("print()\n", "print()\n"))
    found = plan(run)
    assert found.blockers == ()
    remove(found)
    assert not run.exists()


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        ".git",
        "stderr.txt",
        "torchinductor/todo.md",
        f"{GRAPH}/output_code_v2.py",
        f"{GRAPH}/output_code.py~",
        f"{GRAPH}/.output_code.py.swp",
        f"{GRAPH}/probe_inputs/readme",
        "torchdynamo/mine.log",
        "torchinductor/my copy/output_code.py",
        "results/table.csv",
        "probe_logs/sub/x.log",
    ],
)
def test_a_users_file_keeps_the_run(run: Path, tmp_path: Path, name: str) -> None:
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("mine")
    assert_kept(run, tmp_path, name.split("/", maxsplit=1)[0])


def assert_kept(run: Path, root: Path, named: str) -> None:
    before = dict(everything(root))
    found = plan(run)
    assert found.blockers
    assert any(named in blocker_text(blocker) for blocker in found.blockers), found.blockers
    with pytest.raises(ProbeError) as refused:
        remove_run(found)
    assert blocker_text(found.blockers[0]) in str(refused.value)
    with pytest.raises(ValueError, match=found.blockers[0].code):
        remove(found)
    assert dict(everything(root)) == before


def test_an_edited_bench_file_keeps_it(run: Path, tmp_path: Path) -> None:
    bench = run / GRAPH / "output_code_bench.py"
    bench.write_text(seal("print(1)\n", "print(1)\n").replace("print(1)", "print(2)"))
    assert_kept(run, tmp_path, "output_code_bench.py was edited")


@pytest.mark.parametrize("with_manifest", [True, False])
def test_output_code_edited_in_place_keeps_it(run: Path, tmp_path: Path, with_manifest: bool) -> None:
    then = time.time() - 7200
    if with_manifest:
        (run / "probe.json").write_text("{}")
    for path in run.rglob("*"):
        os.utime(path, (then, then))
    assert not plan(run).blockers
    code = run / GRAPH / "output_code.py"
    code.write_text(code.read_text() + "# mine\n")
    assert_kept(run, tmp_path, "output_code.py was changed after the run")


def test_an_edited_output_code_with_its_old_time_keeps_a_run_that_was_made_here(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    remember([run / GRAPH], run)
    code = run / GRAPH / "output_code.py"
    about, text = code.stat(), code.read_text()
    code.write_text(text + "# mine\n")
    os.utime(code, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert_kept(run, tmp_path, f"{GRAPH}/output_code.py was edited")
    code.write_text(text)
    os.utime(code, (about.st_mtime + 9000, about.st_mtime + 9000))
    assert not plan(run).blockers  # what it holds counts, and not its time


def test_an_edited_output_code_with_its_old_time_keeps_a_run_that_torch_made_alone(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal_of_runs, "_AFTER_OTHERS_S", 0)
    then = time.time() - 7200
    for path in (run / GRAPH / "output_code.py", *run.rglob("*")):
        os.utime(path, (then, then))
    assert not plan(run).blockers
    code = run / GRAPH / "output_code.py"
    code.write_text(code.read_text() + "# mine\n")
    os.utime(code, (then, then))
    assert_kept(run, tmp_path, "output_code.py was changed long after the other files")


@pytest.mark.parametrize(
    "name", ["probe.json", f"{GRAPH}/output_code_bench.py", f"{GRAPH}/output_code_bench.json"]
)
def test_what_a_kill_left_while_probe_was_writing_goes_as_well(run: Path, name: str) -> None:
    if not (child := os.fork()):
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        write_whole(run / name, "half of it")
    os.waitpid(child, 0)
    (left,) = (run / name).parent.glob(".*.tmp")
    found = plan(run)
    assert found.blockers == ()
    assert left.relative_to(run).as_posix() in found.files
    remove(found)
    assert not run.exists()


@pytest.mark.parametrize("name", [".mine.txt.abcdefgh.tmp", ".output_code.py.abcdefgh.tmp", "probe.json.tmp"])
def test_a_temporary_file_of_somebody_else_keeps_it(run: Path, tmp_path: Path, name: str) -> None:
    (run / GRAPH / name).write_text("mine")
    assert_kept(run, tmp_path, f"{name} was not written by torch or probe")


def test_a_results_file_that_probe_did_not_write_keeps_it(run: Path, tmp_path: Path) -> None:
    (run / GRAPH / "output_code_bench.json").write_text('{"mine": 1}')
    assert_kept(run, tmp_path, "output_code_bench.json was not written by torch or probe")


def test_a_run_inside_of_a_run_keeps_it(run: Path, tmp_path: Path) -> None:
    shutil.copytree(FLIP, run / "torchinductor" / NAME / GRAPH)
    assert_kept(run, tmp_path, f"torchinductor/{NAME} is not a folder of torch or probe")


def test_a_hard_link_to_a_users_file_leaves_the_file(run: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    os.link(run / GRAPH / "output_code.py", mine)
    text = mine.read_text()
    remove(plan(run))
    assert mine.read_text() == text


@pytest.mark.parametrize(
    "place", ["link", "torchinductor/link", f"{GRAPH}/output_code.py", f"{GRAPH}/probe_inputs"]
)
@pytest.mark.parametrize("to", ["home", "home/thesis.txt", "nowhere"])
def test_a_link_is_neither_followed_nor_removed(run: Path, tmp_path: Path, place: str, to: str) -> None:
    (run / place).unlink(missing_ok=True)
    (run / place).symlink_to(tmp_path / to)
    assert_kept(run, tmp_path, "is a link")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "ten years of work"


def test_a_pipe_keeps_it(run: Path) -> None:
    os.mkfifo(run / GRAPH / "debug.log")
    assert plan(run).blockers[0].code == "special-file"


def test_a_run_that_is_reached_through_a_link_stays(run: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(run)
    found = read_run(tmp_path / "here" / "link")
    removal = plan_removal(found, lambda path: True)
    assert removal.blockers == (Blocker("behind-link", str(run)),)
    (tmp_path / "tree").symlink_to(run.parent)
    assert plan(tmp_path / "tree" / NAME).blockers


@pytest.mark.parametrize("layout", [["torchinductor"], ["probe.json"], ["torchinductor", "src"]])
def test_a_folder_that_only_looks_like_a_run_stays(tmp_path: Path, layout: list[str]) -> None:
    folder = tmp_path / "project"
    for name in layout:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).mkdir() if not name.endswith(".json") else (folder / name).write_text("{}")
    assert plan(folder).blockers
    assert plan(folder).blockers == (Blocker("not-a-run"),)


def test_a_run_whose_process_lives_stays(run: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        live = run.rename(run.with_name(f"run_2026_11_21_02_09_10_346092-pid_{child.pid}"))
        (live / "torchdynamo" / "debug.log").write_text("now")
        assert plan(live).blockers == (Blocker("still-made", str(child.pid)),)
        # Another process with its id cannot be its maker: it started after all was written.
        for path in [live, *live.rglob("*")]:
            os.utime(path, (time.time() - 3600,) * 2)
        assert plan(live).blockers == ()
        child.communicate(b"\n")
    assert plan(live).blockers == ()


def test_its_trace_log_goes_and_no_other(run: Path) -> None:
    logs = run.parent / "tlparse"
    logs.mkdir()
    own, other = logs / "dedicated_log_torch_trace_a.log", logs / "dedicated_log_torch_trace_b.log"
    own.write_text("V1121 02:09:10.000000 999999 torch/x.py:1] {}\n")
    other.write_text("V1121 02:09:10.000000 999998 torch/x.py:1] {}\n")
    found = plan(run)
    assert found.beside == (own,)
    remove(found)
    assert not own.exists()
    assert other.exists()


def test_a_trace_log_behind_a_link_stays(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    log = tmp_path / "elsewhere" / "dedicated_log_torch_trace_a.log"
    log.write_text("V1121 02:09:10.000000 999999 torch/x.py:1] {}\n")
    (run.parent / "tlparse").symlink_to(tmp_path / "elsewhere")
    remove(plan(run))
    assert log.exists()


def test_what_is_added_between_plan_and_removal_is_not_lost(run: Path) -> None:
    found = plan(run)
    (run / GRAPH / "late.txt").write_text("mine")
    with pytest.raises(ProbeError, match="is removed in part only"):
        remove(found)
    assert (run / GRAPH / "late.txt").read_text() == "mine"
    assert not (run / GRAPH / "output_code.py").exists()
