"""Many ways to compile one run: each dumped, compared as code, checked and timed against it, and ranked.

Candidates are compiled several at once, one for each core, and timed one at a time with nothing beside. What
is known is written to `WHATIF_NAME` after each: a later call for the same run goes on where that one ended.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from inductor_probe.analysis.causes.candidates import Offer
from inductor_probe.api.baseline import AnyRun, Recipe, check_same_program, dumped_to_the_end
from inductor_probe.api.candidate_dumps import Dumped, batches, dump_at_once, most_at_once
from inductor_probe.api.candidate_groups import (
    Clock,
    Member,
    Plan,
    at_once,
    members_of,
    plan_text,
    planned,
    time_nests,
)
from inductor_probe.api.diff import Diff
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.api.own_call import own_pair, seconds_around
from inductor_probe.api.trials import Trials
from inductor_probe.api.whatif import WhatIf, timed_graph, why_not_timed
from inductor_probe.bench.looks import FIRST_LOOK_S, Standing, judge, series_of
from inductor_probe.bench.session import server_of
from inductor_probe.capture import kernel_caches
from inductor_probe.errors import ProbeError
from inductor_probe.executors.server import Server
from inductor_probe.files import read_text
from inductor_probe.model.bench import CALL, OTHER_CALL, BenchSettings
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.own_call import OwnPair
from inductor_probe.model.timing import all_not_compiled, wrong_groups
from inductor_probe.model.whatif import Candidate, GraphWhatIf, Rank, Trial, TrialReason, ranked
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.report.pages.whatif import with_sides
from inductor_probe.store.samples import read_samples
from inductor_probe.store.trials import read_trials, write_trials

_RANK_OF: dict[Standing, Rank] = {
    "gain": "gain", "same": "no-change", "not-faster": "no-change", "loss": "loss", "open": "undecided",
}  # fmt: skip
_OPEN: tuple[Rank, ...] = ("undecided", "not-tried")
_PLACE_OF_KERNEL = re.compile(r"(?m)^# kernel path:.*$")
_MINUTE = 60
_OWN_S = 3.0
"""Seconds of timing the program's own call with the best gain."""
_Key: TypeAlias = tuple[Candidate, str | None]
"""A candidate and the graph of A that it was tried in; None stands for all graphs alike."""


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
    first_look: float = FIRST_LOOK_S,
    same_code_only: bool = False,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
    tell: Callable[[str], None] | None = None,
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
        first_look: seconds of the first look at each; later ones are longer by the same factor.
        same_code_only: for a proof that no gain is invented: time those alone that lead to the code of A,
            each as code of its own, and no others.
        progress: called with what is done next, and how much is left.
        tell: called with how many candidates can gain anything, and how long they take, before the first.

    Raises:
        UnreadableError: what an earlier call wrote is cut, or of another form.
        ProbeError: the script compiles another program each time; what is known by then is on disk.
    """
    deadline = float("inf") if budget is None else time.monotonic() + budget
    folder = tempfile.TemporaryDirectory(prefix="whatif-caches-", ignore_cleanup_errors=True)
    caches = Path(folder.name)
    with folder, server_of(a.path, settings, kernel_caches(caches)) as server:
        plan = Plan(tuple((candidate,) for candidate in candidates))
        if budget is not None and timed and not same_code_only:
            plan = planned(a, candidates, settings, server, again=again, trust=trust, progress=progress)
            if tell is not None:
                tell(plan_text(plan, a, budget, settings.margin))
        tries = _Tries(
            a=a,
            recipe=replace(recipe, baseline=a.path.name, caches=caches),
            kind=kind,
            settings=settings,
            plan=plan,
            planned=sum(map(len, plan.entries)) + (budget is not None),  # with the gains at once
            trust=trust,
            progress=progress or (lambda text: None),
            fixed=settings.budget if budget is None else None,
            clock=Clock(deadline, a.manifest.duration_s if a.manifest else 0.0, first_look),
            results=_Results(a, settings, plan.offers),
            only=only,
            same_code_only=same_code_only,
            server=server,
        )
        interrupted = False
        most = 1 if budget is None else most_at_once(a)
        try:
            new = tries.go_on(candidates, anew=again or budget is None)
            entries = [tuple(one for one in entry if one in new) for entry in plan.entries]
            for batch in batches([entry for entry in entries if entry], most):
                tries.compile(batch, timed=timed, certain=tries.number == 0)
            for batch in batches([(one,) for one in tries.alone], most):
                tries.compile(batch, timed=timed, certain=False)
            if budget is not None and timed:
                tries.confirm()
                tries.grow()
                tries.together()
                tries.grow()
        except KeyboardInterrupt:
            interrupted = True
    asked = [trial for trial in tries.results.all if trial.together or trial.candidate in candidates]
    trials = tuple(trial for trial in asked if only is None or trial.graph in (None, only.name))
    return Trials(a, trials, interrupted, tuple(tries.answers), settings.margin, settings.threads)


class _Results:
    """What is known of candidates in each graph of A, here and on disk.

    Code is timed once: what is found of the first candidate that leads to it holds for all others that do.
    """

    def __init__(self, a: RunOnDisk, settings: BenchSettings, offers: Mapping[Candidate, Offer]) -> None:
        self._a, self._settings, self._offers = a, settings, offers
        self._trials: dict[_Key, Trial] = {}
        self._first_of: dict[tuple[str, str], _Key] = {}  # by graph of A and digest of the code
        self._others: dict[_Key, tuple[_Key, Trial]] = {}  # key of the first, and the other

    @property
    def all(self) -> list[Trial]:
        """Everything, in the order in which it is shown."""
        return ranked(list(self._trials.values()))

    def of(self, candidate: Candidate) -> list[Trial]:
        """Return what is known of a candidate, in each graph."""
        return [trial for (other, _), trial in self._trials.items() if other == candidate]

    def get(self, key: _Key) -> Trial | None:
        """Return what is known of a candidate in a graph."""
        return self._trials.get(key)

    def read(self, anew: Container[Candidate] | None) -> None:
        """Take over what an earlier call wrote; of what is tried `anew`, and gains at once, nothing then."""
        for trial in read_trials(self._a.path, self._settings):
            if anew is None or not (trial.together or trial.candidate in anew):
                self._trials[trial.candidate, trial.graph] = trial

    def keep(self, trial: Trial) -> None:
        """Keep what came of a candidate, and with it of others with its code; write it down."""
        if (offer := self._offers.get(trial.candidate)) is not None:
            trial = replace(trial, at_most=offer.at_most)
        key = trial.candidate, trial.graph
        others = [
            replace(
                trial,
                candidate=other.candidate,
                run=other.run,
                together=other.together,
                same_as=trial.candidate,
            )
            for first, other in self._others.values()
            if first == key
        ]
        for one in (trial, *others):
            if one.graph is not None:  # what stood for all graphs did so until one of them was looked at
                self._trials.pop((one.candidate, None), None)
            self._trials[one.candidate, one.graph] = one
        manifest = self._a.manifest
        torch = dict(manifest.versions).get("torch", "") if manifest else ""
        write_trials(self._a.path, self.all, self._settings, torch=torch)

    def first_with(self, digest: str, trial: Trial) -> Candidate | None:
        """Return the candidate that led to the code of this one, and keep what is known of it for both.

        None where this is the first one.
        """
        assert trial.graph is not None  # noqa: S101 - code is that of a graph
        key = trial.candidate, trial.graph
        first = self._first_of.setdefault((trial.graph, digest), key)
        if first == key:
            known = self.get(key)
            if known is not None and known.same_as is not None:  # in an earlier call another one came first
                self._trials[key] = replace(known, same_as=None)
            return None
        self._others[key] = first, trial
        self.keep(self._trials[first])
        return first[0]


class _Pair(NamedTuple):
    """A graph of A and its partner under a candidate; `together`: which is the gains of others at once."""

    candidate: Candidate
    run: RunOnDisk
    a: GraphOnDisk
    b: GraphOnDisk
    diff: GraphDiff
    together: bool

    @property
    def key(self) -> _Key:
        """What its results are known by."""
        return self.candidate, self.a.name

    def trial(self, rank: Rank, reason: TrialReason | None = None) -> Trial:
        """Return what came of it."""
        return Trial(
            self.candidate, rank, self.a.name, reason=reason, run=self.run.path, together=self.together
        )


@dataclass
class _Tries:
    """Candidates that are tried against a run, one step after the other.

    Attributes:
        a: the run as it is. recipe: how it was made. kind: `Run`.
        plan: which are tried at once, and what each is about.
        planned: how many candidates there are to be: a gain has to hold for all of them. number: how many of
            them were begun with.
        fixed: seconds that each is timed, once; None where looks grow.
        only: the only graph of A to be timed. same_code_only: as `try_candidates` has it.
        open: what is not decided yet, that which was looked at last behind the others.
        answers: the whole comparison of each candidate, where each is timed once.
        alone: candidates of groups that may be gains, or could not be judged there.
        looked_at: graphs that were timed by now, with their partners.
        again: A, made once more, where that was asked for.
        server: imports torch once, for all looks.
    """

    a: RunOnDisk
    recipe: Recipe
    kind: Callable[[DebugDir, str | None], RunOnDisk]
    settings: BenchSettings
    plan: Plan
    planned: int
    trust: bool
    progress: Callable[[str], None]
    fixed: float | None
    clock: Clock
    results: _Results
    only: GraphOnDisk | None = None
    same_code_only: bool = False
    number: int = 0
    open: dict[_Key, _Pair] = field(default_factory=dict)
    answers: list[WhatIf] = field(default_factory=list)
    alone: list[Candidate] = field(default_factory=list)
    looked_at: dict[_Key, _Pair] = field(default_factory=dict)
    again: RunOnDisk | None = None
    server: Server | None = None

    def go_on(self, candidates: Sequence[Candidate], *, anew: bool) -> list[Candidate]:
        """Take over what an earlier call found for this run; return the candidates that are to be dumped.

        With `anew` all candidates are dumped; results of other candidates are kept.
        """
        self.results.read(candidates if anew else None)
        new = []
        for candidate in candidates:
            trials = self.results.of(candidate)
            if self.only is not None:
                trials = [trial for trial in trials if trial.graph in (None, self.only.name)]
            is_open = any(trial.rank in _OPEN for trial in trials)
            run = next((trial.run for trial in trials if trial.run is not None), None)
            if run is not None and (is_open or any(trial.looks for trial in trials)):
                self.examine(Dumped(candidate, self.kind(read_run(run), None)), timed=False)
            elif is_open or not trials:
                new.append(candidate)
        dropped = {offer.candidate: offer for offer in self.plan.dropped}
        for candidate in [one for one in new if one in dropped]:
            self.results.keep(Trial(candidate, "dropped", at_most=dropped[candidate].at_most))
        new = [one for one in new if one not in dropped]
        self.number = len(candidates) - len(dropped) - len(new)
        return new

    def compile(self, batch: Sequence[tuple[Candidate, ...]], *, timed: bool, certain: bool) -> None:
        """Compile some entries at once, look at each alone; with `certain` at the first in any case.

        Raises:
            KeyboardInterrupt: Ctrl-C ended a dump; those that were done are looked at as code.
        """
        if not certain and not self.clock.fits(dump=True):
            for candidate in (one for entry in batch for one in entry):
                self.results.keep(Trial(candidate, "not-tried"))
            return
        entries = {at_once(entry): entry for entry in batch}
        count = sum(map(len, batch))
        names = str(batch[0][0]) if count == 1 else f"{count} candidates"
        done, interrupted = self._dump([*entries], names)
        for dumped in done:
            group = entries[dumped.candidate]
            in_time = timed and not interrupted and (certain or self.clock.fits())
            if len(group) == 1:
                self.number += 1
                self.examine(dumped, timed=in_time)
            else:
                self.examine_group(dumped, group, timed=in_time)
            certain = False
        if interrupted:
            raise KeyboardInterrupt

    def _dump(self, batch: Sequence[Candidate], names: str) -> tuple[list[Dumped], bool]:
        self.progress(self.status(names, "compiling"))
        begin = time.monotonic()
        result = dump_at_once(self.recipe, self.kind, batch)
        self.clock.dumped(time.monotonic() - begin)
        return result

    def examine(self, dumped: Dumped, *, timed: bool = True, together: bool = False) -> None:
        """Keep what is known of a dump by its code alone, and look at the graphs that are left.

        With `timed=False` nothing is run: what is to be timed is put off.

        Raises:
            ProbeError: the script compiles another program each time.
        """
        candidate, run = dumped.candidate, dumped.run
        if candidate.acts_around_code and self.fixed is None:
            reason = TrialReason("around-code")
            self.results.keep(Trial(candidate, "not-tried", reason=reason, together=together))
            return
        if run is None or dumped.failure:
            self.results.keep(replace(dumped.trial, together=together))
            return
        check_same_program(self.a, run, candidate, self._made_again)
        compared = Diff(self.a, run)
        diffs = compared.result
        assert isinstance(diffs, RunDiff)  # noqa: S101 - both are runs
        graphs = [
            self._examine_graph(_Pair(candidate, run, a, b, diff, together), timed=timed)
            for diff, (a, b) in zip(diffs.graphs, compared.pairs, strict=True)
            if self.only is None or a.path == self.only.path
        ]
        trial = Trial(candidate, "impossible", run=run.path, together=together)
        if not graphs:
            self.results.keep(replace(trial, reason=TrialReason("no-partner")))
        elif all(graph is not None and graph.not_timed == "same-code" for graph in graphs):
            not_turned = _not_turned(candidate, run)
            alike = replace(trial, rank="no-change", reason=TrialReason("same-code"))
            self.results.keep(replace(trial, reason=not_turned) if not_turned else alike)
        answers = tuple(graph for graph in graphs if graph is not None)
        if self.fixed is not None:
            self.answers.append(WhatIf((self.a, run), diffs, answers, candidate))

    def examine_group(self, dumped: Dumped, group: Sequence[Candidate], *, timed: bool) -> None:
        """Keep what is known of candidates that were turned at once; what may be a gain is tried alone.

        Raises:
            ProbeError: the script compiles another program each time.
        """
        members = self._members(dumped, group) if timed else None
        if members is None:
            self.alone += group
            return
        for member in members:
            assert dumped.run is not None  # noqa: S101 - it was timed
            trial = Trial(member.candidate, "no-change", run=dumped.run.path)
            if (not_turned := _not_turned(member.candidate, dumped.run)) is not None:
                self.results.keep(replace(trial, rank="impossible", reason=not_turned))
            elif member.promising:
                self.alone.append(member.candidate)
                continue
            else:
                reason = TrialReason("among-others", ratio=member.ratio, others=len(group) - 1)
                rank: Rank = "loss" if member.gained < -self.settings.margin else "no-change"
                self.results.keep(replace(trial, rank=rank, reason=reason, run=None))
            self.number += 1

    def _members(self, dumped: Dumped, group: Sequence[Candidate]) -> tuple[Member, ...] | None:
        run = dumped.run
        if run is None or dumped.failure:
            return None
        check_same_program(self.a, run, dumped.candidate, self._made_again)
        pairs = [(a, b) for a, b in Diff(self.a, run).pairs if self.only is None or a.path == self.only.path]
        self.progress(self.status(f"{len(group)} candidates", "timing loop nests"))
        if not pairs or not time_nests(
            [b for _, b in pairs], self.settings, self.server, trust=self.trust, progress=None
        ):
            return None
        return members_of(group, self.plan, pairs, self.settings.margin)

    def _made_again(self) -> RunOnDisk:
        """Return a second run of A, dumped when it is first asked for."""
        if self.again is None:
            self.progress(self.status("A once more", "compiling"))
            self.again = dumped_to_the_end(self.recipe, self.kind)
        return self.again

    def _examine_graph(self, pair: _Pair, *, timed: bool) -> GraphWhatIf | None:
        """Return what is known of a graph, by its code or by a look; None where that was put off."""
        if (refused := self._why_not_timed(pair)) is not None:
            assert refused.not_timed is not None  # noqa: S101 - why it is refused
            known = self.results.get(pair.key)
            reason = TrialReason(refused.not_timed, message=refused.message, subjects=refused.subjects)
            if refused.not_timed == "no-gpu":  # what a machine with a GPU found stands
                if known is None or not known.looks:
                    self.results.keep(pair.trial("not-tried", reason))
            elif refused.not_timed != "same-code":  # else it counts where all graphs are
                self.results.keep(pair.trial("impossible", reason))
            return refused
        digest = str(pair.run.path) if self.same_code_only else _digest(pair.b)
        if (first := self.results.first_with(digest, pair.trial("undecided"))) is not None:
            return GraphWhatIf(pair.diff, not_timed="same-as", subjects=(str(first),))
        known = self.results.get(pair.key)
        if known is not None and known.rank not in _OPEN:
            return None
        looked_at = known is not None and known.looks > 0
        if timed and not looked_at:
            return self.look(pair)
        if not looked_at:
            self.results.keep(pair.trial("not-tried"))
        self.open[pair.key] = pair
        return None

    def _why_not_timed(self, pair: _Pair) -> GraphWhatIf | None:
        refused = why_not_timed(pair.a, pair.b, pair.diff)
        if not self.same_code_only:
            return refused
        if refused is not None and refused.not_timed == "same-code":
            return None
        return refused or GraphWhatIf(pair.diff, not_timed="other-code")

    def look(self, pair: _Pair) -> GraphWhatIf:
        """Check and time a pair, for longer than the last time, and keep what it is now."""
        known = self.results.get(pair.key)
        number = known.looks + 1 if known else 1
        seconds = self.fixed or self.clock.seconds_of(number)
        # by the whole call it is ranked; what is timed once is shown with its kernels, too
        settings = replace(self.settings, budget=seconds, whole_call=self.fixed is None)
        begin = time.monotonic()
        self.open.pop(pair.key, None)
        self.looked_at[pair.key] = pair
        try:
            graph = timed_graph(
                pair.a,
                pair.b,
                pair.diff,
                settings,
                pair.candidate,
                trust=self.trust,
                progress=lambda text: self.progress(self.status(str(pair.candidate), text)),
                server=self.server,
            )
        except ProbeError as error:
            self.results.keep(pair.trial("impossible", TrialReason("not-run", error.message)))
            return GraphWhatIf(pair.diff, not_timed="not-run", message=error.message)
        self.clock.looked(time.monotonic() - begin, seconds)
        trial = self._judged(pair, graph, number)
        self.results.keep(trial)
        if trial.rank == "undecided":
            self.open[pair.key] = pair
        return graph

    def _judged(self, pair: _Pair, graph: GraphWhatIf, look: int) -> Trial:
        """Return what a look says of a pair."""
        assert graph.result is not None  # noqa: S101 - it was timed
        assert graph.file is not None  # noqa: S101
        trial = replace(pair.trial("undecided"), turned=graph.turned, looks=look, file=graph.file)
        if wrong := wrong_groups(with_sides(graph.result).variants):
            first = tuple(wrong[0])
            if "A" in (calls := {call.name for call in graph.wrong_calls}):
                reason = TrialReason("baseline-wrong", wrong=graph.wrong_calls)
                return replace(trial, rank="wrong" if "B" in calls else "right", reason=reason)
            if all_not_compiled(graph.result.variants):
                return replace(trial, rank="impossible", reason=TrialReason("not-compiled", wrong=first))
            return replace(trial, rank="wrong", reason=TrialReason("wrong-values", wrong=first))
        if graph.call is None and any(one.code == "no-budget-left" for one in graph.result.warnings):
            return trial  # a longer look has time for it
        if graph.call is None:
            return replace(trial, rank="impossible", reason=TrialReason("call-not-timed"))
        series = series_of(read_samples(graph.file.with_suffix(".json")), CALL, OTHER_CALL)
        judged = judge(series, look, self.settings.margin, self.planned)
        rank = _RANK_OF[judged.standing]
        return replace(trial, rank=rank, call=judged.comparison, kernel=graph.kernel)

    def grow(self) -> None:
        """Look again at what is not decided, the one that was looked at least first, while there is time."""

        def so_far(pair: _Pair) -> tuple[int, float]:
            known = self.results.get(pair.key)
            return (known.looks, known.call.low if known.call else 0.0) if known else (0, 0.0)

        while self.open:
            pair = min(self.open.values(), key=so_far)
            if not self.clock.fits(so_far(pair)[0] + 1):
                return
            self.look(pair)

    def confirm(self) -> None:
        """Time the program's own call with the best gain, in fresh processes of the script.

        A graph that is called by itself has its memory at hand; what a program gains is what its call does.
        """
        best = next((one for one in self.results.all if one.rank == "gain" and one.same_as is None), None)
        pair = self.looked_at.get((best.candidate, best.graph)) if best else None
        if best is None or pair is None or best.own is not None:
            return
        seconds, runs = seconds_around([pair.a], replace(self.settings, own=True))
        if time.monotonic() + 2 * seconds + _OWN_S > self.clock.deadline or not runs:
            return
        self.progress(self.status(str(best.candidate), "timing the program's own call"))
        own = own_pair(
            [pair.a],
            [pair.b],
            budget=_OWN_S,
            margin=self.settings.margin,
            threads=self.settings.threads,
            progress=None,
        )
        if isinstance(own, OwnPair):
            self.results.keep(replace(best, own=own.comparison))

    def together(self) -> None:
        """Try the gains at once, where there are several that do not lead to the same code."""
        trials = self.results.all
        losses = {trial.candidate for trial in trials if trial.rank in ("loss", "wrong")}
        gains = [trial for trial in trials if trial.rank == "gain" and not (trial.same_as or trial.together)]
        chosen = [one for one in dict.fromkeys(gain.candidate for gain in gains) if one not in losses]
        if len(chosen) < 2 or not self.clock.fits(dump=True):
            return
        both = chosen[0]
        for candidate in chosen[1:]:
            both = both | candidate
        if self.results.of(both):
            return
        self.number = self.planned
        (dumped,), _ = self._dump([both], str(both))
        self.examine(dumped, together=True)

    def status(self, what: str, doing: str) -> str:
        """Return how far it is: `3 of 12, at most 4 min left: inductor.x=1: compiling`."""
        left = "" if self.fixed else f", {self.clock.left}"
        return f"{min(self.number, self.planned)} of {self.planned}{left}: {what}: {doing}"


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
