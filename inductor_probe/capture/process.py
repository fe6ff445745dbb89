"""The child process: its environment, and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType

from inductor_probe.errors import RunFailedError
from inductor_probe.model.manifest import Outcome

CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True, slots=True)
class Program:
    """What runs the script in the child.

    Attributes:
        path: a file that takes the command line of `child.py`, or one that does so in the end.
        arguments: what it takes before that.
        settings: environment variables, over those that every child has.
        is_debugger: the user may end it at any time: a script that has not come to its end was interrupted,
            though the process ends with status 0.
    """

    path: Path = CHILD
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    is_debugger: bool = False


SCRIPT_ALONE = Program()


@dataclass(frozen=True, slots=True)
class Ended:
    """A child that has ended. `status` is negative for a signal, `duration_s` in seconds."""

    pid: int
    status: int
    outcome: Outcome
    started: datetime
    duration_s: float


def environment(root: Path, caches: Path) -> dict[str, str]:
    """Return the child's environment: inductor dumps below `root`, and finds none of its caches filled.

    A cached graph is not compiled, so that a second run would dump nothing (pytorch #152374).
    """
    return {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_COMPILE_DEBUG_DIR": str(root),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
    }


def run_child(
    staging: Path,
    script: Path,
    args: Sequence[str],
    env: Mapping[str, str],
    *,
    program: Program,
    save_inputs: bool,
    stdout_to_stderr: bool,
) -> Ended:
    """Run `script` under the recorder and wait for its end, whatever that is.

    Raises:
        RunFailedError: the process could not be started.
    """
    keep = "save-inputs" if save_inputs else "facts"
    command = [sys.executable, str(program.path), *program.arguments, str(staging), keep, str(script), *args]
    variables = {**env, **program.settings}
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # what we said comes before what the script says
    started, begin = datetime.now(timezone.utc).astimezone(), time.perf_counter()
    with _sigint_left_to_child() as interrupts:
        try:
            # Not sys.stderr: in a notebook or under a test it may have no descriptor.
            child = subprocess.Popen(command, env=variables, stdout=2 if stdout_to_stderr else None)
        except OSError as error:
            raise RunFailedError(f"cannot start {sys.executable}: {error.strerror or error}") from error
        interrupts.child = child
        status = child.wait()
        # The signal may still be on its way to us when the child is already gone.
        interrupted = interrupts.count > 0 or status == -signal.SIGINT
    duration = time.perf_counter() - begin
    outcome: Outcome = "interrupted" if interrupted else "failed" if status else "ok"
    return Ended(child.pid, status, outcome, started, duration)


class _Interrupts:
    """Counts SIGINT. The terminal sends it to the child as well, so the first one is not passed on.

    From the second on it is: then the first one came from elsewhere (`kill -INT`, a notebook's stop button)
    or the child did not heed it.
    """

    def __init__(self) -> None:
        self.count = 0
        self.child: subprocess.Popen[bytes] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1 and self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)


@contextmanager
def _sigint_left_to_child() -> Iterator[_Interrupts]:
    """Outlive Ctrl-C while the child decides what it means.

    A handler rather than SIG_IGN: the child would inherit that, and could not be interrupted at all.
    """
    interrupts = _Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts  # only the main thread may set handlers, and only it gets KeyboardInterrupt
        return
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
