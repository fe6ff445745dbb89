"""`probe bisect`: which build, setting or decision makes the difference, by predicates of `probe reduce`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.flips import flips_of_decision
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.files import seen_from
from inductor_probe.measuring.script_process import OwnProgram
from inductor_probe.model.bisection import BisectedKind, BisectedSide, BisectOutput
from inductor_probe.model.flip import Flip
from inductor_probe.model.output import Output
from inductor_probe.options.programs import BisectOptions, ReduceOptions
from inductor_probe.options.verb import Progress, several, takes
from inductor_probe.reduction.asking import asked
from inductor_probe.reduction.builds import builds_of
from inductor_probe.reduction.child import ReducingOptions
from inductor_probe.reduction.predicates import Shown, predicate_of
from inductor_probe.reduction.reduce import program_of
from inductor_probe.reduction.search import ddmin
from inductor_probe.report import shown as views
from inductor_probe.report.document import Document
from inductor_probe.report.pages.bisect import bisect_page
from inductor_probe.report.words.diff import summary_words

if TYPE_CHECKING:
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.session import Run

_OF_THREE = 3


class Bisection(views.Shown, Struct, frozen=True):
    """What makes the difference: see `BisectOutput`. `diff` compares the dumps of the pair."""

    record: BisectOutput
    diff: Diff | None = None

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """What makes the difference, and what changed with it."""
        yield from bisect_page(self.record)
        if self.diff is not None:
            yield from self.diff.document


class _Side(Struct, frozen=True):
    """How the script is run: a build, or what is set."""

    name: str
    program: OwnProgram


_Change = tuple[str, str]
"""A name with its value: a setting of torch, a variable; a decision has its option as name."""


@takes(BisectOptions)
def bisect(options: BisectOptions, progress: Progress) -> Bisection:
    """Look for what makes the difference: which of several builds, settings, or decisions of two runs.

    Raises:
        ProbeError: nothing is to be looked for, or the sides differ in nothing that can be changed.
    """
    keep = tuple(several(options.keep))
    if not keep:
        raise ProbeError("nothing is looked for", "for example --keep wrong, or --keep 'expect: --kernels 3'")
    asker = _Asker(keep, progress)
    begin = time.monotonic()
    if options.runs is not None:
        record, sides = _over_decisions(options, asker)
    elif options.pythons or options.torch:
        record, sides = _over_builds(options, asker, progress)
    else:
        record, sides = _over_settings(options, asker)
    record = replace(record, asked=asker.asked, seconds=time.monotonic() - begin)
    if not record.pair:
        return Bisection(record)
    runs = [_dumped(side, options.out or Path.cwd(), progress) for side in sides]
    by_name = dict(zip(record.pair, runs, strict=True))
    seen = tuple(
        replace(one, run=seen_from(by_name[one.name].path, Path.cwd()) if one.name in by_name else None)
        for one in record.sides
    )
    record = replace(record, sides=seen)
    if not all(run.graphs for run in runs):
        return Bisection(record)
    from inductor_probe.api.diff import Diff

    diff = Diff(*runs)
    return Bisection(replace(record, diff=diff.result, summary=summary_words(diff.result)), diff)


class _Asker:
    """Asks sides whether they show what texts of predicates say: the same as the first that does."""

    def __init__(self, keep: tuple[str, ...], progress: Progress) -> None:
        self.keep, self._progress = keep, progress
        self._times = _OF_THREE if any(predicate_of(text).kind == "slow" for text in keep) else 1
        self._first: Shown | None = None
        self.asked = 0

    def ask(self, side: _Side) -> Shown:
        """Return what a side shows; of a time it has to be shown three times."""
        first, shown = self._first, Shown(False)
        for number in range(self._times):
            self._progress(f"asking {side.name}" + (f" ({number + 1})" if number else ""))
            with tempfile.TemporaryDirectory(prefix="bisect-", ignore_cleanup_errors=True) as folder:
                request = ReducingOptions(
                    keep=self.keep, folder=folder, target=str(side.program.script), head="", budget=1.0,
                    jobs=1, settings=side.program.settings, flips=side.program.flips, final=True,
                    failure=first.failure if first else (),
                    causes=first.causes if first else (),
                )  # fmt: skip
                shown = asked(side.program, request)
            self.asked += 1
            if not shown.holds:
                break
        if shown.holds and first is None:
            self._first = shown
        return shown


def _over_builds(
    options: BisectOptions, asker: _Asker, progress: Progress
) -> tuple[BisectOutput, tuple[_Side, ...]]:
    """Search the builds, in their order, for the two between which it comes or goes."""
    program = _program(options, dict(options.knobs), dict(options.env))
    builds = builds_of(tuple(several(options.pythons)), tuple(several(options.torch)), progress)
    sides = [_Side(build.name, replace(program, python=build.python)) for build in builds]
    shown = {place: asker.ask(sides[place]) for place in (0, len(sides) - 1)}
    low, high = 0, len(sides) - 1
    pair = shown[low].holds != shown[high].holds
    while pair and high - low > 1:
        middle = (low + high) // 2
        shown[middle] = asker.ask(sides[middle])
        low, high = (middle, high) if shown[middle].holds == shown[low].holds else (low, middle)
    record = _record(asker, program, "builds", [(sides[place], shown[place]) for place in sorted(shown)])
    if not pair:
        return record, ()
    return replace(record, pair=(sides[low].name, sides[high].name)), (sides[low], sides[high])


def _over_settings(options: BisectOptions, asker: _Asker) -> tuple[BisectOutput, tuple[_Side, ...]]:
    """Look for the settings and variables without which the script stays as it is."""
    files = [_settings_in(file) for file in several(options.settings)]
    before = files[0] if len(files) > 1 else {}
    after = {**(files[-1] if files else {}), **options.knobs, **options.env}
    changes = [
        (name, after.get(name, "")) for name in {**before, **after} if before.get(name) != after.get(name)
    ]
    if not changes:
        raise ProbeError(
            "nothing differs between the two configurations",
            "name builds (--python A --python B), settings (--set NAME=VALUE, --settings FILE) or --runs A B",
        )

    def program(some: Sequence[_Change]) -> OwnProgram:
        values = {**before, **dict(some)}
        values = {name: value for name, value in values.items() if value or name in before}
        knobs = {name: value for name, value in values.items() if "." in name or name in options.knobs}
        return _program(options, knobs, {name: value for name, value in values.items() if name not in knobs})

    first = f"{seen_from(several(options.settings)[0], Path.cwd())}" if before else "the script as it is"
    return _over_changes(asker, "settings", first, changes, program)


def _over_decisions(options: BisectOptions, asker: _Asker) -> tuple[BisectOutput, tuple[_Side, ...]]:
    """Look for the decisions of run A that have to fall as in run B."""
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.session import Run
    from inductor_probe.api.verbs import open_target

    assert options.runs is not None  # noqa: S101 - the caller has asked
    a, b = (open_target(one) for one in options.runs)
    if not (isinstance(a, Run) and isinstance(b, Run)):
        raise ProbeError("two runs are compared, not graphs", "name two runs: --runs A B")
    diff = Diff(a, b)
    flips: dict[str, Flip] = {}
    for compared, (graph, _) in zip(diff.graphs, diff.pairs, strict=True):
        for change in compared.decisions:
            for flip in flips_of_decision(graph.compiled, change.a) if change.a is not None else ():
                flips.setdefault(flip.option, flip)
    if not flips:
        raise ProbeError(
            f"no decision that can be turned differs between {a.path.name} and {b.path.name}",
            "probe diff A B shows what does",
        )
    made, _ = program_of(ReduceOptions(a, trust=options.trust))

    def program(some: Sequence[_Change]) -> OwnProgram:
        return replace(made, flips=(*made.flips, *(flips[name] for name, _ in some)))

    return _over_changes(asker, "decisions", a.path.name, [(name, "") for name in flips], program)


def _over_changes(
    asker: _Asker,
    kind: BisectedKind,
    first: str,
    changes: Sequence[_Change],
    program: Callable[[Sequence[_Change]], OwnProgram],
) -> tuple[BisectOutput, tuple[_Side, ...]]:
    """Leave out changes, by ddmin, as long as it is as with all of them."""

    def side(some: Sequence[_Change]) -> _Side:
        return _Side(", ".join(map(_written, some)) if some else first, program(some))

    def answers(some: Sequence[_Change], holds: bool) -> bool:
        shown[side(some).name] = (side(some), answer := asker.ask(side(some)))
        return answer.holds == holds

    shown: dict[str, tuple[_Side, Shown]] = {}
    with_all = asker.ask(side(changes))
    shown[side(changes).name] = (side(changes), with_all)
    if answers((), with_all.holds):
        return replace(_record(asker, program(()), kind, [*shown.values()][::-1]), differing=len(changes)), ()

    def place_of(choices: Iterable[Sequence[_Change]]) -> int | None:
        return next((place for place, some in enumerate(choices) if answers(some, with_all.holds)), None)

    deciding = ddmin(changes, place_of)
    sides = side(()), side(deciding)
    ends = [shown[one.name] for one in sides]
    record = _record(asker, program(()), kind, ends)
    pair, names = tuple(one.name for one in sides), tuple(map(_written, deciding))
    return replace(record, pair=pair, changes=names, differing=len(changes)), sides


def _written(change: _Change) -> str:
    return "=".join(filter(None, change))


def _record(
    asker: _Asker, program: OwnProgram, kind: BisectedKind, shown: Sequence[tuple[_Side, Shown]]
) -> BisectOutput:
    sides = tuple(
        BisectedSide(side.name, answer.holds, answer.says, side.program.python) for side, answer in shown
    )
    return BisectOutput(keep=asker.keep, script=seen_from(program.script, Path.cwd()), kind=kind, sides=sides)


def _program(options: BisectOptions, knobs: dict[str, str], variables: dict[str, str]) -> OwnProgram:
    """Return how the script is run with some settings of torch, and variables."""
    asked_for = ReduceOptions(
        options.program,
        args=options.args,
        cases=options.cases,
        knobs=knobs,
        env=variables,
        trust=options.trust,
    )
    return program_of(asked_for)[0]


def _settings_in(file: Path) -> dict[str, str]:
    """Return the lines `NAME=VALUE` of a file.

    Raises:
        ProbeError: it cannot be read, or a line is none.
    """
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeError(f"{file} cannot be read: {error}") from error
    values = {}
    for number, line in enumerate(lines, 1):
        if text := line.partition("#")[0].strip():
            name, sign, value = text.partition("=")
            if not sign:
                raise ProbeError(f"{file}:{number}: invalid line {text!r}", "write NAME=VALUE")
            values[name.strip()] = value.strip()
    return values


def _dumped(side: _Side, out: Path, progress: Progress) -> Run:
    """Dump the script as one side runs it.

    Raises:
        RunFailedError: that could not be done.
    """
    from inductor_probe.api.verbs import open_run

    program = side.program
    words = ["dump", str(program.script), "--json", "--out", str(out)]
    words += [word for name, value in program.settings for word in ("--set", f"{name}={value}")]
    words += [word for name, value in program.variables.items() for word in ("--env", f"{name}={value}")]
    words += [word for flip in program.flips for word in flip.option.split(" ", 1)]
    words += ["--", *program.arguments] if program.arguments else []
    progress(f"dumping {side.name}")
    command = [str(program.python or sys.executable), "-m", "inductor_probe", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return open_run(json.loads(done.stdout)["path"])
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        raise RunFailedError(f"{side.name} could not be dumped: {last}") from None
