"""Whether a script shows what is to stay so: asked in forks of a process that has imported torch."""

from __future__ import annotations

import json
import math
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.accuracy_checks.child import ALWAYS, Judge
from inductor_probe.accuracy_checks.options import AccuracyOptions
from inductor_probe.analysis.expect import check_run
from inductor_probe.api.expect import expect
from inductor_probe.api.session import Run
from inductor_probe.bench.verdict import conclude
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.in_process import recorded
from inductor_probe.capture.own_calls import OwnCalls, OwnRequest
from inductor_probe.capture.own_child import set_hooks
from inductor_probe.capture.process import end_with
from inductor_probe.capture.targets.graphs import Graphs, leave_kernels_out
from inductor_probe.errors import ProbeError
from inductor_probe.measuring.own_calls import compare_programs
from inductor_probe.measuring.script_process import OwnProgram
from inductor_probe.model.codec import from_json
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.expectation import Expectation
from inductor_probe.model.manifest import CompileFailure
from inductor_probe.model.own_call import NoOwnCall
from inductor_probe.model.timing import Series
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.reduction.predicates import OtherWay, Predicate, Shown
from inductor_probe.report.words.expect import checked_sentence
from inductor_probe.report.words.own_call import why_no_own_call

_VARYING = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"|\b[A-Za-z_]+_\d+\b")
_LONGEST, _MOST = 500, 30
"""Characters of a text of an answer, and texts: an answer is read at once, of 64 KiB at most."""
_SAME_WORDS = 6
"""Of the message of a failure; behind them it names what differs from program to program."""
_WRONG = "wrong: "
_RECOMPILE = Expectation("no-recompile")


class Case(Struct, frozen=True):
    """What is asked of each script.

    Attributes:
        keep: the predicates. built: whether g++ compiles kernels, whatever is asked.
        failure, causes: of the unreduced program. A smaller one has to have the failure, and one of the
            causes: else it would show something else.
        seconds: of timing a candidate. threads: of torch.
    """

    keep: tuple[Predicate, ...]
    threads: int
    built: bool = False
    failure: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    seconds: float = 2.0


def shown(script: Path, case: Case, folder: Path, arguments: Sequence[str] = ()) -> Shown:
    """Run a script, and return what it shows; in a process that ends with it. Its files are in a folder."""
    torch.set_num_threads(case.threads)
    sys.argv = [str(script), *arguments]
    judging = _Judging(script, case, folder)
    holds = all(judging.hold(one) for one in case.keep)
    return Shown(holds, tuple(judging.says), judging.failure, tuple(dict.fromkeys(judging.causes)))


class _Judging:
    """Holds predicates against a script; for the attributes see `Shown`."""

    def __init__(self, script: Path, case: Case, folder: Path) -> None:
        self._script, self._case, self._folder = script, case, folder
        self._compiled: Run | None = None
        self._raised = ""
        self.says: list[str] = []
        self.causes: list[str] = []
        self.failure: tuple[str, ...] = ()

    def hold(self, one: Predicate) -> bool:
        """Say whether a predicate holds; what does not need the kernels is asked of one compile."""
        match one.kind:
            case "run":
                return self._runs(one)
            case "wrong":
                return self._is_wrong(one)
            case "slow":
                return self._is_slow(one)
        run = self._run()
        failures = [each for each in (run.manifest and run.manifest.failures) or () if not each.suppressed]
        if one.kind == "fails":
            return self._fails(failures)
        if self._raised or failures:
            self.says.append(f"it fails: {failures[0].message if failures else self._raised}")
            return False
        if one.kind == "recompiles":
            checked = check_run(run.debug_dir, _RECOMPILE)
            self.says.append(checked_sentence(checked))
            return checked.standing == "fails"
        return self._expects(one, run)

    def _run(self) -> Run:
        """Compile the script as `probe dump` records it, once."""
        if self._compiled is None:
            records = any(one.asks_decisions for one in self._case.keep)
            with ExitStack() as around:
                results = around.enter_context(
                    recorded(self._script.name, "recording", out=self._folder, record=records)
                )
                if not self._case.built:
                    Graphs(EventLog(self._folder), lambda _: True).hook(
                        sys.modules["torch._inductor.output_code"]
                    )
                    around.callback(leave_kernels_out())
                self._raised = self._execute()
            self._compiled = Run(read_run(results[0].run))
        return self._compiled

    def _execute(self) -> str:
        """Run the script; return what it raised."""
        try:
            runpy.run_path(str(self._script), run_name="__main__")
        except SystemExit as error:
            return f"it ends with status {error.code}" if error.code else ""
        except Exception as error:  # of a script that is to fail, too
            return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        return ""

    def _fails(self, failures: Sequence[CompileFailure]) -> bool:
        if not failures:
            self.says.append(f"it compiles{f', and raises {self._raised}' if self._raised else ''}")
            return False
        first = failures[0]
        self.failure = (first.stage, first.exception, *_VARYING.sub("~", first.message).split()[:_SAME_WORDS])
        self.says.append(f"{first.stage}: {first.exception}: {first.message}")
        return self._case.failure in ((), self.failure)

    def _expects(self, one: Predicate, run: Run) -> bool:
        try:
            checked = expect(run, run.graphs, one.expected).outcomes
        except ProbeError as error:
            self.says.append(error.message)
            return False
        self.says += map(checked_sentence, checked)
        wanted = "fails" if one.negated else "holds"
        for expected in one.expected:
            standings = [each.standing for each in checked if each.expectation == expected]
            if not (wanted in standings if one.negated else {*standings} == {wanted}):
                return False
        causes = [cause.decision for each in checked for cause in each.causes if each.standing == "fails"]
        return self._is_same([f"{cause.kind}: {cause.cause}" for cause in causes if cause])

    def _is_same(self, causes: Sequence[str]) -> bool:
        """Whether one of some causes is one of the unreduced program, if that had any of their kinds."""
        self.causes += causes
        kinds = {cause.partition(": ")[0] for cause in causes}
        before = [cause for cause in self._case.causes if cause.partition(": ")[0] in kinds]
        if not causes:
            return not self._case.causes
        return not before or bool({*before} & {*causes})

    def _runs(self, one: Predicate) -> bool:
        words = [word.replace("{}", str(self._script)) for word in one.command]
        words += [] if any("{}" in word for word in one.command) else [str(self._script)]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        except OSError as error:
            self.says.append(f"{words[0]} cannot be run: {error.strerror}")
            return False
        last = "".join(f": {line[:200]}" for line in (done.stderr or done.stdout).strip().splitlines()[-1:])
        self.says.append(f"{words[0]} ends with status {done.returncode}{last}")
        return done.returncode == 0

    def _is_wrong(self, one: Predicate) -> bool:
        """Judge the calls of the script as `probe accuracy` does: the same operator has to be wrong.

        Of the unreduced program that is the one that is named, or else the one that is most wrong.
        """
        events: list[dict[str, Any]] = []
        judge = Judge(AccuracyOptions(folder=str(self._folder)), partial(_add, events))
        judge.install()
        set_hooks(ALWAYS, (), EventLog(self._folder))
        judge.set_up()
        if raised := self._execute():
            self.says.append(f"it fails: {raised}")
            return False
        verdicts = dict.fromkeys(event["verdict"] for event in events if event["event"] == "call")
        faults = sorted((event for event in events if event["event"] == "fault"), key=_error, reverse=True)
        names = [*dict.fromkeys(map(_operators, faults))]
        where = f": {', '.join(names)}" if names else ""
        self.says.append(f"its calls are {', '.join(verdicts) or 'not judged'}{where}")
        mine = [name for name in names if one.operator in ("", *name.split(" of "))]
        if "wrong" not in verdicts or (one.operator and not mine):
            return False
        return self._is_same([f"{_WRONG}{name}" for name in (mine if self._case.causes else mine[:1])])

    def _is_slow(self, one: Predicate) -> bool:
        """Time the call of the script; the whole interval has to be beyond the ratio."""
        wanted = (("0/0", ".backward()" in self._script.read_text()),)
        answer = self._against_eager(wanted) if one.other is None else self._against(one.other, wanted)
        if isinstance(answer, str):
            self.says.append(f"its call cannot be timed{f': {answer}' if answer else ''}")
            return False
        interval = f"{answer.low:.3g} to {answer.high:.3g}"
        self.says.append(f"the compiled call takes {answer.ratio:.3g} times as long ({interval})")
        return answer.low >= one.ratio and answer.verdict != "INVALID"

    def _against_eager(self, wanted: Sequence[tuple[str, bool]]) -> Comparison | str:
        """Return how long the call takes against eager's, or why that is not known."""
        events: list[dict[str, Any]] = []
        request = OwnRequest(tuple(wanted), seconds=self._case.seconds, most=2)
        own = OwnCalls(request, partial(_add, events))
        own.install()
        raised = self._execute()
        if not raised:
            own.at_end("ended")
        series = next((event["series"] for event in events if event["event"] == "series"), None)
        return raised if series is None else conclude([from_json(Series, series)])

    def _against(self, other: OtherWay, wanted: Sequence[tuple[str, bool]]) -> Comparison | str:
        """Return how long the call takes against that of the script run another way, lap by lap."""
        program = OwnProgram(script=self._script, arguments=tuple(sys.argv[1:]), variables={})
        otherwise = replace(
            program, settings=other.settings, variables=dict(other.variables), flips=other.flips,
            python=other.python,
        )  # fmt: skip
        pair = compare_programs(
            otherwise, program, (wanted, wanted), budget=self._case.seconds, margin=0.01, processes=1
        )
        return why_no_own_call(pair) if isinstance(pair, NoOwnCall) else pair.comparison


def _error(fault: Mapping[str, Any]) -> float:
    """Return how far a fault is off, relative to what is right there; infinite for another size or dtype."""
    error = fault["judged"].get("compiled_error")
    return float(error[1]) if error else math.inf


def _operators(fault: Mapping[str, Any]) -> str:
    """Return the operator of a fault, with that of the script which it is a part of."""
    return " of ".join(filter(None, (fault["operator"], fault["part_of"])))


def operators_in(causes: Sequence[str]) -> list[str]:
    """Return the operators that are wrong, as causes of `Shown` say."""
    wrong = [cause.removeprefix(_WRONG) for cause in causes if cause.startswith(_WRONG)]
    return [name for cause in wrong for name in cause.split(" of ")]


def _add(events: list[dict[str, Any]], event: str, **values: Any) -> None:
    events.append({"event": event, **values})


class Forks:
    """Asks scripts in forks, so many at once; an answer that is late, or of a fork that crashed, is no.

    Args:
        limit_s: seconds for one script. folder: for one of each fork, in which it runs.
    """

    def __init__(self, case: Case, jobs: int, limit_s: float, folder: Path) -> None:
        self.case, self._jobs, self.limit_s, self._folder = case, jobs, limit_s, folder
        self._running: dict[int, tuple[Path, int, float]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no further script is to be begun."""
        return len(self._running) >= self._jobs

    def begin(self, script: Path) -> int:
        """Ask a script; return the process that does."""
        reading, writing = os.pipe()
        searching, folder = os.getpid(), Path(tempfile.mkdtemp(prefix="fork-", dir=self._folder))
        pid = os.fork()
        if not pid:
            end_with(searching)
            self._answer(script, folder, writing)
        os.close(writing)
        self._running[pid] = (folder, reading, time.monotonic())
        return pid

    def _answer(self, script: Path, folder: Path, writing: int) -> None:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.chdir(folder)
            answer = shown(script, self.case, folder)
            texts = [[text[:_LONGEST] for text in row[:_MOST]] for row in (answer.says, answer.failure)]
            causes = [str(cause)[:_LONGEST] for cause in answer.causes[:_MOST]]
            os.write(writing, json.dumps([answer.holds, *texts, causes]).encode())
        except BaseException as error:
            with suppress(OSError):
                os.write(
                    writing, json.dumps([False, [f"{type(error).__name__}: {error}"[:500]], [], []]).encode()
                )
        finally:
            os._exit(0)

    def wait(self) -> tuple[int, Shown]:
        """Return the next answer, with its process."""
        import select

        pipes = {reading: pid for pid, (_, reading, _) in self._running.items()}
        while True:
            ready, _, _ = select.select([*pipes], [], [], 1.0)
            late = [
                pid for pid, (*_, begin) in self._running.items() if time.monotonic() - begin > self.limit_s
            ]
            for pid in [*(pipes[reading] for reading in ready), *late]:
                _, reading, _ = self._running[pid]
                data = os.read(reading, 1 << 16) if reading in ready else b""
                self.end(pid)
                if data:
                    holds, says, failure, causes = json.loads(data)
                    return pid, Shown(holds, tuple(says), tuple(failure), tuple(causes))
                return pid, Shown(False, ("its process crashed" if reading in ready else "it took too long",))

    def end(self, pid: int) -> None:
        """End a process, whatever it does, and forget it, with the files that it left."""
        folder, reading, _ = self._running.pop(pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        shutil.rmtree(folder, ignore_errors=True)

    def end_all(self) -> None:
        """End all processes that were begun."""
        for pid in [*self._running]:
            self.end(pid)
