"""Tasks on this machine: in turn or in threads, until they are done, one fails, or nobody asks any more."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.executors.local import LocalExecutor, Needs, Tell, UserFile
from inductor_probe.harness.user_file import import_file


class Squares:
    """Squares numbers, waits at 0 until it is closed, and refuses negative ones."""

    made: ClassVar[list[Squares]] = []

    def __init__(self, tell: Tell) -> None:
        self.calls: list[object] = []
        self.closed = threading.Event()
        self.made.append(self)

    def open(self) -> None:
        self.calls.append("open")

    def prepare(self, tasks: Sequence[int], cores: int) -> None:
        self.calls.append([*tasks])

    def run(self, task: int) -> int:
        if task < 0:
            raise ProbeError(f"{task} is negative")
        if not task:
            self.closed.wait(60)
        return task * task

    def close(self) -> None:
        self.closed.set()


@pytest.fixture(autouse=True)
def made() -> list[Squares]:
    Squares.made.clear()
    return Squares.made


def test_what_is_timed_runs_alone_and_in_order_and_is_prepared_in_batches(made: list[Squares]) -> None:
    done = [*LocalExecutor(jobs=8).map(Squares, [1, 2, 3, 4, 5], Needs(alone=True), batch=2)]
    assert [(one.task, one.result) for one in done] == [(n, n * n) for n in (1, 2, 3, 4, 5)]
    (worker,) = made
    assert worker.calls == ["open", [1, 2], [3, 4], [5]]
    assert worker.closed.is_set()


def test_others_run_in_as_many_threads_as_there_are_jobs(made: list[Squares]) -> None:
    done = [*LocalExecutor(jobs=3).map(Squares, range(1, 20), Needs())]
    assert sorted((one.task, one.result) for one in done) == [(n, n * n) for n in range(1, 20)]
    assert len(made) == 3
    assert all(worker.closed.is_set() for worker in made)
    assert [*LocalExecutor(jobs=3).map(Squares, [], Needs())] == []


@pytest.mark.parametrize("alone", [True, False])
def test_a_mistake_ends_all_of_it(made: list[Squares], *, alone: bool) -> None:
    with pytest.raises(ProbeError, match="-1 is negative"):
        [*LocalExecutor(jobs=2).map(Squares, [1, -1, 0, 0], Needs(alone=alone))]
    assert all(worker.closed.is_set() for worker in made)


def test_who_does_not_want_the_rest_ends_the_workers(made: list[Squares]) -> None:
    """As Ctrl-C does: a thread that waits for a worker's process hears that it has ended."""
    with closing(LocalExecutor(jobs=2).map(Squares, [1, 0, 2, 3], Needs())) as done:
        next(done)
    assert all(worker.closed.is_set() for worker in made)
    assert threading.active_count() == 1 or not any(
        "serve" in thread.name for thread in threading.enumerate()
    )


def test_a_script_is_sent_with_what_lies_beside_it(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "script_sent.py").write_text("from beside_sent import ROWS\nDOUBLE = 2 * ROWS\n")
    (here / "beside_sent.py").write_text("ROWS = 8\n")
    (here / "notes.txt").write_text("not a module")
    sent = UserFile.read(here / "script_sent.py")
    assert sent.place(there) == here / "script_sent.py"  # a folder that both see
    assert [*there.iterdir()] == []
    (here / "script_sent.py").write_text("another one")
    (here / "beside_sent.py").unlink()
    placed = sent.place(there)
    assert placed == there / "script_sent.py"
    assert sorted(path.name for path in there.iterdir()) == ["beside_sent.py", "script_sent.py"]
    assert vars(import_file(placed))["DOUBLE"] == 16
