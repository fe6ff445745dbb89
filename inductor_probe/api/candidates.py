"""Many ways to compile one run: each dumped, compared as code, checked and timed against it, and ranked.

Candidates are compiled several at once, one for each core, and timed one at a time with nothing beside. What
is known is written to `WHATIF_NAME` after each: a later call for the same run goes on where that one ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from inductor_probe.analysis.causes.candidates import times_code
from inductor_probe.api.baseline import AnyRun, Recipe, check_same_program, last_error, made_again
from inductor_probe.api.diff import Diff
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.api.whatif import WhatIf, one_graph, why_not_timed
from inductor_probe.bench.client import Server
from inductor_probe.bench.looks import Judged, Standing, judge, seconds_of, series_of
from inductor_probe.bench.session import server_of
from inductor_probe.capture import interrupt_dumps
from inductor_probe.errors import ProbeError
from inductor_probe.files import read_text
from inductor_probe.model.autotuning import CHOICES_NAME
from inductor_probe.model.bench import CALL, OTHER_CALL, BenchSettings
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.output import Output
from inductor_probe.model.whatif import (
    WHATIF_NAME,
    Candidate,
    GraphWhatIf,
    Rank,
    Trial,
    TrialReason,
    WhatIfOutput,
)
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.report.document import Document, apart
from inductor_probe.report.pages.whatif import ranked, trials_page, with_sides
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.bench import wrong_groups
from inductor_probe.report.words.whatif import gain_sentence, trials_sentence
from inductor_probe.store.samples import read_samples
from inductor_probe.store.trials import read_trials, write_trials

_RANK_OF: dict[Standing, Rank] = {
    "gain": "gain", "same": "no-change", "not-faster": "no-change", "loss": "loss", "open": "undecided",
}  # fmt: skip
_PLACE_OF_KERNEL = re.compile(r"(?m)^# kernel path:.*$")
_MINUTE = 60
_MOST_AT_ONCE = 8
"""Candidates that are compiled at once: each is a process with torch in it, of about 1 GiB."""
_OPEN: tuple[Rank, ...] = ("undecided", "not-tried")
_Key: TypeAlias = tuple[Candidate, str | None]
"""A candidate and the graph of A that it was tried in; None stands for all graphs alike."""


@dataclass(frozen=True, repr=False)
class Trials(Shown):
    """A run, and what came of each candidate against it, the gains first.

    Attributes:
        interrupted: by Ctrl-C: what was done by then is here, and on disk.
        answers: the whole comparison of each candidate, where those are to be shown.
        margin: a smaller difference counts as none. threads: with how many all was timed.
    """

    run: RunOnDisk
    trials: tuple[Trial, ...]
    interrupted: bool = False
    answers: tuple[WhatIf, ...] = ()
    margin: float = 0.01
    threads: int = 1

    @property
    def path(self) -> Path:
        """The file that was written after each candidate."""
        return self.run.path / WHATIF_NAME

    @property
    def gains(self) -> tuple[Trial, ...]:
        """The candidates that are faster and right, the fastest first."""
        return tuple(trial for trial in self.trials if trial.rank == "gain")

    def sentence(self, gain: Trial) -> str:
        """Return a sentence about one of the gains, to be quoted."""
        return gain_sentence(gain, self.margin, self.threads)

    def with_details(self, details: bool = True) -> Trials:
        """Return the same with what else is folded in the comparisons that are shown."""
        return replace(self, answers=tuple(answer.with_details(details) for answer in self.answers))

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return WhatIfOutput(
            a=self.run.path,
            trials=self.trials,
            margin=self.margin,
            threads=self.threads,
            summary=(trials_sentence(self.trials, self.margin, self.threads),),
        )

    @property
    def document(self) -> Document:
        """A row for each candidate, and one sentence."""
        pages = [*(answer.document for answer in self.answers)]
        yield from apart(
            [
                *pages,
                trials_page(self.trials, self.margin, self.threads, several_graphs=len(self.run.graphs) > 1),
            ]
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


@dataclass(frozen=True)
class Dumped:
    """A candidate that was compiled: its run, or why there is none or it did not end well."""

    candidate: Candidate
    run: RunOnDisk | None = None
    failure: TrialReason | None = None

    @property
    def trial(self) -> Trial:
        """What is known by the dump alone: torch failed, or it is to be compared with the run as it is."""
        if self.run is None or self.failure:
            return Trial(self.candidate, "impossible", reason=self.failure)
        return Trial(self.candidate, "not-tried", run=self.run.path)


def dump_candidate(
    recipe: Recipe,
    kind: Callable[[DebugDir, str | None], RunOnDisk],
    candidate: Candidate,
    output: Path,
    *,
    beside_others: bool,
) -> Dumped:
    """Dump what a recipe makes with a candidate; what its script prints goes to the file `output`.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the script.
    """
    try:
        run = recipe.dump(kind, candidate, output=output, beside_others=beside_others)
    except ProbeError as error:
        return Dumped(candidate, failure=TrialReason("refused", error.message))
    if run.manifest and run.manifest.outcome == "interrupted":
        raise KeyboardInterrupt
    if run.manifest and run.manifest.outcome != "ok":
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
        return Dumped(candidate, run, TrialReason("script-failed", last_error(lines)))
    return Dumped(candidate, run, None if run.graphs else TrialReason("nothing-compiled"))


@dataclass
class _Tries:
    """The state of trying candidates against a run.

    Attributes:
        planned: how many there are to be; a gain has to hold for all of them.
        fixed: seconds that each is timed, once; None where looks grow.
        deadline: of all, by `time.monotonic`.
        only: the only graph of A to be timed.
        results: what is known, of an earlier call too.
        pairs: what is not decided yet.
        codes: what was timed first of each code, by graph and digest. same_as: what has the same code as it.
        dump_s, around_s: the longest that a dump took, and a look besides what it measures.
        compiled: whether a candidate was dumped; before, `dump_s` is what A took.
        again: A, made once more, where that was asked for.
        server: imports torch once, for all looks.
    """

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
    results: dict[_Key, Trial] = field(default_factory=dict)
    pairs: list[_Pair] = field(default_factory=list)
    codes: dict[tuple[Path, str], _Key] = field(default_factory=dict)
    same_as: dict[_Key, _Key] = field(default_factory=dict)
    answers: list[WhatIf] = field(default_factory=list)
    dump_s: float = 0.0
    compiled: bool = False
    around_s: float = 0.0
    number: int = 0
    again: RunOnDisk | None = None
    server: Server | None = None

    def keep(self, trial: Trial) -> None:
        """Keep what came of a candidate, here and on disk."""
        key = trial.candidate, trial.graph
        self.results[key] = trial
        for other, first in self.same_as.items():  # what is measured of one holds for all of its code
            if first == key:
                before = self.results.get(other)
                run = before.run if before else None
                self.results[other] = replace(trial, candidate=other[0], same_as=trial.candidate, run=run)
        for candidate, graph in [*self.results]:
            if graph is not None:  # it stood for all graphs until one of them was looked at
                self.results.pop((candidate, None), None)
        manifest = self.a.manifest
        torch = dict(manifest.versions).get("torch", "") if manifest else ""
        write_trials(
            self.a.path,
            ranked(list(self.results.values())),
            torch=torch,
            margin=self.settings.margin,
            threads=self.settings.threads,
        )

    def compile(self, candidates: Sequence[Candidate]) -> tuple[list[Dumped], bool]:
        """Dump candidates, all at once; return what came of each, and whether Ctrl-C ended some."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="whatif-") as folder:
            outputs = [Path(folder, str(number)) for number in range(len(candidates))]
            if len(candidates) == 1:  # in this thread: the script gets the signals that we get
                dump = dump_candidate(self.recipe, self.kind, candidates[0], outputs[0], beside_others=False)
                self._took(time.monotonic() - begin)
                return [dump], False
            with ThreadPoolExecutor(len(candidates)) as pool:
                dumps = [
                    pool.submit(dump_candidate, self.recipe, self.kind, *pair, beside_others=True)
                    for pair in zip(candidates, outputs, strict=True)
                ]
                try:
                    wait(dumps)
                except KeyboardInterrupt:
                    interrupt_dumps()
        self._took(time.monotonic() - begin)
        interrupted = [dump for dump in dumps if isinstance(dump.exception(), KeyboardInterrupt)]
        return [dump.result() for dump in dumps if dump not in interrupted], bool(interrupted)

    def _took(self, seconds: float) -> None:
        """Record how long dumps take here.

        The first time replaces that of A, which may have been dumped while other work kept the machine busy.
        """
        self.dump_s = max(self.dump_s, seconds) if self.compiled else seconds
        self.compiled = True

    def examine(self, dumped: Dumped, *, timed: bool = True, together: bool = False) -> None:
        """Keep what is known of a dump by its code alone, and look at the graphs that are left.

        With `timed=False` nothing is run: what is to be timed is put off.

        Raises:
            ProbeError: the script compiles another program each time.
        """
        candidate, run = dumped.candidate, dumped.run
        if run is None or dumped.failure:
            self.keep(replace(dumped.trial, together=together))
            return
        check_same_program(self.a, run, candidate, self._made_again)
        compared = Diff(self.a, run)
        diffs = compared.result
        assert isinstance(diffs, RunDiff)  # noqa: S101 - both are runs
        alike, graphs = [], []
        for diff, (a, b) in zip(diffs.graphs, compared.pairs, strict=True):
            if self.only is not None and a.path != self.only.path:
                continue
            if (refused := why_not_timed(a, b, diff)) is None:
                graphs.append(self._take(_Pair(candidate, run, a, b, diff, together), timed=timed))
            elif refused.not_timed == "same-code":
                alike.append(a.name)
                graphs.append(refused)
            else:
                assert refused.not_timed is not None  # noqa: S101 - why it is refused
                reason = TrialReason(refused.not_timed, subjects=refused.subjects)
                self.keep(Trial(candidate, "impossible", a.name, reason=reason, run=run.path))
                graphs.append(refused)
        if graphs and len(alike) == len(graphs):
            reason = _not_turned(candidate, run) or TrialReason("same-code")
            rank: Rank = "no-change" if reason.code == "same-code" else "impossible"
            self.keep(Trial(candidate, rank, reason=reason, run=run.path, together=together))
        elif not graphs:
            reason = TrialReason("no-partner")
            self.keep(Trial(candidate, "impossible", reason=reason, run=run.path, together=together))
        self.answers.append(WhatIf((self.a, run), diffs, tuple(graphs), candidate))

    def _made_again(self) -> RunOnDisk:
        """Return a second run of A, dumped when it is first asked for."""
        if self.again is None:
            self.progress(self.status("A once more", "compiling"))
            self.again = made_again(self.recipe, self.kind)
        return self.again

    def _take(self, pair: _Pair, *, timed: bool) -> GraphWhatIf:
        """Look at a pair, or put it off, unless its code is known: of another candidate, or a call before."""
        key = (pair.candidate, pair.a.name)
        first = self.codes.setdefault((pair.a.path, _digest(pair.b)), key)
        if first != key:
            self.same_as[key] = first
            self.results[key] = Trial(pair.candidate, "undecided", pair.a.name, run=pair.run.path)
            self.keep(self.results[first])
            return GraphWhatIf(pair.diff, not_timed="same-as", subjects=(str(first[0]),))
        known = self.results.get(key)
        if known is not None and known.rank not in _OPEN:
            return GraphWhatIf(pair.diff)
        if known is not None and known.looks:
            pair.look = known.looks
        elif timed:
            return self.look(pair)
        else:
            self.keep(Trial(pair.candidate, "not-tried", pair.a.name, run=pair.run.path))
        self.pairs.append(pair)
        return GraphWhatIf(pair.diff)

    def look(self, pair: _Pair) -> GraphWhatIf:
        """Check and time a pair, for longer than the last time, and keep what it is now."""
        pair.look += 1
        seconds = self.fixed or seconds_of(pair.look)
        begin = time.monotonic()

        def progress(text: str) -> None:
            self.progress(self.status(str(pair.candidate), text))

        settings = replace(self.settings, budget=seconds, whole_call=True)  # by which it is ranked
        try:
            graph = one_graph(
                pair.a,
                pair.b,
                pair.diff,
                settings,
                pair.candidate,
                trust=self.trust,
                progress=progress,
                server=self.server,
            )
        except ProbeError as error:
            reason = TrialReason("not-run", error.message)
            self.keep(Trial(pair.candidate, "impossible", pair.a.name, reason=reason, run=pair.run.path))
            return GraphWhatIf(pair.diff, not_timed="not-run", message=error.message)
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
            turned=graph.turned,
            looks=pair.look,
            run=pair.run.path,
            file=graph.file,
            together=pair.together,
        )
        assert graph.result is not None  # noqa: S101 - it was timed
        assert graph.file is not None  # noqa: S101
        if wrong := wrong_groups(with_sides(graph.result).variants):
            return replace(trial, rank="wrong", reason=TrialReason("wrong-values", wrong=tuple(wrong[0])))
        if graph.call is None and any(one.code == "no-budget-left" for one in graph.result.warnings):
            return trial  # a longer look has time for it
        if graph.call is None:
            return replace(trial, rank="impossible", reason=TrialReason("call-not-timed"))
        series = series_of(read_samples(graph.file.with_suffix(".json")), CALL, OTHER_CALL)
        pair.judged = judge(series, pair.look, self.settings.margin, self.planned)
        return replace(
            trial,
            rank=_RANK_OF[pair.judged.standing],
            call=pair.judged.comparison,
            kernel=graph.kernel,
        )

    def status(self, what: str, doing: str) -> str:
        """Return how far it is: `3 of 12, 4 min left: inductor.x=1: compiling`."""
        left = max(0.0, self.deadline - time.monotonic())
        budget = f"at most {left / _MINUTE:.0f} min" if left >= _MINUTE else f"at most {left:.0f} s"
        of = "" if self.fixed else f", {budget} left"
        return f"{min(self.number, self.planned)} of {self.planned}{of}: {what}: {doing}"

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
    timed: bool = True,
    again: bool = False,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Trials:
    """Try candidates against a run; with a budget also the gains together, and each for as long as it takes.

    Each is compiled in a process of its own; with a budget several at once, one for each core. One that leads
    to the same code is not timed. The others are looked at for a second, and those that are not decided by
    then for longer and longer (`bench/looks.py`). With a budget, what an earlier call found for this run is
    taken as it is, and what it left open is gone on with.

    Args:
        a: the run as it is. recipe: how it was made. kind: `Run`.
        settings: margin and threads; without `budget` (below) also how long each is timed, once.
        budget: seconds for everything: compiling, checking, measuring. One candidate is tried in any case.
        only: the only graph of A to be timed.
        timed: whether to time at all; else each is compiled, and a later call times what is left.
        again: try all anew, whatever is known.
        progress: called with what is done next, and how much is left.

    Raises:
        UnreadableError: what an earlier call wrote is cut, or of another form.
        ProbeError: the script compiles another program each time; what is known by then is on disk.
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
    with server_of(a.path, settings) as tries.server:
        try:
            known = list(_known(tries, candidates, anew=again or not budget))
            new = [candidate for candidate in candidates if candidate not in known]
            tries.number = len(known)
            for batch in _batches(new, _at_once(a) if budget else 1):
                _try(tries, batch, timed=timed, certain=tries.number == 0)
            if budget and timed:
                _grow(tries)
                _together(tries)
                _grow(tries)
        except KeyboardInterrupt:
            interrupted = True
    asked = [trial for trial in tries.results.values() if trial.together or trial.candidate in candidates]
    trials = tuple(ranked([trial for trial in asked if only is None or trial.graph in (None, only.name)]))
    answers = () if budget else tuple(tries.answers)
    return Trials(a, trials, interrupted, answers, settings.margin, settings.threads)


def _try(tries: _Tries, batch: Sequence[Candidate], *, timed: bool, certain: bool) -> None:
    """Compile some candidates at once, and look at each alone; with `certain`, at the first in any case."""
    first_look = tries.around_s + seconds_of(1)
    if not certain and not tries.fits(tries.dump_s + first_look):
        for candidate in batch:
            tries.keep(Trial(candidate, "not-tried"))
        return
    names = str(batch[0]) if len(batch) == 1 else f"{len(batch)} candidates"
    tries.progress(tries.status(names, "compiling"))
    done, interrupted = tries.compile(batch)
    for dumped in done:
        tries.number += 1
        in_time = certain or tries.fits(tries.around_s + seconds_of(1))
        tries.examine(dumped, timed=timed and in_time and not interrupted)
        certain = False
    if interrupted:
        raise KeyboardInterrupt


def _batches(candidates: Sequence[Candidate], most: int) -> Iterator[list[Candidate]]:
    """Yield candidates in their order, so many at once; with which torch times code, each alone."""
    batch: list[Candidate] = []
    for candidate in candidates:
        if batch and (len(batch) == most or times_code(candidate)):
            yield batch
            batch = []
        batch.append(candidate)
        if times_code(candidate):
            yield batch
            batch = []
    if batch:
        yield batch


def _at_once(a: RunOnDisk) -> int:
    """Return how many candidates may be compiled at once: one where torch times code as it compiles."""
    if any((graph.path / CHOICES_NAME).exists() for graph in a.graphs):
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), _MOST_AT_ONCE))


def _known(tries: _Tries, candidates: Sequence[Candidate], *, anew: bool) -> Iterator[Candidate]:
    """Take over what an earlier call found for this run, and yield the candidates that need no dump.

    With `anew` all of them do, and what is known of others is kept.
    """
    before = read_trials(tries.a.path, margin=tries.settings.margin, threads=tries.settings.threads)
    if anew:
        before = tuple(trial for trial in before if not trial.together and trial.candidate not in candidates)
    tries.results.update({(trial.candidate, trial.graph): trial for trial in before})
    for candidate in candidates:
        trials = [trial for trial in before if trial.candidate == candidate]
        if tries.only:
            trials = [trial for trial in trials if trial.graph in (None, tries.only.name)]
        runs = [trial.run for trial in trials if trial.run is not None]
        if runs and any(trial.rank in _OPEN or trial.looks for trial in trials):
            yield candidate
            tries.examine(Dumped(candidate, tries.kind(read_run(runs[0]), None)), timed=False)
        elif trials and not any(trial.rank in _OPEN for trial in trials):
            yield candidate


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
    chosen = list(dict.fromkeys(gain.candidate for gain in gains if not gain.same_as and not gain.together))
    chosen = [candidate for candidate in chosen if candidate not in losses]
    if len(chosen) < 2 or not tries.fits(tries.dump_s + tries.around_s + seconds_of(1)):
        return
    both = chosen[0]
    for candidate in chosen[1:]:
        both = both | candidate
    if any(candidate == both for candidate, _ in tries.results):
        return
    tries.number = tries.planned
    tries.progress(tries.status(str(both), "compiling"))
    (dumped,), _ = tries.compile([both])
    tries.examine(dumped, together=True)


def _digest(graph: GraphOnDisk) -> str:
    """Return what two candidates of the same code have in common: paths of kernels are of each dump."""
    text = read_text(graph.path / "output_code.py")
    return hashlib.sha256(_PLACE_OF_KERNEL.sub("", text).encode()).hexdigest()


def _not_turned(candidate: Candidate, run: RunOnDisk) -> TrialReason | None:
    """Return why no flip of a candidate was applied; None where it has none, or one was."""
    results = run.manifest.flip_results if run.manifest else ()
    of_candidate = tuple(result for result in results if result.flip in candidate.flips)
    if not of_candidate or any(result.outcome in ("applied", "already-so") for result in of_candidate):
        return None
    return TrialReason("not-turned", flips=of_candidate)
