"""`dump`: run a script, keep what inductor wrote, and write down how that came about."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

from inductor_probe.capture.folders import make_folder
from inductor_probe.capture.process import INTERRUPTIONS, ChildOptions, Program, check_variables
from inductor_probe.capture.scripts import script_arguments
from inductor_probe.capture.torch_settings import is_setting
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.machine.targets import find_gpu_target
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.flip import Flip, at_once
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.manifest import ScriptForm

_running: set[int] = set()
"""The control pipes of the dumps of other threads than the main one; `_pipes` guards it."""
_pipes = threading.Lock()
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


class Request(Struct, frozen=True):
    """What a supervisor is to run. `root` is where torch makes its folder; for the rest see `dump`."""

    script: str
    arguments: tuple[str, ...]
    cases: tuple[str, ...]
    knobs: tuple[tuple[str, str], ...]
    label: str | None
    child: ChildOptions
    root: str
    stdout_to_stderr: bool
    program: Program
    variables: tuple[tuple[str, str], ...] = ()
    form: ScriptForm = "script"
    baseline: str | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that this stands for."""
        if self.form in ("function", "recording"):  # of this process
            return tuple(sys.orig_argv)
        start = {"script": (sys.executable,), "module": (sys.executable, "-m"), "command": ()}
        return (*start[self.form], self.script, *self.arguments)


class DumpResult(Struct, frozen=True):
    """What a dump left on disk.

    Attributes:
        run: the run's directory, with a manifest; there is one even when nothing was compiled. Of several
            processes it is that of the script, or else of the lowest rank that compiled something.
        not_remembered: why it could not be written down that these graphs were made here, if so.
        others: the runs of further processes of the script.
    """

    run: Path
    not_remembered: str | None
    others: tuple[Path, ...] = ()


def dump(
    script: Path | str,
    *,
    form: ScriptForm = "script",
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    label: str | None = None,
    save_inputs: bool = False,
    record: bool = True,
    target: str | GpuTarget | None = None,
    flips: Sequence[Flip] = (),
    out: Path | None = None,
    stdout_to_stderr: bool = False,
    program: Program | None = None,
    env: Mapping[str, str] | None = None,
    output: Path | None = None,
    baseline: str | None = None,
) -> DumpResult:
    """Run `script` in a child process with empty inductor caches, and keep what inductor dumps.

    The script's output, traceback and reaction to Ctrl-C are its own. However it ends, what it had dumped is
    kept; the manifest's `outcome`, `exit_status` and `ended_by` say how. It ends when this process does: a
    supervisor between the two sees to that, and writes the run down even if this process was killed.

    Args: see `inductor_probe.dump`. Without `out`, TORCH_COMPILE_DEBUG_DIR is used, else the working folder.
        script, form: a file, the name of a module, or the program of a command.
        program: what runs the script in the child, if not `child.py` itself.
        output: a file for all that the script prints, on both streams; None leaves it where ours goes.
        baseline: name of the run that this one is made to be compared with.

    Raises:
        NotFoundError: there is no such target, or no such file of one.
        UnreadableError, ProbeError: the script cannot be read; cases or knobs for a script that is not a
            scenario; a variable that the dump needs itself; flips that cannot hold at once; nothing can be
            written to `out`.
        RunFailedError: Python could not be started, or the program did not start the script.
    """
    settings = {name: value for name, value in (knobs or {}).items() if is_setting(name)}
    knobs = {name: value for name, value in (knobs or {}).items() if name not in settings}
    if form == "script":
        arguments = script_arguments(Path(script), args, cases, knobs)
    elif cases or knobs:
        raise ProbeError(f"{'--case' if cases else '--set'} is for scenarios, and {script} is a {form}")
    else:
        arguments = list(args)
    check_variables(env or {})
    root = Path(out or os.environ.get("TORCH_COMPILE_DEBUG_DIR") or Path.cwd()).absolute()
    make_folder(root)
    request = Request(
        script=str(script),
        arguments=tuple(arguments),
        cases=tuple(cases),
        knobs=tuple(knobs.items()),
        label=label,
        child=ChildOptions(
            save_inputs,
            record,
            tuple(settings.items()),
            target=find_gpu_target(target) if isinstance(target, str) else target,
            flips=at_once(flips),
        ),
        root=str(root),
        stdout_to_stderr=stdout_to_stderr or output is not None,
        program=program or Program(),
        variables=tuple((env or {}).items()),
        form=form,
        baseline=baseline,
    )
    their_control, control = os.pipe()
    answer, their_answer = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # our lines come before those of the script
    with ExitStack() as open_pipes:
        for descriptor in (control, answer):
            open_pipes.callback(os.close, descriptor)
        with _passed_on(control):
            # Blocked until the supervisor is ready for signals, and has the request before the first of them.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
            try:
                supervisor = _start_supervisor(their_control, their_answer, output)
                with suppress(BrokenPipeError), os.fdopen(os.dup(control), "wb") as pipe:  # else: no answer
                    # A line. Bytes of a path that are not text become surrogates, which JSON escapes.
                    pipe.write(json.dumps(to_json(request)).encode() + b"\n")
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            data = b"".join(iter(lambda: os.read(answer, 1 << 16), b""))
            status = supervisor.wait()
    if not data:
        raise RunFailedError(
            f"the supervisor of {request.script} ended with status {status} before the run was recorded",
            "what was dumped by then is in torch_compile_debug; the next `probe dump` adds the logs to it",
        )
    reply: dict[str, Any] = json.loads(data)
    if "error" in reply:
        raise (RunFailedError if reply["of_run"] else ProbeError)(reply["error"], reply["hint"])
    return from_json(DumpResult, reply)


def _start_supervisor(control: int, answer: int, output: Path | None) -> subprocess.Popen[bytes]:
    """Start the supervisor with its ends of the pipes, and close them here; `output` is its stderr."""
    command = [sys.executable, str(_SUPERVISOR), str(control), str(answer)]
    try:
        with ExitStack() as opened:
            stderr = opened.enter_context(output.open("wb")) if output else None
            return subprocess.Popen(command, pass_fds=(control, answer), stderr=stderr)
    except OSError as error:
        raise RunFailedError(f"cannot start {sys.executable}: {error.strerror or error}") from error
    finally:
        os.close(control)
        os.close(answer)


@contextmanager
def _passed_on(control: int) -> Iterator[None]:
    """Inform the supervisor of signals that ask this process to end, and outlive them until it has answered.

    Then SIGTERM and its like do what they would have done before. Ctrl-C does not: it was for the script.
    """
    if threading.current_thread() is not threading.main_thread():
        with _pipes:  # only the main thread may set handlers: see `interrupt_dumps`
            _running.add(control)
        try:
            yield
        finally:
            with _pipes:
                _running.remove(control)
        return
    received: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        received.append(number)
        with suppress(OSError):  # the supervisor has ended
            os.write(control, bytes([number]))

    before: dict[signal.Signals, Any] = {}
    for number in INTERRUPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored by nohup, or by a shell's &
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
        for interruption in dict.fromkeys(received):
            if interruption != signal.SIGINT:
                signal.raise_signal(interruption)


def interrupt_dumps() -> None:
    """End what other threads dump, as Ctrl-C would: for a main thread that was interrupted while it waited.

    A terminal signals the scripts, too; a supervisor takes both for one.
    """
    with _pipes:
        for control in _running:
            with suppress(OSError):  # the supervisor has ended
                os.write(control, bytes([signal.SIGINT]))
