"""Files are written whole or not at all, and an edit that is saved meanwhile is never written over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from inductor_probe import files
from inductor_probe.errors import ProbeError
from inductor_probe.files import replace_unchanged, write_whole

BEFORE, OURS, EDIT = "before\n", "ours\n", "the user's edit\n"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "output_code_bench.py"
    path.write_text(BEFORE)
    yield path
    assert [each for each in tmp_path.iterdir() if each.suffix == ".tmp"] == [], "nothing is left behind"


def save_in_place(path: Path) -> None:
    path.write_text(EDIT)


def save_by_renaming(path: Path) -> None:
    other = path.with_name("4913")
    other.write_text(EDIT)
    other.replace(path)


SAVES = pytest.mark.parametrize("save", [save_in_place, save_by_renaming])


def test_a_file_that_nobody_changed_is_replaced_and_keeps_its_mode(file: Path) -> None:
    file.chmod(0o600)
    assert replace_unchanged(file, OURS, BEFORE.encode())
    assert (file.read_text(), file.stat().st_mode & 0o777) == (OURS, 0o600)


@SAVES
def test_an_edit_that_was_saved_before_stays(file: Path, save: Callable[[Path], None]) -> None:
    save(file)
    assert not replace_unchanged(file, OURS, BEFORE.encode())
    assert file.read_text() == EDIT


@SAVES
def test_an_edit_that_is_saved_between_comparing_and_renaming_stays(
    file: Path, save: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment is chosen here; all that is done to files is real."""
    exchange, calls = files._exchange, 0

    def late(one: Path, other: Path) -> bool:
        nonlocal calls
        calls += 1
        if calls == 1:
            save(file)
        return exchange(one, other)

    monkeypatch.setattr(files, "_exchange", late)
    assert not replace_unchanged(file, OURS, BEFORE.encode())
    assert file.read_text() == EDIT


def test_an_edit_that_is_saved_while_ours_is_put_back_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, calls = files._exchange, 0

    def late(one: Path, other: Path) -> bool:
        nonlocal calls
        calls += 1
        if calls <= 2:
            save_by_renaming(file)
            file.write_text(f"{EDIT}{calls}")
        return exchange(one, other)

    monkeypatch.setattr(files, "_exchange", late)
    with pytest.raises(ProbeError, match="was saved twice by other programs"):
        replace_unchanged(file, OURS, BEFORE.encode())
    assert file.read_text() == f"{EDIT}2", "the newest, as without us"
    (saved,) = file.parent.glob("output_code_bench.py.*.saved")
    assert saved.read_text() == f"{EDIT}1"


IN_PLACE = """
import sys, time
with open(sys.argv[1], "r+") as file:
    print("open", flush=True)
    sys.stdin.readline()
    time.sleep(0.2)
    file.write(sys.argv[2])
    file.truncate()
"""


def test_an_editor_that_has_the_file_open_for_writing_loses_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opened the file before it is moved away, and writes to it after."""
    with subprocess.Popen(
        [sys.executable, "-c", IN_PLACE, str(file), EDIT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None
        assert editor.stdout.readline() == "open\n"
        exchange, said = files._exchange, []

        def and_go(one: Path, other: Path) -> bool:
            done = exchange(one, other)
            if not said:
                said.append(editor.stdin.write("now\n") if editor.stdin else 0)
                editor.stdin.flush() if editor.stdin else None
            return done

        monkeypatch.setattr(files, "_exchange", and_go)
        written = replace_unchanged(file, OURS, BEFORE.encode())
        editor.wait(10)
    assert not written
    assert file.read_text() == EDIT


APPENDS = """
import sys, time
for n in range(800):
    with open(sys.argv[1], "a") as file:
        file.write(f"edit {n}\\n")
    time.sleep(n % 4 * 1e-3)
"""


def test_many_edits_at_any_moment_lose_no_edit(file: Path) -> None:
    """Another process appends lines as a shell does, while ours are added as fast as they can be."""
    ours = 0
    with subprocess.Popen([sys.executable, "-c", APPENDS, str(file)]) as editor:
        while editor.poll() is None:
            data = file.read_bytes()
            with suppress(ProbeError):  # it was saved twice: both are there, in two files
                ours += replace_unchanged(file, data.decode() + f"ours {ours}\n", data)
    lines = file.read_text().splitlines()
    for saved in file.parent.glob("*.saved"):
        lines += saved.read_text().splitlines()
    assert {f"edit {n}" for n in range(800)} <= set(lines)
    assert {f"ours {n}" for n in range(ours)} <= set(lines)
    assert ours


def test_ctrl_c_while_the_files_are_exchanged_puts_the_edit_back(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_written = files._when_written

    def interrupted(path: Path) -> bytes | None:
        assert path.read_text() == EDIT
        monkeypatch.setattr(files, "_when_written", when_written)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
        return None

    exchange = files._exchange

    def late(one: Path, other: Path) -> bool:
        if file.read_text() == BEFORE:
            save_by_renaming(file)
        return exchange(one, other)

    monkeypatch.setattr(files, "_exchange", late)
    monkeypatch.setattr(files, "_when_written", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_unchanged(file, OURS, BEFORE.encode())
    assert file.read_text() == EDIT


def test_where_files_cannot_be_exchanged_they_are_compared(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    assert replace_unchanged(file, OURS, BEFORE.encode())
    assert file.read_text() == OURS
    assert not replace_unchanged(file, EDIT, BEFORE.encode())
    assert file.read_text() == OURS


def test_a_new_file_does_not_take_the_name_of_one_that_came_meanwhile(file: Path) -> None:
    assert not replace_unchanged(file, OURS, None)
    assert file.read_text() == BEFORE
    file.unlink()
    assert not replace_unchanged(file, OURS, BEFORE.encode()), "it was deleted: that is a change"
    assert not file.exists()
    assert replace_unchanged(file, OURS, None)
    assert file.read_text() == OURS
    assert file.stat().st_nlink == 1


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    for write in (lambda path: write_whole(path, OURS), lambda path: replace_unchanged(path, OURS, None)):
        with pytest.raises(ProbeError, match=r"cannot write .*No such file or directory"):
            write(tmp_path / "gone" / "file")
