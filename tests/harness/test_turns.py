"""Processes that share a GPU time one after the other."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from inductor_probe.harness.jobs import in_turn


def test_a_process_waits_until_the_other_has_timed(tmp_path: Path) -> None:
    lock, timed = tmp_path / "turns", tmp_path / "timed"
    waiting, tell = os.pipe()
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            held.close()  # else it would hold the lock, too
            os.write(tell, b"w")
            with in_turn(str(lock)):
                timed.write_text("in turn")
            os._exit(0)
        assert os.read(waiting, 1) == b"w"
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        assert not timed.exists()
    assert os.waitpid(child, 0) == (child, 0)
    assert timed.read_text() == "in turn"


def test_without_a_file_nothing_is_waited_for() -> None:
    with in_turn(None):
        pass
