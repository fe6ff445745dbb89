"""`probe whatif` that does not come to its end: Ctrl-C, and a script that compiles another program each time.

Processes, signals and dumps are real: what Ctrl-C is pressed in is a session of its own, whose processes
are started for it; forks (`warm`) are of what runs to its end. What a message tells to run next is run.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import inductor_probe as ip
from tests.conftest import Ran, fresh_probe
from tests.shared import made_once
from tests.torch_server import TorchServer

SCRIPT = """
import os, pathlib, sys, time

HELD = pathlib.Path(__file__).with_name("held")
if HELD.exists():  # where a test says so, the script is at work until it is stopped
    HELD.with_name("at_work").touch()
    time.sleep(600)
import torch

ADDED = os.getpid() if sys.argv[1:] == ["other"] else 1


@torch.compile
def mirrored(image):
    return image.flip(-1).float() + ADDED


mirrored(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
"""
WAIT_S = 600  # a loaded machine takes minutes to compile both; it ends as soon as it happens
pytestmark = [pytest.mark.compiles, pytest.mark.takes(12), pytest.mark.usefixtures("warm")]


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer) -> Path:
    """Return a folder with the script, and two runs of it: as it is, and with a setting."""

    def make(folder: Path) -> None:
        script = folder / "mirror.py"
        script.write_text(SCRIPT)
        for label, knobs in (("plain", {}), ("scalar", {"inductor.cpp.simdlen": "1"})):
            ip.dump(script, label=label, knobs=knobs, out=folder, stdout_to_stderr=True)

    with torch_server.used():
        return made_once(tmp_path_factory, "whatif_ended", make)


def interrupted(folder: Path, *words: str, when: Callable[[], object]) -> Ran:
    """Run `probe whatif`, and press Ctrl-C when that holds."""
    process = subprocess.Popen(
        [sys.executable, "-m", "inductor_probe", "whatif", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + WAIT_S
    while not when() and process.poll() is None:
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=WAIT_S)
    return Ran(process.returncode, out, err)


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Let the script go on working until it is stopped; yields what is there from when it does."""
    at_work = folder / "at_work"
    at_work.unlink(missing_ok=True)
    (folder / "held").touch()
    try:
        yield at_work
    finally:
        (folder / "held").unlink()


def run_next(ran: Ran, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the command that the hint of a message names."""
    hint = ran.err.rstrip().splitlines()[-1]
    command = re.search(r"probe (.*?) (?:goes on|judges)", hint)
    assert command, ran.err
    return fresh_probe([*shlex.split(command[1]), *more], folder, os.environ)


def test_ctrl_c_while_b_is_compiled_leaves_a_to_go_on_from(dumps: Path) -> None:
    with held(dumps) as at_work:
        ran = interrupted(dumps, "plain", "--scalar", "op0", when=at_work.exists)
    assert ran.status == 130, ran.err
    assert "error: interrupted while B was dumped" in ran.err
    assert "Traceback" not in ran.err.partition("error: ")[2]
    again = run_next(ran, dumps, "--budget", "300ms")
    assert again.returncode == 0, again.stderr
    assert "A is torch_compile_debug/run_" in again.stderr
    assert "dumping A" not in again.stderr
    assert "scalar op0" in again.stdout


def test_ctrl_c_while_both_are_timed_keeps_what_was_measured(dumps: Path) -> None:
    folder = ip.open_run(_path(dumps, "plain")).graphs[0].path
    before = set(folder.glob("*.json"))
    ran = interrupted(
        dumps,
        "--runs",
        "plain",
        "scalar",
        "--budget",
        "20s",
        when=lambda: set(folder.glob("*.json")) - before,
    )
    assert ran.status == 130, ran.err
    assert "error: interrupted" in ran.err
    judged = run_next(ran, dumps)
    assert judged.returncode == 0, judged.stderr
    assert re.search(r"^ *A  .*\n +B  .*", judged.stdout, re.M), judged.stdout


def test_ctrl_c_while_all_is_tried_leaves_the_rest_to_a_repeated_command(dumps: Path) -> None:
    with held(dumps) as at_work:
        ran = interrupted(dumps, "plain", "--try-all", when=at_work.exists)
    assert ran.status == 130, ran.err
    run = re.search(r"hint: nothing was known yet; probe whatif (\S+) --try-all goes on", ran.err)
    assert run, ran.err
    assert (dumps / run[1]).resolve() == _path(dumps, "plain")


def test_a_script_that_compiles_another_program_each_time_is_refused(tmp_path: Path) -> None:
    """A setting may change the program itself: A is dumped again to tell."""
    (tmp_path / "mirror.py").write_text(SCRIPT)
    words = ["whatif", "mirror.py", "--set", "inductor.cpp.simdlen=1", "--", "other"]
    ran = fresh_probe(words, tmp_path, os.environ)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "dumping A once more" in ran.stderr
    error, hint = ran.stderr.rstrip().splitlines()[-2:]
    assert re.match(
        r"error: mirror\.py does not compile the same program each time, so nothing can be compared: "
        r"model__0_inference_0\.0 had torch\.ops\.aten\.add\.Tensor\(.*, \d+\), and then torch\.ops",
        error,
    )
    command = re.search(r"probe (diff \S+ \S+) shows", hint)
    assert command
    differs = fresh_probe(command[1].split(), tmp_path, os.environ)
    assert differs.returncode == 1, differs.stderr


def _path(folder: Path, label: str) -> Path:
    (path,) = [facts.path for facts in ip.runs(folder) if facts.label == label]
    return path
