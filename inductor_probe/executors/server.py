"""A process that has imported torch and does jobs: it starts `harness/server.py`, and yields what it says."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import inductor_probe.harness
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError, signal_name
from inductor_probe.executors.child import Child, Event
from inductor_probe.machine.python_child import hint_for, python_command, without_writing
from inductor_probe.model.codec import from_json
from inductor_probe.model.timing import Roofline

SERVER = Path(inductor_probe.harness.__file__).with_name("server.py")
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # until the fork; a child sets its threads
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of compile workers: children compile
    "TORCH_WARM_POOL": "0",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # else asking whether there is a GPU initialises CUDA
}
COMPILING = "torch.compile(f) async_compile.cpp_pybinding("
"""What a script and generated code for a CPU have in them: the server imports what that needs, once."""
_ROOFLINE = "inductor_probe.machine.roofline_child:measure"
MOST_LINES = 12
CRASHES = {  # that a program brings on itself; any other comes from outside
    signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGBUS, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS
}  # fmt: skip
MEMORY_HINT = (
    "close other programs, or bind smaller sizes (--size) where the graph has symbolic ones; `free -h` says "
    "how much memory there is, `nvidia-smi` which programs have that of the GPU"
)


class JobFailedError(Exception):
    """A job did not end well.

    Attributes:
        kind: `killed` by a signal, or what `harness/server.py` says: `load`, `usage`, `memory`, `device` or
            `error`.
        phase: what it was doing: `checking k_v2`; empty before its first event.
        names: of what it was checking or timing then.
        signal: the number of the signal that killed it; 0 without one. status: else that it ended with.
    """

    def __init__(  # noqa: PLR0917 - what is known of it
        self, kind: str, message: str, phase: Event, details: str, signal: int = 0, status: int = 1
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.details = kind, message, details
        self.signal, self.status = signal, status
        self.phase = str(phase.get("phase", ""))
        self.names: tuple[str, ...] = tuple(phase.get("names", ()))

    def error(self, path: Path) -> ProbeError:
        """Return it as what ends the verb."""
        if self.kind == "usage":
            message, _, known = self.message.partition("; ")
            return NotFoundError(f"{path}: {message}", known or None)
        if self.kind == "load":
            return RunFailedError(self.message, hint_for(self.message + self.details))
        doing = f" while {self.phase} {' and '.join(self.names)}".rstrip() if self.phase else ""
        what, colon, why = self.message.partition(": ")
        hint = hint_for(self.message + self.details)
        if self.kind == "memory":
            hint = MEMORY_HINT
        elif self.signal == signal.SIGKILL:
            hint = f"the system kills a process when memory runs out (`dmesg | tail` shows it): {MEMORY_HINT}"
        return RunFailedError(f"{path}: a measuring process {what}{doing}{colon}{why}", hint)

    @property
    def from_outside(self) -> bool:
        """Whether it was killed by a signal that a program does not bring on itself."""
        return self.kind == "killed" and self.signal not in CRASHES


class Server:
    """A process that has imported torch, and forks a child for each job; a fresh process a job without fork.

    Attributes:
        no_fork: why children are fresh processes; None where they are forked.
        torch: its version, once it was started.
        environment: variables besides those of this process.
    """

    def __init__(
        self,
        path: Path,
        source: str,
        *,
        imports: Sequence[str] = (),
        environment: Mapping[str, str],
        python: Path | None = None,
    ) -> None:
        self.path = path
        self.torch = ""
        self._python = python
        self.python = str(python or sys.executable)
        modules = [str(Path(name).resolve()) if name.endswith(".py") else name for name in imports]
        self.file = {"path": str(path.resolve()), "source": source, "imports": modules}
        self.no_fork: str | None = None
        self.environment = dict(environment)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self._child: Child | None = None

    def __enter__(self) -> Server:
        """Start it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and what it is doing."""
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Start the process, and wait until it has imported torch.

        Raises:
            RunFailedError: torch cannot be imported.
        """
        folder = Path(self._folder.name)
        self._child = Child(
            lambda *pipes: python_command(SERVER, *pipes, python=self._python),
            environment={**without_writing(os.environ), **self.environment, **ENVIRONMENT},
            output=folder / "output",
            folder=folder,
        )
        self._take_file()

    def _take_file(self) -> None:
        """Have the process import what the file needs."""
        self.send({**self.file, "fork": self.no_fork is None})
        event = self._child.receive() if self._child else None
        if event is None:
            lines = self._child.printed() if self._child else []
            self.stop()
            text = "\n".join(lines)
            raise RunFailedError(
                f"{self.path} cannot be run:\n" + "\n".join(lines[-MOST_LINES:]), hint_for(text)
            )
        self.torch = str(event.get("torch", ""))
        if event["event"] == "no-fork":
            self.stop()
            self.no_fork = str(event["reason"])
            self.start()

    def use(self, path: Path, source: str) -> None:
        """Have further jobs done for this file, in the process that may have imported torch already.

        Raises:
            RunFailedError: torch, or what the file needs, cannot be imported.
        """
        self.path = path
        self.file |= {"path": str(path.resolve()), "source": source}
        if self._child is None:
            self.start()
        else:
            self._take_file()

    def roofline(self, device: str, threads: int, dtypes: Sequence[str], seconds: float) -> Roofline:
        """Measure what this machine can copy, and multiply in some dtypes, for about so many seconds.

        Raises:
            JobFailedError, RunFailedError: it could not be measured.
        """
        request = {
            "device": device,
            "threads": threads,
            "dtypes": [*dict.fromkeys(dtypes)],
            "seconds": seconds,
        }
        events = [*self.events({"job": _ROOFLINE, **request})]
        return from_json(Roofline, events[-1]["roofline"])

    def events(self, request: Event, patience: float | None = None) -> Iterator[Event]:
        """Have a job done; yield each event of it, and meanwhile `send` what it asks for.

        Raises:
            JobFailedError: it failed, its process was killed, or nothing came for `patience` seconds.
            RunFailedError: torch cannot be imported.
        """
        if self._child is None:
            self.start()
        child, phase, failed = self._child, Event(), Event()
        assert child is not None  # noqa: S101 - it was started
        child.send(request)
        while True:
            try:
                event = child.receive(patience)
            except TimeoutError:
                raise JobFailedError("error", f"gave no answer for {patience:.0f} s", phase, "") from None
            if event is None or event["event"] == "ended":
                break
            if event["event"] == "phase":
                phase = event
            if event["event"] == "failed":
                failed = failed or event
            else:
                yield event
        status = child.wait() if event is None else int(event["status"])
        details = "\n".join(child.printed()) if failed or status else ""
        if event is None or self.no_fork is not None:
            self.stop()
        if failed.get("kind") == "fork" and self.no_fork is None:
            self.stop()
            self.no_fork = str(failed["message"])
            yield from self.events(request, patience)
        elif failed or status or event is None:
            raise _failure(failed, status, phase, details)

    def send(self, request: Event) -> None:
        """Send a line to the process, or to the child that has the job now."""
        if self._child is not None:
            self._child.send(request)

    def kill(self) -> None:
        """End the process from another thread than that which waits for it, where the job fails by that."""
        if (child := self._child) is not None:
            child.kill()

    def stop(self) -> None:
        """End the process, and what it is doing; the next job starts another one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()


def _failure(failed: Event, status: int, phase: Event, details: str) -> JobFailedError:
    """Return why a job did not end well, by what it said of it, or its status."""
    if failed:
        kind, message = str(failed["kind"]), str(failed["message"])
        return JobFailedError(kind, f"failed: {message}" if kind == "error" else message, phase, details)
    if status < 0:
        return JobFailedError("killed", f"was killed by {signal_name(-status)}", phase, details, -status)
    return JobFailedError("error", f"ended with status {status}", phase, details, status=status)
