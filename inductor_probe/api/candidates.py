"""Many ways to compile one run: each dumped, compared as code, checked and timed against it, and ranked."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from inductor_probe import __version__
from inductor_probe.api.baseline import AnyRun, Recipe, last_error
from inductor_probe.api.diff import Diff
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.api.whatif import WhatIf, one_graph, why_not_timed
from inductor_probe.bench.looks import Judged, Standing, judge, seconds_of, series_of
from inductor_probe.errors import ProbeError
from inductor_probe.files import read_text, write_whole
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.codec import to_json
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.output import Output
from inductor_probe.model.whatif import (
    WHATIF_NAME,
    Candidate,
    GraphWhatIf,
    Rank,
    Trial,
    TrialsIndex,
    WhatIfOutput,
)
from inductor_probe.report.document import Document, apart
from inductor_probe.report.pages.whatif import ranked, trials_page, with_sides
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.flips import flip_texts
from inductor_probe.report.words.whatif import (
    CALL_OF_A,
    CALL_OF_B,
    NOT_FASTER,
    quotable,
    trials_sentence,
    whole_call,
    why_not,
    wrong_detail,
)
from inductor_probe.store.samples import read_samples

_RANK_OF: dict[Standing, Rank] = {
    "gain": "gain", "same": "no-change", "not-faster": "no-change", "loss": "loss", "open": "undecided",
}  # fmt: skip
_PLACE_OF_KERNEL = re.compile(r"(?m)^# kernel path:.*$")
_MINUTE = 60


@dataclass(frozen=True, repr=False)
class Trials(Shown):
    """A run, and what came of each candidate against it, the gains first.

    Attributes:
        interrupted: by Ctrl-C: what was done by then is here, and on disk.
        answers: the whole comparison of each candidate, where those are to be shown.
        margin: a smaller difference counts as none.
    """

    run: RunOnDisk
    trials: tuple[Trial, ...]
    interrupted: bool = False
    answers: tuple[WhatIf, ...] = ()
    margin: float = 0.01

    @property
    def path(self) -> Path:
        """The file that was written after each candidate."""
        return self.run.path / WHATIF_NAME

    @property
    def gains(self) -> tuple[Trial, ...]:
        """The candidates that are faster and right, the fastest first."""
        return tuple(trial for trial in self.trials if trial.rank == "gain")

    def with_details(self, details: bool = True) -> Trials:
        """Return the same with what else is folded in the comparisons that are shown."""
        return replace(self, answers=tuple(answer.with_details(details) for answer in self.answers))

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return WhatIfOutput(a=self.run.path, trials=self.trials, summary=(trials_sentence(self.trials),))

    @property
    def document(self) -> Document:
        """A row for each candidate, and one sentence."""
        pages = [*(answer.document for answer in self.answers)]
        yield from apart(
            [*pages, trials_page(self.trials, self.margin, several_graphs=len(self.run.graphs) > 1)]
        )


@dataclass
class _Pair:
    """A graph of A and its partner under a candidate, while it is looked at."""

    candidate: Candidate
    run: RunOnDisk
    a: GraphOnDisk
    b: GraphOnDisk
    diff: GraphDiff
    together: bool = False
    look: int = 0
    judged: Judged | None = None


@dataclass
class _Tries:
    """The state of trying candidates against a run; `results` by candidate and graph."""

    a: RunOnDisk
    recipe: Recipe
    kind: Callable[[DebugDir, str | None], RunOnDisk]
    settings: BenchSettings
    planned: int
    trust: bool
    progress: Callable[[str], None]
    fixed: float | None
    deadline: float
    only: GraphOnDisk | None = None
    results: dict[tuple[Candidate, str | None], Trial] = field(default_factory=dict)
    pairs: list[_Pair] = field(default_factory=list)
    codes: dict[tuple[Path, str], tuple[Candidate, str | None]] = field(default_factory=dict)
    same_as: dict[tuple[Candidate, str | None], tuple[Candidate, str | None]] = field(default_factory=dict)
    answers: list[WhatIf] = field(default_factory=list)
    dump_s: float = 0.0
    around_s: float = 0.0
    number: int = 0

    def keep(self, trial: Trial) -> None:
        """Keep what came of a candidate, here and on disk."""
        key = trial.candidate, trial.graph
        self.results[key] = trial
        for other, first in self.same_as.items():  # what is measured of one holds for all of its code
            if first == key:
                before = self.results.get(other)
                run = before.run if before else None
                detail = f"the same code as {trial.candidate}"
                self.results[other] = replace(trial, candidate=other[0], detail=detail, run=run)
        manifest = self.a.manifest
        torch = dict(manifest.versions).get("torch", "") if manifest else ""
        index = TrialsIndex(__version__, torch, tuple(ranked(list(self.results.values()))))
        write_whole(self.a.path / WHATIF_NAME, json.dumps(to_json(index), indent=1) + "\n")

    def dump(self, candidate: Candidate, *, together: bool = False) -> None:
        """Dump a candidate, keep what is known by its code alone, and look at the graphs that are left."""
        self.progress(self.status(candidate, "compiling"))
        begin = time.monotonic()
        run, failure = self._dumped(candidate)
        self.dump_s = max(self.dump_s, time.monotonic() - begin)
        if run is None or failure:
            self.keep(Trial(candidate, "impossible", detail=failure, together=together))
            return
        compared = Diff(self.a, run)
        diffs = compared.result
        assert isinstance(diffs, RunDiff)  # noqa: S101 - both are runs
        alike, graphs = [], []
        for diff, (a, b) in zip(diffs.graphs, compared.pairs, strict=True):
            if self.only is not None and a.path != self.only.path:
                continue
            if (refused := why_not_timed(a, b, diff)) is None:
                graphs.append(self._first_look(_Pair(candidate, run, a, b, diff, together)))
            elif refused.not_timed == "same-code":
                alike.append(a.name)
                graphs.append(refused)
            else:
                detail = why_not(refused)
                self.keep(Trial(candidate, "impossible", a.name, detail=detail, run=run.path))
                graphs.append(refused)
        if graphs and len(alike) == len(graphs):
            detail = _of_flips(run) or "the same code"
            rank: Rank = "impossible" if _of_flips(run) else "no-change"
            self.keep(Trial(candidate, rank, detail=detail, run=run.path, together=together))
        elif not graphs:
            detail = "no graph of it computes what one of A does"
            self.keep(Trial(candidate, "impossible", detail=detail, run=run.path, together=together))
        self.answers.append(WhatIf((self.a, run), diffs, tuple(graphs), candidate))

    def _dumped(self, candidate: Candidate) -> tuple[RunOnDisk | None, str]:
        with tempfile.TemporaryDirectory(prefix="whatif-") as folder:
            output = Path(folder, "output")
            try:
                run = self.recipe.dump(self.kind, candidate, output=output)
            except ProbeError as error:
                return None, error.message
            if run.manifest and run.manifest.outcome == "interrupted":
                raise KeyboardInterrupt
            if run.manifest and run.manifest.outcome != "ok":
                lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
                return run, last_error(lines)
            return run, "" if run.graphs else "nothing was compiled"

    def _first_look(self, pair: _Pair) -> GraphWhatIf:
        """Look at a pair, unless another candidate led to the same code: then it is what that one is."""
        code = _digest(pair.b)
        key = (pair.candidate, pair.a.name)
        if (first := self.codes.get((pair.a.path, code))) is not None and first in self.results:
            self.same_as[key] = first
            self.results[key] = Trial(pair.candidate, "undecided", pair.a.name, run=pair.run.path)
            self.keep(self.results[first])
            return GraphWhatIf(pair.diff, not_timed="same-code")
        self.codes[pair.a.path, code] = key
        return self.look(pair)

    def look(self, pair: _Pair) -> GraphWhatIf:
        """Check and time a pair, for longer than the last time, and keep what it is now."""
        pair.look += 1
        seconds = self.fixed or seconds_of(pair.look)
        begin = time.monotonic()

        def progress(text: str) -> None:
            self.progress(self.status(pair.candidate, text))

        settings = replace(self.settings, budget=seconds)
        try:
            graph = one_graph(
                pair.a, pair.b, pair.diff, settings, pair.candidate, trust=self.trust, progress=progress
            )
        except ProbeError as error:
            detail = error.message
            self.keep(Trial(pair.candidate, "impossible", pair.a.name, detail=detail, run=pair.run.path))
            return GraphWhatIf(pair.diff, not_timed="no-code")
        self.around_s = max(self.around_s, time.monotonic() - begin - seconds)
        trial = self._trial(pair, graph)
        self.keep(trial)
        if trial.rank == "undecided":
            self.pairs = [*(other for other in self.pairs if other is not pair), pair]
        else:
            self.pairs = [other for other in self.pairs if other is not pair]
        return graph

    def _trial(self, pair: _Pair, graph: GraphWhatIf) -> Trial:
        trial = Trial(
            pair.candidate,
            "undecided",
            pair.a.name,
            looks=pair.look,
            run=pair.run.path,
            file=graph.file,
            together=pair.together,
        )
        assert graph.result is not None  # noqa: S101 - it was timed
        assert graph.file is not None  # noqa: S101
        if any(not variant.correct for variant in graph.result.variants):
            line = quotable(graph, pair.candidate)
            return replace(trial, rank="wrong", detail=wrong_detail(with_sides(graph.result)), line=line)
        comparison = whole_call(graph.result)
        if comparison is None:
            return replace(trial, rank="impossible", detail="the whole call could not be timed")
        series = series_of(read_samples(graph.file.with_suffix(".json")), CALL_OF_A, CALL_OF_B)
        pair.judged = judge(series, pair.look, self.settings.margin, self.planned)
        shown = pair.judged.comparison
        result = replace(
            graph.result,
            comparisons=tuple(shown if one is comparison else one for one in graph.result.comparisons),
        )
        return replace(
            trial,
            rank=_RANK_OF[pair.judged.standing],
            ratio=shown.ratio,
            low=shown.low,
            high=shown.high,
            detail=NOT_FASTER if pair.judged.standing == "not-faster" else "",
            line=quotable(replace(graph, result=result), pair.candidate),
        )

    def status(self, candidate: Candidate, doing: str) -> str:
        """Return how far it is: `3 of 12, 4 min left: inductor.x=1: compiling`."""
        left = max(0.0, self.deadline - time.monotonic())
        budget = f"at most {left / _MINUTE:.0f} min" if left >= _MINUTE else f"at most {left:.0f} s"
        of = "" if self.fixed else f", {budget} left"
        return f"{min(self.number, self.planned)} of {self.planned}{of}: {candidate}: {doing}"

    def fits(self, seconds: float) -> bool:
        """Whether there is time for what takes so long."""
        return time.monotonic() + seconds <= self.deadline


def try_candidates(
    a: AnyRun,
    candidates: Sequence[Candidate],
    recipe: Recipe,
    kind: Callable[[DebugDir, str | None], AnyRun],
    settings: BenchSettings,
    *,
    budget: float | None = None,
    only: GraphOnDisk | None = None,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Trials:
    """Try candidates against a run; with a budget also the gains together, and each for as long as it takes.

    Each is compiled in a process of its own. One that leads to the same code is not timed. The others are
    looked at for a second, and those that are not decided by then for longer and longer (`bench/looks.py`).

    Args:
        a: the run as it is. recipe: how it was made. kind: `Run`.
        settings: margin and threads; without `budget` (below) also how long each is timed, once.
        budget: seconds for everything: compiling, checking, measuring. One candidate is tried in any case.
        only: the only graph of A to be timed.
        progress: called with what is done next, and how much is left.
    """
    begin = time.monotonic()
    tries = _Tries(
        a=a,
        recipe=recipe,
        kind=kind,
        settings=settings,
        planned=len(candidates) + (budget is not None),
        trust=trust,
        progress=progress or (lambda text: None),
        fixed=None if budget else settings.budget,
        deadline=begin + budget if budget else float("inf"),
        only=only,
        dump_s=a.manifest.duration_s if a.manifest else 0.0,
    )
    interrupted = False
    try:
        for number, candidate in enumerate(candidates, 1):
            tries.number = number
            if number > 1 and not tries.fits(tries.dump_s + tries.around_s + seconds_of(1)):
                tries.keep(Trial(candidate, "not-tried", detail="the budget ended before"))
            else:
                tries.dump(candidate)
        if budget:
            _grow(tries)
            _together(tries)
            _grow(tries)
    except KeyboardInterrupt:
        interrupted = True
    trials = tuple(ranked(list(tries.results.values())))
    return Trials(a, trials, interrupted, () if budget else tuple(tries.answers), settings.margin)


def _grow(tries: _Tries) -> None:
    """Look again at what is not decided, the one that was looked at least first, while there is time."""
    while tries.pairs:
        pair = min(
            tries.pairs, key=lambda pair: (pair.look, pair.judged.comparison.low if pair.judged else 0.0)
        )
        if not tries.fits(tries.around_s + seconds_of(pair.look + 1)):
            return
        tries.look(pair)


def _together(tries: _Tries) -> None:
    """Try the gains at once, where there are several that do not lead to the same code."""
    gains = [trial for trial in ranked(list(tries.results.values())) if trial.rank == "gain"]
    losses = {trial.candidate for trial in tries.results.values() if trial.rank in ("loss", "wrong")}
    chosen = list(dict.fromkeys(gain.candidate for gain in gains if not gain.detail))
    chosen = [candidate for candidate in chosen if candidate not in losses]
    if len(chosen) < 2 or not tries.fits(tries.dump_s + tries.around_s + seconds_of(1)):
        return
    both = chosen[0]
    for candidate in chosen[1:]:
        both = both | candidate
    tries.number = tries.planned
    tries.dump(both, together=True)


def _digest(graph: GraphOnDisk) -> str:
    """Return what two candidates of the same code have in common: paths of kernels are of each dump."""
    text = read_text(graph.path / "output_code.py")
    return hashlib.sha256(_PLACE_OF_KERNEL.sub("", text).encode()).hexdigest()


def _of_flips(run: RunOnDisk) -> str:
    """Return why no flip of a candidate was applied, empty where there is none or one was."""
    manifest = run.manifest
    texts = list(flip_texts(manifest.flips, manifest.flip_results)) if manifest else []
    return "" if any(turned for turned, _ in texts) else "; ".join(text for _, text in texts)
