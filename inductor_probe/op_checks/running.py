"""Cases handed to an executor, the processes that run their samples, and what the answers amount to.

A process imports torch once and runs case after case. One that is killed by a sample is replaced, and goes on
with the sample behind it. Each failure is kept with its smallest sample, and shown once more by a program of
its own: what fails only behind other samples is said to.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

from msgspec.structs import asdict, replace

from inductor_probe.errors import ProbeError, RunFailedError, near_names
from inductor_probe.executors.child import Event
from inductor_probe.executors.cluster import RayExecutor
from inductor_probe.executors.local import Executor, LocalExecutor, Needs, Tell, UserFile
from inductor_probe.executors.server import COMPILING, JobFailedError, Server
from inductor_probe.files import write_whole
from inductor_probe.machine.python_child import ask_torch, without_writing
from inductor_probe.model.op_check import (
    SAMPLE_KINDS,
    FailureCode,
    FailureKind,
    OpCase,
    OpChecks,
    OpDecomposition,
    OpFailure,
    OpLost,
    OpRow,
    Way,
)
from inductor_probe.options.kernels import CheckOpOptions
from inductor_probe.options.verb import several

_WORKER = Path(__file__).with_name("worker.py")
_JOB = "inductor_probe.op_checks.worker:run_cases"
_OUT = Path(".probe", "check-op")
_ALONE_S = 300
_LATE = 0.1
"""Times the budget, a sample may take longer than that: then its process is ended."""
_MOST_ON_GPU = 8  # processes: the context of each takes half a gigabyte there
Progress = Callable[[int, int, OpRow], None]
"""Called with how many cases are done, of how many, and the latest."""


@dataclass
class _Seen:
    """What was seen of a case so far; `failures` have their program's text with them.

    `calls` are those of the decomposition, `operators` the overloads that it stood for.
    """

    case: OpCase
    samples: int = 0
    right: int = 0
    refused: int = 0
    not_compiled: int = 0
    breaks: int = 0
    random: int = 0
    left: int = 0
    seconds: float = 0.0
    calls: int = 0
    operators: tuple[str, ...] = ()
    kinds: set[str] = field(default_factory=set)
    failures: list[tuple[OpFailure, str]] = field(default_factory=list)

    @property
    def row(self) -> OpRow:
        failed = self.samples - self.right
        without = tuple(kind for kind in SAMPLE_KINDS if kind not in self.kinds)
        return OpRow(
            self.case, self.samples, self.right, failed, self.refused, self.not_compiled, self.breaks,
            self.random, self.seconds, self.left, without,
        )  # fmt: skip


def check_operators(
    options: CheckOpOptions, progress: Progress | None = None, warn: Tell = lambda text: None
) -> OpChecks:
    """Run the samples of the operators that the options name, and compare.

    `warn` is called with what happens to nodes of a cluster.

    Raises:
        ProbeError: no operator has such a name, or none such a dtype; the decomposition is not there, or
            fits no operator; there is no cluster. RunFailedError: torch cannot be imported.
    """
    begin = time.monotonic()
    cores = len(os.sched_getaffinity(0))
    executor: Executor = LocalExecutor(
        options.jobs or (min(cores, _MOST_ON_GPU) if options.device == "cuda" else cores)
    )
    if options.executor == "ray":
        executor = RayExecutor(options.jobs, warn)
    done: list[_Seen] = []
    lost: list[OpLost] = []
    try:
        listed = ask_torch(_WORKER, options.device)
        if not listed["available"] and options.executor == "local":
            raise ProbeError(f"torch {listed['torch']} sees no GPU here", "leave --device cuda out")
        cases = cases_of(options, listed["operators"])
        end = time.time() + options.budget
        make = partial(_OpWorker, options, _user_file(options), cases[0], end, listed["torch"])
        needs = Needs("cuda" if options.device == "cuda" else "cpu")
        with closing(executor.map(make, cases, needs, name=_case_name)) as results:
            for outcome in results:
                if outcome.result is None:
                    lost.append(OpLost(outcome.task, outcome.lost))
                    continue
                done.append(outcome.result)
                if progress:
                    progress(len(done) + len(lost), len(cases), outcome.result.row)
    except KeyboardInterrupt:
        if not done:
            raise
    finally:
        executor.close()
    order = {case: number for number, case in enumerate(cases)}
    done.sort(key=lambda seen: order[seen.case])
    decomposition = None
    if options.decomp:
        names = next((seen.operators for seen in done if seen.operators), ())
        decomposition = OpDecomposition(options.decomposition[0], names, sum(seen.calls for seen in done))
    groups = _grouped(seen.failures for seen in done)
    return OpChecks(
        torch=listed["torch"],
        device=options.device,
        rows=tuple(seen.row for seen in done if seen.samples + seen.refused + seen.left),
        failures=tuple(_written(groups, options, warn, runs_here=listed["available"])),
        decomposition=decomposition,
        spent=time.monotonic() - begin,
        lost=tuple(lost),
        interrupted=len(cases) - len(done) - len(lost),
    )


def _environment() -> dict[str, str]:
    """Return variables of a worker: it finds this package, and compiles each sample.

    A graph that comes from inductor's cache was traced before, perhaps with another decomposition. C++
    kernels may come from one: they are kept by their text.
    """
    path = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    no_caches = dict.fromkeys(("TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE"), "0")
    return {**no_caches, "PYTHONPATH": os.pathsep.join(path)}


def cases_of(options: CheckOpOptions, database: Sequence[dict[str, Any]]) -> list[OpCase]:
    """Return the cases that are asked for: those with inductor's own decompositions first.

    Args:
        database: the operators; see `worker.listed`.

    Raises:
        ProbeError: no operator has such a name, or none such a dtype.
    """
    named: set[str] = set()
    for pattern in several(options.patterns):
        matched = {str(operator["name"]) for operator in database if _matches(pattern, operator)}
        if not matched:
            raise ProbeError(
                f"no operator in PyTorch's database matches {pattern}",
                near_names(pattern, [operator["name"] for operator in database]),
            )
        named |= {_plain(pattern)} & matched or matched  # of `flip`, not `fliplr` too
    chosen = [operator for operator in database if operator["name"] in named]
    known = sorted({dtype for operator in chosen for dtype in operator["dtypes"]})
    wanted = known if "all" in options.dtypes else options.dtypes or ("float32", "uint8")
    if unknown := [dtype for dtype in options.dtypes if dtype != "all" and dtype not in known]:
        names = ", ".join(operator["name"] for operator in chosen[:3])
        raise ProbeError(f"no sample of {names} is of {unknown[0]}", f"there are {', '.join(known)}")
    ways: tuple[Way, ...] = ("compiled", "decomposition") if options.decomp else ("compiled",)
    forms = dict.fromkeys((*options.forms, "varied") if options.vary else options.forms)
    cases = [
        OpCase(operator["name"], dtype, mode, form, way)
        for operator in chosen
        for way in ways
        for dtype in operator["dtypes"]
        if dtype in wanted or (not options.dtypes and not set(wanted) & set(operator["dtypes"]))
        for form in forms
        for mode in options.modes
        if not mode.startswith("backward") or dtype in operator["gradients"]
    ]
    if not cases:
        dtypes, gradients = (", ".join(chosen[0][key]) or "none" for key in ("dtypes", "gradients"))
        raise ProbeError(
            f"{chosen[0]['name']} has no sample in {', '.join(wanted)} with {', '.join(options.modes)}",
            f"it has {dtypes}; with gradients {gradients}",
        )
    # A process that has installed a decomposition compiles with it from then on: those cases come last.
    return sorted(cases, key=lambda case: case.way == "decomposition")


def _plain(pattern: str) -> str:
    return pattern.lower().removeprefix("torch.").removeprefix("aten.")


def _matches(pattern: str, operator: dict[str, Any]) -> bool:
    names = [str(operator[key]).lower() for key in ("name", "aten", "full")]
    pattern = _plain(pattern)
    return any(fnmatchcase(name, pattern) or pattern in name for name in names if name)


class _OpWorker:
    """A process that runs samples: started with the first case, and again if one killed it. See `Worker`."""

    def __init__(  # noqa: PLR0917 - what it runs, and where it stops
        self,
        options: CheckOpOptions,
        file: UserFile | None,
        first: OpCase,
        end: float,
        torch: str,
        tell: Tell,
    ) -> None:
        """Start nothing yet.

        Args:
            options: what to run. file: with the decomposition, if it is in a file.
            first: a case whose operator the decomposition may be for.
            end: when no further sample begins, as `time.time`: another machine has another monotonic clock.
                A process that has just started has half of the budget at least: importing torch and its
                samples may take longer than a small one.
            torch: its version, which has to be the same everywhere.
            tell: is not used: a case takes a second.
        """
        self._options, self._file, self._first, self._torch = options, file, first, torch
        self._end = time.monotonic() + end - time.time()
        self._operators: tuple[str, ...] = ()
        self._calls = 0
        self._stack = ExitStack()
        self._server: Server | None = None
        self._events: Iterator[Event] | None = None
        self._closed = self._busy = False

    def open(self) -> None:
        """Start the process."""
        self._started()
        self._end = max(self._end, time.monotonic() + self._options.budget / 2)

    def prepare(self, tasks: Sequence[OpCase], cores: int) -> None:
        """Nothing: each sample is compiled as it runs."""

    def run(self, task: OpCase) -> _Seen:
        """Run the samples of a case."""
        seen, begin, skip, calls = _Seen(task), time.monotonic(), 0, self._calls
        self._busy = True
        try:
            while time.monotonic() < self._end and not self._closed:
                last = self._ask(seen, task, skip)
                if last is None:
                    break
                skip, calls = last + 1, 0
            else:
                seen.left = max(0, self._options.samples - seen.samples - seen.refused)
        finally:
            self._busy = False
        seen.calls = self._calls - calls
        seen.operators = self._operators
        seen.seconds = time.monotonic() - begin
        return seen

    def close(self) -> None:
        """End the process, from whatever thread; who waits for its answers gets none, and closes again."""
        self._closed = True
        if self._server is not None:
            self._server.kill()
        if not self._busy:
            self._stack.close()

    def _ask(self, seen: _Seen, case: OpCase, skip: int) -> int | None:
        """Let the worker run samples; return None, or the number of the sample that killed it."""
        server, events = self._started()
        server.send({**asdict(case), "skip": skip, "most": self._options.samples, "end": self._end})
        begun: Event = {"sample": skip, "elements": 0, "text": ""}
        late = threading.Timer(
            max(self._end - time.monotonic(), 0.0) + _LATE * self._options.budget, server.kill
        )
        late.daemon = True
        late.start()
        lost: JobFailedError | None = None
        try:
            for event in events:
                match event["event"]:
                    case "begun":
                        begun = event
                        seen.kinds.update(event["kinds"])
                    case "done":
                        seen.left, self._calls = event["left"], event["calls"]
                        return None
                    case _:
                        _add(seen, begun, event)
        except JobFailedError as error:
            lost = error
        finally:
            late.cancel()
        self._events, self._calls = None, 0
        if lost is not None and lost.signal == signal.SIGKILL and time.monotonic() > self._end:
            seen.left = max(0, self._options.samples - seen.samples - seen.refused)
            return None
        number = int(begun["sample"])
        if lost is None:  # its GPU has met an error
            return number
        seen.samples += 1
        code, value = ("signal", lost.signal) if lost.signal else ("status", lost.status)
        seen.failures.append((_failure(case, "killed", code, {code: value}, begun), ""))
        return number if begun["text"] else None  # else no sample could be made, nor any further one

    def _started(self) -> tuple[Server, Iterator[Event]]:
        """Return the process, which may have to be started, and what it says.

        Raises:
            ProbeError: it cannot do what is asked, and says why. RunFailedError: it did not start.
        """
        server = self._server
        if server is None:
            server = self._server = self._stack.enter_context(
                Server(Path("check-op"), COMPILING, environment=_environment())
            )
            if self._options.device == "cuda":
                server.no_fork = "PyTorch's operators ask what the GPU can do as they are imported"
        if self._events is None:
            self._events = server.events(self._request)
            try:
                answer = next(self._events)
            except JobFailedError as error:
                raise RunFailedError(
                    f"the process that runs samples did not start: {error.message}",
                    "`probe doctor` says more",
                ) from error
            if "error" in answer:
                raise ProbeError(answer["error"], answer["hint"])
            if server.torch != self._torch:
                raise RunFailedError(
                    f"torch is {server.torch} there, and {self._torch} where the samples were listed",
                    "install the same torch on all nodes",
                )
            self._operators = tuple(answer["operators"])
        return server, self._events

    @cached_property
    def _request(self) -> Event:
        """The job, with the decomposition's place on this machine."""
        decomposition = None
        if self._options.decomp:
            place, overloads = self._options.decomposition
            if self._file is not None:
                folder = tempfile.TemporaryDirectory(prefix="check-op-", ignore_cleanup_errors=True)
                path = self._file.place(Path(self._stack.enter_context(folder)))
                place = f"{path}:{place.rpartition(':')[2]}"
            decomposition = {"place": place, "operators": overloads}
        first = {"operator": self._first.operator, "dtype": self._first.dtype}
        return {
            "job": _JOB,
            "device": self._options.device,
            "decomposition": decomposition,
            "first": first,
        }


def _user_file(options: CheckOpOptions) -> UserFile | None:
    """Return the file of the decomposition: a worker runs elsewhere, or on another machine.

    Raises:
        ProbeError: no function is named, or there is no such file.
    """
    if options.decomp is None:
        return None
    module, _, name = options.decomposition[0].rpartition(":")
    if not module or not name:
        raise ProbeError(
            f"--decomp {options.decomp}: it names no function",
            "write MODULE:FUNCTION or FILE.py:FUNCTION",
        )
    if not module.endswith(".py"):
        return None
    path = Path(module).absolute()
    if not path.is_file():
        raise ProbeError(f"--decomp {options.decomp}: there is no file {path}")
    return UserFile.read(path)


def _case_name(case: OpCase) -> str:
    return f"{case.operator} {case.dtype} {case.mode}"


def _add(seen: _Seen, begun: Event, answer: Event) -> None:
    if answer["event"] == "refused":
        seen.refused += 1
        return
    seen.samples += 1
    if answer["event"] == "right":
        seen.right += 1
        seen.random += bool(answer["random"])
        seen.breaks += bool(answer["breaks"])
        seen.not_compiled += not answer["compiled"]
        return
    failure = _failure(seen.case, answer["kind"], answer["code"], answer["numbers"], begun)
    seen.failures.append((failure, answer["script"]))


def _failure(case: OpCase, kind: str, code: str, numbers: dict[str, Any], begun: Event) -> OpFailure:
    named = {name: tuple(value) if isinstance(value, list) else value for name, value in numbers.items()}
    return OpFailure(
        case.operator,
        case.way,
        cast(FailureKind, kind),
        cast(FailureCode, code),
        tuple(named.items()),
        (case,),
        1,
        begun["text"],
        begun["elements"],
    )


def _grouped(failures: Iterable[Iterable[tuple[OpFailure, str]]]) -> list[tuple[OpFailure, str]]:
    """Put failures together that are alike: the operator, the way, the kind, and words without numbers.

    The smallest sample stands for all. Errors that were raised are alike where their words are: `size 3 is
    too small` and `size 7 is too small`.
    """
    groups: dict[tuple[str, ...], tuple[OpFailure, str]] = {}
    for failure, text in chain.from_iterable(failures):
        numbers = dict(failure.numbers)
        error = f"{numbers.get('error')}: {numbers.get('text')}" if failure.code == "raises" else ""
        error = re.sub(r"[-+.\d]+(e[-+]?\d+)?|nan|inf", "#", error)
        error = re.sub(r"\[[#, ]*\]", "[#]", error)
        key = (failure.operator, failure.way, failure.kind, error)
        before = groups.get(key)
        smaller = before is None or failure.elements < before[0].elements
        smallest, program = (failure, text) if before is None or smaller else before
        cases = dict.fromkeys([*(before[0].cases if before else ()), *failure.cases])
        count = (before[0].count if before else 0) + 1
        groups[key] = (replace(smallest, cases=tuple(cases), count=count), program)
    return list(groups.values())


def _written(
    failures: Sequence[tuple[OpFailure, str]], options: CheckOpOptions, warn: Tell, *, runs_here: bool
) -> Iterable[OpFailure]:
    """Write the program of each failure, and run it if this machine can; name one that cannot be written."""
    for failure, text in failures:
        path = None
        if text:
            try:
                path = _write_program(failure, text, options.out or _OUT)
            except (OSError, ProbeError) as error:  # what came of the samples is shown in any case
                why = (
                    error.message if isinstance(error, ProbeError) else f"{error.filename}: {error.strerror}"
                )
                warn(f"the program for {failure.operator} could not be written: {why}")
        alone = _shows(path) if path and runs_here else None
        yield replace(failure, script=path, alone=alone)


def _write_program(failure: OpFailure, text: str, out: Path) -> Path:
    """Write a program under a name that no other one has; return its path."""
    out.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "_", f"{failure.operator}_{failure.kind}")
    if failure.way == "decomposition":
        stem += "_decomposition"
    names = (out / f"{stem}{'' if not number else f'_{number}'}.py" for number in range(10_000))
    path = next(path for path in names if not path.exists() or path.read_text(encoding="utf-8") == text)
    write_whole(path, text)
    return path


def _shows(script: Path) -> bool | None:
    """Run a program that shows a failure; return whether it does, None where it did not end."""
    try:
        ended = subprocess.run(
            [sys.executable, str(script)],
            env={**without_writing(os.environ), **_environment()},
            capture_output=True,
            check=False,
            timeout=_ALONE_S,
        )
    except subprocess.TimeoutExpired:
        return None
    return ended.returncode != 0
