"""The child process: its environment, the signals that reach it, how it ended, and the processes below it.

What Linux has and others lack: `prctl`, and `/proc` to see who started whom. Elsewhere the script itself is
still signalled, as its supervisor notices the end of `probe dump` by a pipe; processes that the script
started are then left to notice the end of the script, as torch's compile workers do, and a supervisor that is
killed leaves the script running.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import FrameType

from msgspec import Struct, field

from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.model.flip import Flip
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.manifest import PARENT_GONE, Outcome

CHILD = Path(__file__).with_name("child.py")
FIRST_NAME = "first_pid"
"""In the staging folder: the id of the process of a command, which may be a Python that is followed."""
OPTIONS_NAME = "options.json"
"""In the staging folder: a `ChildOptions`, for the processes that the script starts."""
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals with which a user, a shell, a terminal or a batch system asks a program to end."""
GRACE_S = 5.0
"""How long a script may clean up once it was asked to end, before SIGKILL. Ctrl-C sets no such limit."""
_TICK_S = 0.1
_GROUP_S = 0.05
"""How long to wait for a signal of the whole process group after `probe dump` has reported it."""
_SAME_S = 2.0
"""How much later `probe dump` may report the same signal, on a busy machine."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36  # both from linux/prctl.h
_PARENT = 1  # of the fields of /proc/<pid>/stat after the name
_OF_PYTHON = ("PYTHONHOME", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONNOUSERSITE")
_TERM_S = 2.0
"""How long the processes below may take to end themselves; as long again until SIGKILL is given up."""
_AGAIN_S = 0.02


class Program(Struct, frozen=True):
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


class ChildOptions(Struct, frozen=True):
    """What the child does while the script runs; it gets this as JSON.

    Attributes:
        save_inputs: keep the bytes of graphs' inputs. record: record what inductor decides.
        settings: of torch, with their values as text (`inductor.cpp.simdlen`, `256`): see `torch_settings`.
        target: the GPU to simulate, if one: see `targets`.
        flips: decisions to turn: see `flips`.
    """

    save_inputs: bool = False
    record: bool = True
    settings: tuple[tuple[str, str], ...] = ()
    target: GpuTarget | None = None
    flips: tuple[Flip, ...] = ()


class Ended(Struct, frozen=True):
    """How a child ended, or how it will have ended if nothing more is ever known of it.

    `status` is negative for a signal, and None of a child that runs; `ended_by` as in the manifest;
    `duration_s` in seconds, so far.
    """

    pid: int
    status: int | None
    outcome: Outcome
    ended_by: str | None
    started: datetime
    duration_s: float


def environment(root: Path, caches: Path) -> dict[str, str]:
    """Return the child's environment: inductor dumps below `root`, and finds none of its caches filled.

    A cached graph is not compiled, so that a second run would dump nothing (pytorch #152374).
    """
    return {**os.environ, **_of_dump(root, caches)}


def kernel_caches(folder: Path) -> dict[str, str]:
    """Return the variables that say where inductor and triton find compiled kernels, and put them."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}


def _of_dump(root: Path, caches: Path) -> dict[str, str]:
    return {
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_COMPILE_DEBUG_DIR": str(root),
        **kernel_caches(caches),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
    }


NAMES_OF_DUMP = tuple(_of_dump(Path(), Path()))
"""Variables that each process of a dump needs, beside those with which it is followed."""


def check_variables(variables: Mapping[str, str]) -> None:
    """Refuse variables that would take away what a dump rests on.

    Raises:
        ProbeError: a dump sets it itself, Python would not start, or it is no name of a variable.
    """
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ProbeError(f"invalid variable {name!r}: write --env NAME=VALUE")
        if name in NAMES_OF_DUMP:
            raise ProbeError(f"--env {name}: a dump sets it itself, to find empty caches and its own folder")
        if name in _OF_PYTHON:
            raise ProbeError(
                f"--env {name}: Python would not find what probe puts into the script",
                "export it for all of probe where it is meant so",
            )


def run_child(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    control: int,
    inherited: Sequence[int],
    stdout_to_stderr: bool,
    meanwhile: Callable[[Ended], None],
    introduce: Path | None = None,
) -> Ended:
    """Run `command` and wait for its end, whatever that is; end what it leaves running if it was interrupted.

    Args:
        command, env: what to run.
        control: a pipe. `probe dump` writes the number of each signal that it receives, a byte each; the end
            of the pipe is the end of `probe dump`.
        inherited: descriptors that the child has too.
        stdout_to_stderr: send what it prints to stderr.
        meanwhile: called ten times a second, with what is known of the child by then.
        introduce: a file for the child's id, of a command that does not end with this process by itself.

    Raises:
        RunFailedError: the process could not be started.
    """
    # Become the parent of every process below whose own parent ends. Process 1 would be that otherwise, and
    # they could not be distinguished from others.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    received, wakeup = _receive_signals()
    started, begin = datetime.now(timezone.utc).astimezone(), time.perf_counter()
    try:
        # Not sys.stderr: in a notebook or under a test it may have no descriptor.
        stdout = 2 if stdout_to_stderr else None
        child = subprocess.Popen(
            command,
            env=env,
            stdout=stdout,
            pass_fds=inherited,
            # This process has one thread, so that code may run between fork and exec.
            preexec_fn=partial(_introduce, introduce, os.getpid()) if introduce else None,  # noqa: PLW1509
        )
    except OSError as error:
        raise RunFailedError(f"cannot start {command[0]}: {error.strerror or error}") from error
    waiting = _Waiting(child, control, received)
    while (status := waiting.wait(wakeup)) is None:
        duration = time.perf_counter() - begin
        meanwhile(Ended(child.pid, None, "interrupted", waiting.ended_by, started, duration))
    duration = time.perf_counter() - begin
    interrupted_by = waiting.ended_by
    if -status in INTERRUPTIONS:
        interrupted_by = interrupted_by or signal.Signals(-status).name
    if interrupted_by or status < 0:
        _end_descendants()  # what a script leaves running on purpose goes on when it ends by itself
    outcome: Outcome = "interrupted" if interrupted_by else "failed" if status else "ok"
    ended_by = interrupted_by or (signal_name(-status) if status < 0 else None)
    return Ended(child.pid, status, outcome, ended_by, started, duration)


def _introduce(file: Path, parent: int) -> None:
    """In the child, before it becomes the command: leave its id, and have it end with its parent."""
    file.write_text(str(os.getpid()))
    end_with(parent)


class _Waiting:
    """Waits for a child, and passes on to it what asks `probe dump` to end.

    A signal that a terminal sends (Ctrl-C, hanging up), or `timeout`, goes to the whole process group: to
    `probe dump`, to the supervisor and to the script. One that `kill` sends goes to `probe dump` alone. So
    the supervisor passes on what it did not receive itself.

    Attributes:
        ended_by: what asked the child to end, once something has.
    """

    def __init__(self, child: subprocess.Popen[bytes], control: int, received: list[int]) -> None:
        self.ended_by: str | None = None
        self._child = child
        self._control: int | None = control
        self._received = received
        self._by_supervisor: dict[int, float] = {}  # signal: when it came last
        self._by_probe: dict[int, float] = {}  # the same, of those that it is still to be decided on
        self._deadline = float("inf")

    def wait(self, wakeup: int) -> int | None:
        """Wait for a tenth of a second at most; return the child's status if it has ended."""
        watched = [wakeup] if self._control is None else [wakeup, self._control]
        ready, _, _ = select.select(watched, [], [], _GROUP_S if self._by_probe else _TICK_S)
        if wakeup in ready:
            os.read(wakeup, 4096)
        while self._received:
            self._add(self._received.pop(0), self._by_supervisor)
        if self._control in ready:
            self._listen(self._control)
        # Before reaping: nobody else has the child's id until then. With os.kill, since Popen.kill may reap.
        self._pass_on()
        status = _reap().get(self._child.pid)
        if status is not None:
            self._child.returncode = status  # or subprocess would wait for it again
        return status

    def _listen(self, control: int) -> None:
        numbers = os.read(control, 4096)
        for number in numbers:
            self._add(number, self._by_probe)
        if not numbers:
            self._control = None
            self.ended_by = self.ended_by or PARENT_GONE
            os.kill(self._child.pid, signal.SIGTERM)
            self._deadline = min(self._deadline, time.monotonic() + GRACE_S)

    def _add(self, number: int, received: dict[int, float]) -> None:
        now = received[number] = time.monotonic()
        self.ended_by = self.ended_by or signal.Signals(number).name
        if number != signal.SIGINT:
            self._deadline = min(self._deadline, now + GRACE_S)

    def _pass_on(self) -> None:
        now = time.monotonic()
        for number, when in list(self._by_probe.items()):
            if now < when + _GROUP_S:
                continue
            del self._by_probe[number]
            if abs(when - self._by_supervisor.get(number, -float("inf"))) > _SAME_S:
                if number == signal.SIGINT and _interrupt_group(self._child.pid):
                    time.sleep(_GROUP_S)  # for what they have to clean up
                os.kill(self._child.pid, number)
        if now > self._deadline:
            os.kill(self._child.pid, signal.SIGKILL)


def _receive_signals() -> tuple[list[int], int]:
    """Outlive what asks this process to end, from now on.

    Returns the list to which the signals' numbers are added, and a descriptor that becomes readable with each
    of them, and when a child has ended.

    A handler rather than SIG_IGN: the child would inherit that, and could not be interrupted at all. What is
    ignored already stays so: `nohup probe dump` outlives its terminal, script and all.
    """
    received: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        received.append(number)

    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    os.set_blocking(readable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in INTERRUPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    # `probe dump` started this process with these blocked, so that none came too early.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)
    return received, readable


def _interrupt_group(child: int) -> int:
    """Pass SIGINT on to what `child` started in its process group, as Ctrl-C would; return to how many.

    Before the child has it: Python kills what it was to `run` as soon as it is interrupted itself, and g++
    would leave its temporary files.
    """
    interrupted = 0
    for pid in descendants():
        with suppress(ProcessLookupError, PermissionError):  # ended meanwhile; another user's (sudo)
            if pid != child and os.getpgid(pid) == os.getpgrp():
                os.kill(pid, signal.SIGINT)
                interrupted += 1
    return interrupted


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between the first and the last has no name
        return f"signal {number}"


def end_with(parent: int) -> None:
    """Have this process killed when process `parent`, which started it, ends in whatever way."""
    # SIGKILL: a supervisor that ends before its child was killed itself, so that nobody is left to insist.
    if _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:  # it ended before that call
        os.kill(os.getpid(), signal.SIGKILL)


def _end_descendants() -> None:
    """End every process below this one that the system lists: SIGTERM, and SIGKILL two seconds later."""
    terminated: set[int] = set()
    begin = time.monotonic()
    while (below := set(descendants())) and time.monotonic() < begin + 2 * _TERM_S:
        number = signal.SIGTERM if time.monotonic() < begin + _TERM_S else signal.SIGKILL
        for pid in below - terminated if number == signal.SIGTERM else below:
            with suppress(ProcessLookupError, PermissionError):  # ended meanwhile; another user's (sudo)
                os.kill(pid, number)
        terminated |= below
        time.sleep(_AGAIN_S)
        _reap()


def _reap() -> dict[int, int]:
    """Release the children that have ended; return their statuses by pid, negative for a signal."""
    statuses = {}
    with suppress(ChildProcessError):  # there are none
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[child[0]] = os.waitstatus_to_exitcode(child[1])
    return statuses


def descendants() -> dict[int, int]:
    """Return the parent of each process below this one; none where the system has no `/proc`."""
    children: dict[int, list[int]] = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - names are enough
    except OSError:
        return {}
    for pid in pids:
        # A name may hold spaces and parentheses: the fields are counted from its end.
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    below: dict[int, int] = {}
    to_visit = [os.getpid()]
    while to_visit:
        parent = to_visit.pop()
        new = [pid for pid in children.get(parent, ()) if pid not in below]
        below.update(dict.fromkeys(new, parent))
        to_visit.extend(new)
    return below


def _prctl(option: int, argument: int) -> bool:
    """Call `prctl(2)`; return whether the system has it, and did it."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # noqa: PLC0415 - not everywhere, and slow to import

    try:
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
