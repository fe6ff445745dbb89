"""Where the time of compiling goes: of a run by torch's log beside it, of a script by running it twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.api.meaning import meaning_of
from inductor_probe.api.on_disk import RunOnDisk
from inductor_probe.api.rows import Rows
from inductor_probe.api.session import Graph, Run
from inductor_probe.api.verbs import open_target
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError, UnreadableError
from inductor_probe.model.compile_log import CompileLog
from inductor_probe.model.compile_time import CompileSummary, CompileTimeOutput, CompileTimes
from inductor_probe.model.record import collected
from inductor_probe.options.programs import CompileTimeOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document

_ROUNDS = 3
"""Runs with each number: fewer leave no freedom for an interval, more take longer than one waits."""
_LEAST_NUMBERS = 3
_PLACE = "{n}"


class CompileTimeRows(Rows[CompileTimes]):
    """Where the time of compiling went, a run or script a row."""

    record = CompileTimeOutput
    noun = "run"
    nothing = "nothing was compiled"
    logs: tuple[CompileLog, ...] = ()

    @property
    def chrome(self) -> str:
        """All regions as a trace for chrome://tracing and Perfetto, a process a run."""
        from inductor_probe.report.chrome import compile_trace

        return compile_trace(self.logs)

    def _view(self) -> Document:
        return self.page()

    def page(self, *, everything: bool = False, guards: bool = False) -> Document:
        """Return each on a page; with `everything` tables to their end, with `guards` the guards alone."""
        from inductor_probe.report.pages.compile_time import compile_time_pages, guard_pages

        if guards:
            return guard_pages(self, everything=everything)
        return compile_time_pages(self, everything=everything)


@takes(CompileTimeOptions)
def compile_time(options: CompileTimeOptions, progress: Progress) -> CompileTimeRows:
    """Return where the time of compiling a program goes: by phase, compile, region, and run of a compiler.

    A script is run twice in processes of its own, without a dump: with empty caches, and with those that the
    first left. Of a run the log is read that torch wrote beside it.

    Raises:
        NotFoundError: the run has no such log. RunFailedError: the script failed.
    """
    if isinstance(options.program, (Run, Graph)) or options.program is None:
        if options.grow:
            raise ProbeError(
                "--grow runs a script with each number", "probe compile-time SCRIPT --grow 2,4,8"
            )
        return _of_target(open_target(options.program))
    of_script = bool(options.cases or options.knobs or options.env or options.args or options.grow)
    meaning = meaning_of(str(options.program), Path.cwd(), of_script=of_script)
    if meaning.beside:
        progress.say(meaning.beside)
    if meaning.script is None:
        return _of_target(open_target(meaning.target))
    if options.grow:
        return _grown(meaning.script, options, progress)
    return _of_script(meaning.script, options, progress)


def _of_target(target: RunOnDisk | Graph) -> CompileTimeRows:
    from inductor_probe.analysis.compile_time import compile_times
    from inductor_probe.reader.logs.compile_time import read_compile_log
    from inductor_probe.reader.logs.trace import trace_log

    run = target.run if isinstance(target, Graph) else target
    logs = {one: read_compile_log(log) for one in (run, *run.others) if (log := trace_log(one.path))}
    if not logs:
        version = dict(run.manifest.versions).get("torch", "") if run.manifest else ""
        raise NotFoundError(
            f"{run.path.name} has no trace log in {run.path.parent / 'tlparse'}"
            + (f": torch {version} wrote none" if version else ""),
            "torch writes one with a dump since 2.12; probe compile-time SCRIPT runs a script with one",
        )
    rows = (compile_times(one.path.name, log, one.manifest, dumped=True) for one, log in logs.items())
    return _rows(rows, logs.values())


def compile_summary_of(run: RunOnDisk) -> CompileSummary | None:
    """Return what the compiles of a dump took; None without torch's log, which it writes since 2.12."""
    from inductor_probe.analysis.compile_time import compile_summary

    try:
        return compile_summary(_of_target(run))
    except NotFoundError:
        return None


def _rows(rows: Iterable[CompileTimes], logs: Iterable[CompileLog]) -> CompileTimeRows:
    made = CompileTimeRows(rows)
    made.logs = tuple(logs)
    return made


def _of_script(script: Path, options: CompileTimeOptions, progress: Progress) -> CompileTimeRows:
    from inductor_probe.analysis.compile_time import compile_times, warm_compile

    logs: list[CompileLog] = []
    progress.say(f"running {script} with empty caches")
    statuses: list[int] = []
    for log, status in _logs(script, options, times=2 if options.warm else 1):
        logs.append(log)
        statuses.append(status)
        if len(logs) == 1 and options.warm:
            progress.say("once more, with what it left in them")
    cold, *again = logs
    if not cold.regions:
        raise UnreadableError(f"{script} compiled nothing, or torch says nothing of the time that it took")
    warm = warm_compile(again[0], cold) if again and statuses[0] == statuses[1] else None
    if again and warm is None:
        progress.say(f"with these caches it ended with status {statuses[1]}, without them with {statuses[0]}")
    row = compile_times(str(script), cold, None, dumped=False, warm=warm, exit_status=statuses[0])
    return _rows([row], [cold])


def _logs(script: Path, options: CompileTimeOptions, times: int) -> Iterator[tuple[CompileLog, int]]:
    """Run a script some times with the same caches, and yield its log and exit status after each."""
    from inductor_probe.capture.scripts import script_arguments
    from inductor_probe.capture.torch_settings import is_setting
    from inductor_probe.capture.traced import run_traced

    settings = tuple((name, value) for name, value in options.knobs.items() if is_setting(name))
    knobs = {name: value for name, value in options.knobs.items() if not is_setting(name)}
    args = script_arguments(script, options.args, options.cases, knobs)
    for traces, status in run_traced(script, args, options.env, settings, times=times):
        yield _joined(traces), status


def _grown(script: Path, options: CompileTimeOptions, progress: Progress) -> CompileTimeRows:
    """Run a script with each number in turns, and return a row a number, the last with how all grow."""
    from inductor_probe.analysis.compile_time import compile_times
    from inductor_probe.measuring.growth import growth_of

    numbers = sorted(set(options.grow))
    if len(numbers) < _LEAST_NUMBERS or numbers[0] < 1:
        raise ProbeError(
            f"invalid numbers {','.join(map(str, options.grow))}: growth and what is fixed in a time are "
            "apart from three numbers on, each 1 or more",
            "--grow 2,4,8",
        )
    runs: list[tuple[int, CompileTimes]] = []
    logs: dict[int, CompileLog] = {}
    turns = [number for _ in range(_ROUNDS) for number in numbers]
    for turn, number in enumerate([numbers[0], *turns]):
        progress.say(f"running {script} with {number}" + (f", {turn} of {len(turns)}" if turn else " first"))
        ((log, status),) = _logs(script, _with_number(options, number), times=1)
        if status or not log.regions:
            what = f"ended with status {status}" if status else "compiled nothing"
            raise RunFailedError(
                f"{script} with {number} {what}", f"see what it printed: {number} is its number"
            )
        if turn:  # the first one reads files of torch that others then find in memory
            runs.append((number, compile_times(f"{script} with {number}", log, None, dumped=False)))
            logs[number] = log
    rows = dict(runs)
    rows[numbers[-1]] = replace(rows[numbers[-1]], growth=growth_of(runs))
    return _rows((rows[number] for number in numbers), (logs[number] for number in numbers))


def _with_number(options: CompileTimeOptions, number: int) -> CompileTimeOptions:
    """Return options with a number where `{n}` is; it is the script's last argument where that is nowhere."""

    def put(text: str) -> str:
        return str(text).replace(_PLACE, str(number))

    written = replace(
        options,
        args=tuple(map(put, options.args)),
        cases=tuple(map(put, options.cases)),
        knobs={name: put(value) for name, value in options.knobs.items()},
        env={name: put(value) for name, value in options.env.items()},
    )
    return written if written != options else replace(written, args=(*written.args, str(number)))


def _joined(traces: Iterable[Path]) -> CompileLog:
    """Read the logs of all processes of a run of a script as one."""
    from inductor_probe.reader.logs.compile_time import read_compile_log

    logs = [read_compile_log(trace) for trace in traces]
    return CompileLog(
        tuple(region for log in logs for region in log.regions),
        tuple(row for log in logs for row in log.metrics),
        tuple(cache for log in logs for cache in log.caches),
        tuple(build for log in logs for build in log.builds),
        collected(
            (digest, one) for log in logs for digest, of_text in log.kernels.items() for one in of_text
        ),
        tuple(row for log in logs for row in log.guards),
        tuple(row for log in logs for row in log.specialisations),
        tuple(row for log in logs for row in log.starts),
    )
