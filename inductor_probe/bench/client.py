"""The side of `probe` of the process that measures: it starts `harness/server.py` and hears of its jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import inductor_probe.harness
from inductor_probe.bench.alone import hint_for
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError, signal_name
from inductor_probe.machine.python_child import python_command
from inductor_probe.machine.roofline import ROOFLINE_CHILD, roofline_arguments, roofline_of
from inductor_probe.model.timing import Roofline

SERVER = Path(inductor_probe.harness.__file__).with_name("server.py")
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # until the fork; a child sets its threads
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of compile workers: children compile
    "TORCH_WARM_POOL": "0",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # else asking whether there is a GPU initialises CUDA
}
MOST_LINES = 12
CRASHES = {  # that a program brings on itself; any other comes from outside
    signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGBUS, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS
}  # fmt: skip
MEMORY_HINT = (
    "close other programs, or bind smaller sizes (--size) where the graph has symbolic ones; `free -h` says "
    "how much memory there is, `nvidia-smi` which programs have that of the GPU"
)

Event = dict[str, Any]


class JobFailedError(Exception):
    """A job did not end well.

    Attributes:
        kind: `killed` by a signal, or what `harness/server.py` says: `load`, `usage`, `memory`, `device` or
            `error`.
        phase: what it was doing: `checking k_v2`; empty before its first event.
        names: of what it was checking or timing then.
        signal: the number of the signal that killed it; 0 without one.
    """

    def __init__(self, kind: str, message: str, phase: Event, details: str, signal: int = 0) -> None:
        super().__init__(message)
        self.kind, self.message, self.details, self.signal = kind, message, details, signal
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
        self.file = {"path": str(path.resolve()), "source": source, "imports": list(imports)}
        self.no_fork: str | None = None
        self.environment = dict(environment)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        """Start it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and what it is doing."""
        self._stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Start the process, and wait until it has imported torch.

        Raises:
            RunFailedError: torch cannot be imported.
        """
        errors = Path(self._folder.name, "stderr")
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                python_command(SERVER, python=self._python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._folder.name,
                env={**os.environ, **self.environment, **ENVIRONMENT},
            )
        self._take_file()

    def _take_file(self) -> None:
        """Have the process import what the file needs."""
        self.send({**self.file, "fork": self.no_fork is None})
        event = self._receive()
        if event is None:
            self._stop()
            text = self._errors()
            last = [line for line in text.splitlines() if line.strip()][-MOST_LINES:]
            raise RunFailedError(f"{self.path} cannot be run:\n" + "\n".join(last), hint_for(text))
        self.torch = str(event.get("torch", ""))
        if event["event"] == "no-fork":
            self._stop()
            self.no_fork = str(event["reason"])
            self.start()

    def use(self, path: Path, source: str) -> None:
        """Have further jobs done for this file, in the process that may have imported torch already.

        Raises:
            RunFailedError: torch, or what the file needs, cannot be imported.
        """
        self.path = path
        self.file |= {"path": str(path.resolve()), "source": source}
        if self._process is None:
            self.start()
        else:
            self._take_file()

    def roofline(self, device: str, threads: int, dtypes: Sequence[str], seconds: float) -> Roofline:
        """Measure what this machine can copy, and multiply in some dtypes, for about so many seconds.

        Raises:
            JobFailedError, RunFailedError: it could not be measured.
        """
        texts = list[str]()

        def hear(event: Event) -> None:
            if event["event"] == "output":
                texts.append(event["text"])

        arguments = roofline_arguments(device, threads=threads, dtypes=dtypes, seconds=seconds)
        self.job({"job": "program", "file": str(ROOFLINE_CHILD), "arguments": arguments}, hear)
        return roofline_of("".join(texts))

    def job(self, request: Event, hear: Callable[[Event], None]) -> None:
        """Have a job done; `hear` each event of it.

        Raises:
            JobFailedError: it failed, or its process was killed.
            RunFailedError: torch cannot be imported.
        """
        if self._process is None:
            self.start()
        self.send(request)
        phase: Event = {}
        failed: Event | None = None
        while True:
            event = self._receive()
            if event is None or event["event"] == "ended":
                break
            if event["event"] == "phase":
                phase = event
            if event["event"] == "failed":
                failed = failed or event
            else:
                hear(event)
        status = self._stop() if event is None else int(event["status"])
        details = self._errors() if failed or status else ""
        if self.no_fork is not None:
            self._stop()
        if failed is not None and failed["kind"] == "fork" and self.no_fork is None:
            self._stop()
            self.no_fork = str(failed["message"])
            self.job(request, hear)
        elif failed is not None:
            message = str(failed["message"])
            if failed["kind"] == "error":
                message = f"failed: {message}"
            raise JobFailedError(str(failed["kind"]), message, phase, details)
        elif status < 0:
            raise JobFailedError("killed", f"was killed by {signal_name(-status)}", phase, details, -status)
        elif status or event is None:
            raise JobFailedError("error", f"ended with status {status}", phase, details)

    def send(self, request: Event) -> None:
        """Send a line to the process, or to the child that has the job now."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:  # it has ended: `_receive` sees that
                return

    def _receive(self) -> Event | None:
        """Return the next event; None if the process has ended.

        A child that was killed may have left half a line.
        """
        while self._process is not None and self._process.stdout is not None:
            line = self._process.stdout.readline()
            if not line:
                return None
            try:
                event: Event = json.loads(line)
            except ValueError:
                continue
            return event
        return None

    def _errors(self) -> str:
        return Path(self._folder.name, "stderr").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """End the process, and what it is doing; the next job starts another one."""
        self._stop()

    def _stop(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        if process.poll() is None:
            process.terminate()  # it ends its children first
        return process.wait()
