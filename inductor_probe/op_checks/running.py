"""Cases handed to processes that run them, and what their answers amount to.

A process imports torch once and runs case after case. One that is killed by a sample is replaced, and goes on
with the sample behind it. Each failure is kept with its smallest sample, and shown once more by a program of
its own: what fails only behind other samples is said to.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, cast

from inductor_probe.errors import ProbeError, RunFailedError, near_names
from inductor_probe.files import write_whole
from inductor_probe.machine.python_child import WRITE_FILES, ask_torch, python_command
from inductor_probe.model.op_check import (
    FailureKind,
    Form,
    Mode,
    OpCase,
    OpChecks,
    OpDecomposition,
    OpFailure,
    OpRow,
    Way,
)

_WORKER = Path(__file__).with_name("worker.py")
_ALONE_S = 300
Progress = Callable[[int, int, OpRow], None]
"""Called with how many cases are done, of how many, and the latest."""


@dataclass(frozen=True, slots=True)
class OpPlan:
    """What to check.

    Attributes:
        patterns: of names of operators, as globs or parts of a name. dtypes: of samples; empty for float32
            and uint8, as far as the operator has them.
        modes, forms: see `OpCase`. samples: at most of each case. device: `cpu` or `cuda`.
        decomposition: `MODULE:FUNCTION` or `FILE.py:FUNCTION` to try beside inductor's own; `operators` are
            the overloads that it stands for, found by the names of its parameters if empty.
        jobs: processes at once. budget: seconds after which no further sample begins.
        out: the folder for programs that show failures.
    """

    patterns: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = ("static", "dynamic", "backward")
    forms: tuple[Form, ...] = ("given", "channels_last")
    samples: int = 8
    device: str = "cpu"
    decomposition: str | None = None
    operators: tuple[str, ...] = ()
    jobs: int = 1
    budget: float = 600.0
    out: Path = Path(".probe/check-op")


@dataclass
class _Seen:
    """What was seen of a case so far; `failures` have their program's text with them."""

    case: OpCase
    samples: int = 0
    right: int = 0
    refused: int = 0
    not_compiled: int = 0
    breaks: int = 0
    random: int = 0
    left: int = 0
    seconds: float = 0.0
    failures: list[tuple[OpFailure, str]] = field(default_factory=list)

    @property
    def row(self) -> OpRow:
        failed = self.samples - self.right
        return OpRow(
            self.case, self.samples, self.right, failed, self.refused, self.not_compiled, self.breaks,
            self.random, self.seconds, self.left,
        )  # fmt: skip


def check_operators(plan: OpPlan, progress: Progress | None = None) -> OpChecks:
    """Run the samples of the operators that a plan names, and compare.

    Raises:
        ProbeError: no operator has such a name, or none such a dtype; the decomposition is not there, or
            fits no operator. RunFailedError: torch cannot be imported.
    """
    begin = time.monotonic()
    listed = ask_torch(_WORKER, "list", plan.device)
    cases = cases_of(plan, listed["operators"])
    work: SimpleQueue[OpCase] = SimpleQueue()
    for case in cases:
        work.put(case)
    done: list[_Seen] = []
    processes = [_Process(plan, cases[0], begin + plan.budget) for _ in range(min(plan.jobs, len(cases)))]

    def serve(process: _Process) -> None:
        with suppress(Empty):
            while True:
                seen = process.run(work.get_nowait())
                done.append(seen)
                if progress:
                    progress(len(done), len(cases), seen.row)

    try:
        with ThreadPoolExecutor(len(processes)) as pool:
            for future in [pool.submit(serve, process) for process in processes]:
                future.result()
    except KeyboardInterrupt:
        if not done:
            raise
    finally:
        for process in processes:
            process.close()
    order = {case: number for number, case in enumerate(cases)}
    done.sort(key=lambda seen: order[seen.case])
    decomposition = None
    if plan.decomposition:
        names = next((process.operators for process in processes if process.operators), ())
        calls = sum(process.calls for process in processes)
        decomposition = OpDecomposition(plan.decomposition, names, calls)
    failures = _written(_grouped(seen.failures for seen in done), plan)
    return OpChecks(
        torch=listed["torch"],
        device=plan.device,
        rows=tuple(seen.row for seen in done if seen.samples + seen.refused + seen.left),
        failures=tuple(failures),
        decomposition=decomposition,
        spent=time.monotonic() - begin,
    )


def _environment() -> dict[str, str]:
    """Return the environment of a worker: it writes no dumps, finds this package, and compiles each sample.

    A graph that comes from inductor's cache was traced before, perhaps with another decomposition. C++
    kernels may come from one: they are kept by their text.
    """
    kept = {name: value for name, value in os.environ.items() if name not in WRITE_FILES}
    package = str(Path(__file__).parents[2])
    kept |= dict.fromkeys(("TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE"), "0")
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, [package, kept.get("PYTHONPATH")]))}


def cases_of(plan: OpPlan, database: Sequence[dict[str, Any]]) -> list[OpCase]:
    """Return the cases of a plan: those with inductor's own decompositions first.

    Args:
        database: the operators; see `worker.listed`.

    Raises:
        ProbeError: no operator has such a name, or none such a dtype.
    """
    chosen = [each for each in database if each["name"] in {_plain(pattern) for pattern in plan.patterns}]
    chosen = chosen or [each for each in database if any(_matches(one, each) for one in plan.patterns)]
    if not chosen:
        pattern = plan.patterns[0]
        raise ProbeError(
            f"no operator in PyTorch's database matches {pattern}",
            near_names(pattern, [each["name"] for each in database]),
        )
    known = sorted({dtype for each in chosen for dtype in each["dtypes"]})
    wanted = plan.dtypes or ("float32", "uint8")
    if plan.dtypes == ("all",):
        wanted = tuple(known)
    if unknown := [dtype for dtype in plan.dtypes if dtype != "all" and dtype not in known]:
        names = ", ".join(each["name"] for each in chosen[:3])
        raise ProbeError(f"no sample of {names} is of {unknown[0]}", f"there are {', '.join(known)}")
    ways: tuple[Way, ...] = ("compiled", "decomposition") if plan.decomposition else ("compiled",)
    cases = [
        OpCase(each["name"], dtype, mode, form, way)
        for each in chosen
        for way in ways
        for dtype in each["dtypes"]
        if dtype in wanted or (not plan.dtypes and not set(wanted) & set(each["dtypes"]))
        for form in plan.forms
        for mode in plan.modes
        if not mode.startswith("backward") or dtype in each["gradients"]
    ]
    if not cases:
        dtypes, gradients = (", ".join(chosen[0][key]) or "none" for key in ("dtypes", "gradients"))
        raise ProbeError(
            f"{chosen[0]['name']} has no sample in {', '.join(wanted)} with {', '.join(plan.modes)}",
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


class _Process:
    """A worker, and what it said of itself. It is started with the first case, and again if it was killed."""

    def __init__(self, plan: OpPlan, first: OpCase, end: float) -> None:
        self.operators: tuple[str, ...] = ()
        self.calls = 0
        self._plan, self._first, self._end = plan, first, end
        self._process: subprocess.Popen[str] | None = None

    def run(self, case: OpCase) -> _Seen:
        """Run the samples of a case."""
        seen, begin, skip = _Seen(case), time.monotonic(), 0
        while time.monotonic() < self._end:
            last = self._ask(seen, case, skip)
            if last is None:
                break
            skip = last + 1
        else:
            seen.left = max(0, self._plan.samples - seen.samples - seen.refused)
        seen.seconds = time.monotonic() - begin
        return seen

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with suppress(OSError):
                    stream.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _ask(self, seen: _Seen, case: OpCase, skip: int) -> int | None:
        """Let the worker run samples; return None, or the number of the sample that killed it."""
        process, requests, answers = self._started()
        request = {
            "operator": case.operator, "dtype": case.dtype, "mode": case.mode, "form": case.form,
            "way": case.way, "skip": skip, "most": self._plan.samples, "end": self._end,
        }  # fmt: skip
        with suppress(BrokenPipeError):
            requests.write(json.dumps(request) + "\n")
            requests.flush()
        begun: dict[str, Any] = {"sample": skip, "elements": 0, "text": ""}
        for line in answers:
            answer = json.loads(line)
            if "calls" in answer:
                self.calls = answer["calls"]
                return None
            if "done" in answer:
                seen.left = answer["left"]
            elif "text" in answer:
                begun = answer
            else:
                _add(seen, begun, answer)
        status = process.wait()
        self._process = None
        number = begun["sample"]
        seen.samples += 1
        sentence = (
            f"the process was killed by signal {-status}" if status < 0 else f"it ended with status {status}"
        )
        seen.failures.append((_failure(case, "killed", sentence, begun), ""))
        return int(number)

    def _started(self) -> tuple[subprocess.Popen[str], IO[str], IO[str]]:
        """Return the process, which may have to be started, with where it reads requests and writes answers.

        Raises:
            ProbeError: it cannot do what is asked, and says why. RunFailedError: it did not start.
        """
        process = self._process
        begins = process is None
        if process is None:
            process = self._process = subprocess.Popen(
                python_command(_WORKER),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=_environment(),
            )
        requests, answers = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        if begins:
            asked = None
            if self._plan.decomposition:
                asked = {"place": _absolute(self._plan.decomposition), "operators": self._plan.operators}
            first = {"operator": self._first.operator, "dtype": self._first.dtype}
            with suppress(BrokenPipeError):
                request = {"device": self._plan.device, "decomposition": asked, "first": first}
                requests.write(json.dumps(request) + "\n")
                requests.flush()
            answer = json.loads(answers.readline() or "{}")
            if "error" in answer:
                raise ProbeError(answer["error"], answer["hint"])
            if "ready" not in answer:
                raise RunFailedError(
                    "the process that runs samples did not start", "`probe doctor` says more"
                )
            self.operators = tuple(answer["operators"])
        return process, requests, answers


def _absolute(place: str) -> str:
    """Return a decomposition's place with the whole path of its file: workers run elsewhere."""
    module, _, name = place.rpartition(":")
    if not module or not name:
        raise ProbeError(
            f"--decomp {place}: it names no function", "write MODULE:FUNCTION or FILE.py:FUNCTION"
        )
    return f"{Path(module).absolute()}:{name}" if module.endswith(".py") else place


def _add(seen: _Seen, begun: dict[str, Any], answer: dict[str, Any]) -> None:
    if "refused" in answer:
        seen.refused += 1
        return
    seen.samples += 1
    if answer.get("ok"):
        seen.right += 1
        seen.random += bool(answer["random"])
        seen.breaks += bool(answer["breaks"])
        seen.not_compiled += not answer["compiled"]
        return
    failure = _failure(seen.case, answer["kind"], answer["message"], begun)
    seen.failures.append((failure, answer["script"]))


def _failure(case: OpCase, kind: str, message: str, begun: dict[str, Any]) -> OpFailure:
    return OpFailure(
        case.operator,
        case.way,
        cast(FailureKind, kind),
        message,
        (case,),
        1,
        begun["text"],
        begun["elements"],
    )


def _grouped(failures: Iterable[Iterable[tuple[OpFailure, str]]]) -> list[tuple[OpFailure, str]]:
    """Put failures together that are alike: the operator, the way, the kind, and words without numbers.

    The smallest sample stands for all: `output 0[0, 1, 2] is 3.0` and `output 0[4, 0, 0] is 7.5` are alike.
    """
    groups: dict[tuple[str, ...], tuple[OpFailure, str]] = {}
    for failure, text in (each for several in failures for each in several):
        alike = re.sub(r"[-+.\d]+(e[-+]?\d+)?|nan|inf", "#", failure.message)
        alike = re.sub(r"\[[#, ]*\]", "[#]", alike)
        key = (failure.operator, failure.way, failure.kind, alike if failure.kind == "raises" else "")
        before = groups.get(key)
        smaller = before is None or failure.elements < before[0].elements
        smallest, program = (failure, text) if before is None or smaller else before
        cases = dict.fromkeys([*(before[0].cases if before else ()), *failure.cases])
        count = (before[0].count if before else 0) + 1
        groups[key] = (replace(smallest, cases=tuple(cases), count=count), program)
    return list(groups.values())


def _written(failures: Sequence[tuple[OpFailure, str]], plan: OpPlan) -> Iterable[OpFailure]:
    """Write the program of each failure, a name that no earlier one has, and run it."""
    for failure, text in failures:
        if not text:
            yield failure
            continue
        plan.out.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"\W+", "_", f"{failure.operator}_{failure.kind}")
        if failure.way == "decomposition":
            stem += "_decomposition"
        taken = (plan.out / f"{stem}{'' if not number else f'_{number}'}.py" for number in range(10_000))
        path = next(path for path in taken if not path.exists() or path.read_text(encoding="utf-8") == text)
        write_whole(path, text)
        yield replace(failure, script=path, alone=_shows(path))


def _shows(script: Path) -> bool | None:
    """Run a program that shows a failure; return whether it does, None where it did not end."""
    try:
        ended = subprocess.run(
            [sys.executable, str(script)],
            env=_environment(),
            capture_output=True,
            check=False,
            timeout=_ALONE_S,
        )
    except subprocess.TimeoutExpired:
        return None
    return ended.returncode != 0
