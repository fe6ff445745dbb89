"""The record of what was made here, and who else may have written a file."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
from pathlib import Path

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.store.made_here import (
    first_other_writers,
    made_here,
    other_writers,
    record_path,
    remember,
)
from tests.dumps import run_in

GRAPH = "model__0_inference_0.0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    source = run_in("torch-2.13.0-cpu/hflip_cl")
    run = Path(shutil.copytree(source, tmp_path / "run"))
    (run / "probe.json").write_text(json.dumps({"graphs": [{"name": GRAPH, "inputs": [{"dtype": "uint8"}]}]}))
    return run


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "state" / "made_here.jsonl"


def graph_of(run: Path) -> Path:
    return run / "torchinductor" / GRAPH


def test_what_was_remembered_is_known(run: Path, record: Path) -> None:
    assert not made_here(graph_of(run), run, record).same
    remember([graph_of(run)], run, record)
    found = made_here(graph_of(run), run, record)
    assert (found.same, found.place, found.changed, found.problem) == (True, True, False, None)
    assert (record.stat().st_mode & 0o777, record.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_moved_run_is_known_and_said_to_be_moved(run: Path, record: Path, tmp_path: Path) -> None:
    remember([graph_of(run)], run, record)
    moved = Path(shutil.move(run, tmp_path / "elsewhere"))
    found = made_here(graph_of(moved), moved, record)
    assert (found.same, found.place, found.changed) == (True, False, False)
    loose = Path(shutil.copytree(graph_of(moved), tmp_path / GRAPH))
    assert made_here(loose, None, record).same


@pytest.mark.parametrize(
    "name", ["output_code.py", "fx_graph_runnable.py", "ir_post_fusion.txt", "fx_graph_transformed.py"]
)
def test_a_changed_file_is_noticed(run: Path, record: Path, name: str) -> None:
    (graph_of(run) / "fx_graph_runnable.py").write_text("# torch version: 2.13.0\n")
    remember([graph_of(run)], run, record)
    with (graph_of(run) / name).open("a") as file:
        file.write("\nimport os\n")
    found = made_here(graph_of(run), run, record)
    assert (found.same, found.changed) == (False, True)


def test_a_file_that_was_added_is_noticed(run: Path, record: Path) -> None:
    runnable = graph_of(run) / "fx_graph_runnable.py"
    runnable.unlink(missing_ok=True)
    remember([graph_of(run)], run, record)
    runnable.write_text("import os\n")
    assert not made_here(graph_of(run), run, record).same


def test_forged_facts_in_the_manifest_are_noticed(run: Path, record: Path) -> None:
    """A dtype of the manifest is written into the bench file, so it is code."""
    remember([graph_of(run)], run, record)
    forged = {"graphs": [{"name": GRAPH, "inputs": [{"dtype": "uint8, __import__('os').getpid()"}]}]}
    (run / "probe.json").write_text(json.dumps(forged))
    assert not made_here(graph_of(run), run, record).same
    (run / "probe.json").write_text("[" * 100_000)
    assert not made_here(graph_of(run), run, record).same


def test_a_stranger_cannot_bring_a_record_along(run: Path, record: Path) -> None:
    remember([graph_of(run)], run, run / "made_here.jsonl")
    assert not made_here(graph_of(run), run, record).same


def test_another_machine_with_the_same_home(run: Path, record: Path) -> None:
    remember([graph_of(run)], run, record)
    entry = json.loads(record.read_text())
    assert "machine" in entry
    assert Path("/etc/machine-id").exists() is False or Path(
        "/etc/machine-id"
    ).read_text().strip() not in str(entry)
    record.write_text(json.dumps({**entry, "machine": "another"}) + "\n")
    assert not made_here(graph_of(run), run, record).same


def test_a_record_that_others_may_write_proves_nothing(run: Path, record: Path) -> None:
    remember([graph_of(run)], run, record)
    record.chmod(0o666)
    found = made_here(graph_of(run), run, record)
    assert not found.same
    assert found.problem is not None
    assert found.problem.code == "other-writers"
    record.chmod(0o600)
    record.parent.chmod(0o777)
    assert not made_here(graph_of(run), run, record).same


def test_lines_that_were_cut_off_do_not_hide_others(run: Path, record: Path) -> None:
    remember([graph_of(run)], run, record)
    record.write_text('{"files": \n[]\n' + record.read_text() + '{"fi')
    assert made_here(graph_of(run), run, record).same


def test_many_dumps_at_a_time_keep_their_lines(run: Path, record: Path) -> None:
    for _ in range(3):
        remember([graph_of(run), run / "not_there"], run, record)
    lines = record.read_text().splitlines()
    assert [json.loads(line)["folder"] for line in lines] == [os.path.realpath(graph_of(run))] * 3


def test_a_record_that_cannot_be_written(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProbeError, match=r"cannot record in .* that the dump was made here") as caught:
        remember([graph_of(run)], run, tmp_path / "file" / "made_here.jsonl")
    assert "--trust" in str(caught.value.hint)


def test_where_the_record_is() -> None:
    assert record_path({"XDG_STATE_HOME": "/s"}) == Path("/s/inductor_probe/made_here.jsonl")
    home = Path("/h/.local/state/inductor_probe/made_here.jsonl")
    assert record_path({"HOME": "/h", "XDG_STATE_HOME": "relative"}) == home
    assert record_path({"HOME": "/h"}) == home


STRANGER = 4711
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "output_code_bench.py"
    path.write_text("x = 1\n")
    path.chmod(0o644)
    return path


def test_a_file_of_ones_own(file: Path) -> None:
    assert other_writers(file) is None
    assert other_writers(file.with_name("nowhere")) is None


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o602])
def test_everybody_may_write_to_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    found = other_writers(file)
    assert found is not None
    assert (found.path, found.owner, found.mode) == (file, None, mode)
    assert first_other_writers([file.parent, file]) == found


def test_everybody_may_put_files_into_its_folder(file: Path) -> None:
    file.parent.chmod(0o777)
    found = other_writers(file.parent)
    assert found is not None
    assert found.mode == 0o777
    file.parent.chmod(0o1777)
    assert other_writers(file.parent) is None, "nobody can take away a file of somebody else there"
    file.chmod(0o1666)
    assert other_writers(file) is not None


@as_root
def test_it_belongs_to_another_user(file: Path) -> None:
    os.chown(file, STRANGER, -1)
    found = other_writers(file)
    assert found is not None
    assert (found.path, found.owner, found.mode) == (file, f"user {STRANGER}", None)


def test_what_was_asked_of_the_open_file_counts(file: Path) -> None:
    file.chmod(0o666)
    status = file.stat()
    file.chmod(0o644)
    assert other_writers(file, status) is not None


@as_root
def test_a_group_of_several_users_may_write_and_ones_own_group_may(file: Path) -> None:
    """With umask 002, usual on Linux, all files may be written by the group that only their owner is in."""
    file.chmod(0o664)
    own = pwd.getpwuid(os.geteuid())
    others = next(group for group in grp.getgrall() if group.gr_gid != own.pw_gid)
    os.chown(file, -1, others.gr_gid)
    assert other_writers(file) is not None
    os.chown(file, -1, STRANGER)
    assert other_writers(file) is not None
    os.chown(file, -1, own.pw_gid)
    entry = grp.getgrgid(own.pw_gid)
    private = entry.gr_name == own.pw_name and set(entry.gr_mem) <= {own.pw_name}
    assert (other_writers(file) is None) is private
