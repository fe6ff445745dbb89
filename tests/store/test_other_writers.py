"""Who else may have written a file: by real owners and modes."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from inductor_probe.store.made_here import first_other_writers, other_writers

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
