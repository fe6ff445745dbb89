"""What to do about a program, on one screen: what is known of its run, and what is measured for it now."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.compile_time import compile_summary_of
from inductor_probe.api.opened import opened
from inductor_probe.api.session import Graph, Run
from inductor_probe.errors import ProbeError
from inductor_probe.files import seen_from
from inductor_probe.model.debug_dir import TREE
from inductor_probe.model.output import Output
from inductor_probe.model.overview import OverviewCost, OverviewIdea, OverviewOutput, OverviewPart
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.profile import WORKS
from inductor_probe.options.fields import shared
from inductor_probe.options.programs import OverviewOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.overview import overview_page
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.analysis.causes.candidates import Offer
    from inductor_probe.analysis.overview import Missed
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.model.call_parts import Side
    from inductor_probe.model.interruption import Interruption
    from inductor_probe.model.profile import Profile
    from inductor_probe.model.remark import Remark

BUDGET_S = 20.0
LONGEST_DUMP_S = 30.0
"""A dump of the program that took longer is not made once more to try what avoids recompiles."""
MOST_GRAPHS = 4
"""That are measured: of a script of a hundred graphs those that move most bytes."""
_LEAST_S = 2.0
_MOST_PARTS, _MOST_COSTS, _MOST_IDEAS = 4, 4, 3
_LEAST_SHARE, _LEAST_COST = 0.01, 0.001


class Overview(Shown, Struct, frozen=True):
    """What to do about a program: see `OverviewOutput`."""

    record: OverviewOutput

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """One screen of 25 lines."""
        return overview_page(self.record)


@takes(OverviewOptions)
def overview(options: OverviewOptions, progress: Progress) -> Overview:
    """Return what is to be done about a program; what was not measured yet is measured first.

    That runs the script, and the code that inductor generated, in child processes.

    Raises:
        NotFoundError: nothing was compiled. ProbeError, StoppedError: the script did not come to its end.
    """
    from inductor_probe.model.bench import BenchSettings

    program = opened(options, progress)
    settings = BenchSettings(**shared(options, BenchSettings))
    return overview_of(
        program,
        settings,
        measure=options.measure,
        again=options.again,
        operators=options.operators,
        trust=options.trust,
        progress=progress,
    )


def overview_of(
    program: Run | Graph,
    settings: BenchSettings | None = None,
    *,
    measure: bool = True,
    again: bool = False,
    operators: bool = False,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Overview:
    """Return what is to be done about the graphs of a run; what was not measured yet is measured first.

    That runs the script, and the code that inductor generated, in child processes.

    Args:
        settings: `budget` (for everything), `margin`, `threads`, `imports` and `inputs` count.
        measure: else, and where nothing can be run here, what bounds the time stands in for it.
        again: measure what was measured before, too.
        operators: compare the loops of operators that inductor decomposed with eager's kernels of them.
        trust: run code that is not known to be made here.

    Raises:
        NotFoundError: nothing was compiled.
    """
    graphs = [program] if isinstance(program, Graph) else [*program.graphs]
    run = program.run if isinstance(program, Graph) else program
    if not graphs:
        raise run.empty()
    compiled = [graph for graph in graphs if not graph.compiled.failures]
    chosen = _heaviest(compiled)
    known = bool(chosen) and _is_measured(run, chosen)
    why = "" if measure or known else f"probe overview {_name_from_here(run)} measures it"
    if measure and chosen and (again or not known):
        why = _measured(chosen, settings, trust, progress)
        for graph in chosen:
            graph.forget_times()
    maker = _Maker(run, graphs, chosen, why)
    if operators and measure and not why:
        maker.measure_without_vectors(trust, progress)
    record = maker.record(operators)
    interrupted = _interruptions(run, trust=trust, progress=progress if measure else None, dump=measure)
    return Overview(replace(record, interruptions=interrupted, compiling=compile_summary_of(run)))


def _name_from_here(run: Run) -> str:
    """Return what finds a run from the working folder, for a shell: its label, folder's name, or path."""
    from inductor_probe.discovery.discover import run_labelled

    here, label = Path.cwd(), run.manifest.label if run.manifest else None
    if label and run_labelled(label, here) == run.path:
        return shlex.quote(label)
    return shlex.quote(run.path.name if run.path.parent == here / TREE else str(seen_from(run.path, here)))


def _interruptions(
    run: Run, *, trust: bool, dump: bool, progress: Callable[[str], None] | None
) -> tuple[Interruption, ...]:
    """Return graph breaks and recompiles, and what avoids them: settings for that are tried in a dump."""
    from inductor_probe.analysis.interruptions import checked, interruptions, settings_of
    from inductor_probe.report.words.interruptions import with_sentences

    found = interruptions(run.manifest)
    if (settings := settings_of(found)) and (other := _otherwise(run, settings, trust, dump, progress)):
        found = checked(found, interruptions(other.manifest))
    return tuple(map(with_sentences, found))


def _otherwise(
    run: Run,
    settings: tuple[tuple[str, str], ...],
    trust: bool,
    dump: bool,
    progress: Callable[[str], None] | None,
) -> Run | None:
    """Return the program dumped with some settings: as it was before, or now; None where it cannot be."""
    from inductor_probe.api.baseline import as_it_is, dumped_to_the_end
    from inductor_probe.discovery.walk import runs_below
    from inductor_probe.model.whatif import Candidate
    from inductor_probe.reader.debug_dir import read_run

    for path in reversed(runs_below(run.path.parent)):
        manifest = read_run(path).manifest
        if manifest and manifest.baseline == run.path.name and manifest.settings == settings:
            return Run(read_run(path))
    if not dump or (run.manifest and run.manifest.duration_s > LONGEST_DUMP_S):
        return None
    try:
        recipe = replace(as_it_is(run, trust=trust), baseline=run.path.name)
        if progress:
            progress("dumping it once more, with what would avoid recompiles and graph breaks")
        with tempfile.TemporaryDirectory(prefix="overview-") as folder:
            output = Path(folder, "output")
            return dumped_to_the_end(recipe, Run, Candidate(settings=settings), output=output)
    except ProbeError:
        return None


def _is_measured(run: Run, graphs: Sequence[Graph]) -> bool:
    """Whether graphs were profiled, and their script's own call was timed, or could not be."""
    from inductor_probe.store.profiles import profiles_of_run

    known = profiles_of_run(run.path)
    if known is None or not all(graph.times.nests or graph.times.call for graph in graphs):
        return False
    return bool(known.own) or (known.no_own is not None and known.no_own.code != "not-asked")


def _heaviest(graphs: Sequence[Graph]) -> list[Graph]:
    """Return the graphs that move most bytes, in their order."""
    from inductor_probe.analysis.overview import parts_unmeasured

    if len(graphs) <= MOST_GRAPHS:
        return [*graphs]
    weights = [sum(part.bytes or 0 for part in parts_unmeasured([graph.generated])[0]) for graph in graphs]
    largest = sorted(range(len(graphs)), key=lambda place: -weights[place])[:MOST_GRAPHS]
    return [graphs[place] for place in sorted(largest)]


def _measured(
    graphs: Sequence[Graph],
    settings: BenchSettings | None,
    trust: bool,
    progress: Callable[[str], None] | None,
) -> str:
    """Measure graphs, which stores what comes of it in the run; return why that was not possible."""
    from inductor_probe.api.profile import profile_graphs
    from inductor_probe.api.trust import why_not_launched
    from inductor_probe.model.bench import BenchSettings

    settings = settings or BenchSettings(budget=BUDGET_S)
    settings = replace(settings, budget=max(settings.budget / len(graphs), _LEAST_S))
    if why := next(filter(None, map(why_not_launched, graphs)), None):
        return why
    pairs = [(graph, graph.write_bench_file) for graph in graphs]
    try:
        profile_graphs(pairs, settings, trust=trust, as_called=True, progress=progress)
    except ProbeError as error:
        return error.message
    return ""


class _Maker:
    """Makes the record of a run."""

    def __init__(self, run: Run, graphs: Sequence[Graph], chosen: Sequence[Graph], why: str) -> None:
        from inductor_probe.store.profiles import profiles_of_run

        self._run, self._graphs, self._chosen, self._why = run, graphs, chosen, why
        self._profiles: list[Profile] = [one for graph in chosen if (one := graph.profiled) is not None]
        known = profiles_of_run(run.path) if self._profiles else None
        ids = {one.compile_id for one in (run.manifest.graphs if run.manifest else ()) if one.compile_id}
        own = [call for call in (known.own if known else ()) if ids.intersection(call.graphs)]
        self._others = sorted(own, key=lambda call: -call.compiled)
        self._own: OwnCall | None = self._others.pop(0) if own else None
        records = run.manifest.graphs if run.manifest else ()
        names = {one.name for one in records if self._own and one.compile_id in self._own.graphs}
        self._profiles = [one for one in self._profiles if one.graph in names] or self._profiles
        self._no_own: NoOwnCall | None = known.no_own if known else None

    def measure_without_vectors(self, trust: bool, progress: Callable[[str], None] | None) -> None:
        """Time what eager does without ATen's kernels for vectors, where that is not known yet."""
        from inductor_probe.api.decomposed import measured_without_vectors

        if self._own is not None:
            self._own = measured_without_vectors(self._run, self._graphs, self._own, trust, progress)

    def record(self, operators: bool) -> OverviewOutput:
        """Return what is known of the run; `operators`: with the figures of those that were decomposed."""
        from inductor_probe.analysis.overview import agrees, busy_of, missed, parts_of_call, parts_unmeasured
        from inductor_probe.api.decomposed import Decompositions

        own, profiles = self._own, self._profiles
        graphs = [graph.compiled for graph in self._chosen]
        parts, basis = parts_unmeasured(graphs)
        call = whole = None
        if profiles:
            parts, basis = parts_of_call(own, profiles), "time"
            call = whole = own.compiled if own else sum(profile.call for profile in profiles)
            if own and not agrees(own):
                whole = sum(profile.call for profile in profiles)
        times = {graph.name: graph.times for graph in self._chosen}
        costs = missed(graphs, times, whole)
        in_call = {part.graph for part in parts if part.graph}  # the others were compiled for other calls
        costs = tuple(
            one
            for one in costs
            if (one.share is None or one.share >= _LEAST_COST) and (not in_call or one.graph in in_call)
        )
        offers = self._offers()
        ideas = self._ideas(offers, whole, in_call)
        mine = [graph for graph in self._chosen if not in_call or graph.name in in_call]
        decompositions = Decompositions(self._run, mine, own, parts)
        decomposed = decompositions.operators()
        if operators:
            best = partial(self._ideas, whole=whole, in_call=in_call)
            decomposed = tuple(decompositions.with_figures(decomposed, offers, best))
        shown = [part for part in parts if part.share >= _LEAST_SHARE][:_MOST_PARTS]
        return OverviewOutput(
            run=self._run.path,
            basis=basis,
            call=call,
            eager=own.eager if own else None,
            name=own.name if own else ", ".join(profile.graph for profile in profiles),
            comparison=own.comparison if own else None,
            threads=own.threads if own else profiles[0].threads if profiles else None,
            device=own.device if own else profiles[0].device if profiles else "",
            side=self._side(),
            busy=busy_of(profiles),
            parts=tuple(self._named(part) for part in shown),
            costs=tuple(map(self._cost, costs[:_MOST_COSTS])),
            try_=ideas,
            tries=len(offers),
            try_all=f"probe whatif {_name_from_here(self._run)} --try-all" if offers else "",
            operators=decomposed,
            failed=tuple(self._failed()),
            wrong=tuple(self._wrong()),
            left_out=tuple(self._left_out(costs[_MOST_COSTS:])),
            problems=self._run.debug_dir.problems,
        )

    def _named(self, part: OverviewPart) -> OverviewPart:
        """Return a part without its graph where there is one graph."""
        return part if len(self._graphs) > 1 else replace(part, graph="")

    def _side(self) -> Side:
        """Return whose parts are shown."""
        from inductor_probe.analysis.overview import agrees, side_of

        if self._own is not None and agrees(self._own):
            return side_of(self._own)
        return "device" if self._profiles and self._profiles[0].device != "cpu" else "host"

    def _cost(self, one: Missed) -> OverviewCost:
        from inductor_probe.report.pages.why import cause_sentence, row_text

        cause = one.cause
        code = cause.decision.cause if cause.decision else cause.remark.code if cause.remark else ""
        return OverviewCost(
            subject=" + ".join(subject.name for subject in cause.subjects),
            cause=code,
            text=cause_sentence(cause),
            short=row_text(cause),
            share=one.share,
            time=one.time,
            graph=one.graph if len(self._graphs) > 1 else "",
            alike=one.alike,
        )

    def _offers(self) -> tuple[Offer, ...]:
        """Return the changes that `probe why` offers."""
        from inductor_probe.analysis.causes.candidates import offers_of

        graphs = self._graphs if len(self._graphs) <= MOST_GRAPHS else self._chosen
        threads = self._own.threads if self._own else None
        times = {graph.name: graph.times for graph in graphs}
        return offers_of([graph.compiled for graph in graphs], threads, times)

    def _ideas(
        self, offers: Sequence[Offer], whole: float | None, in_call: set[str]
    ) -> tuple[OverviewIdea, ...]:
        """Return the changes that can gain most.

        Args:
            whole: seconds of the call, that shares are of. in_call: the graphs that it runs, if known.
        """
        from inductor_probe.analysis.overview import busy_of
        from inductor_probe.report.pages.why import row_text

        ranked = sorted(offers, key=lambda offer: -offer.expected)  # stable: by the ledger where alike
        ideas: dict[str, OverviewIdea] = {}
        busy = busy_of(self._profiles)
        if busy is not None and whole and busy < WORKS * whole:
            for offer in offers:
                if offer.candidate.acts_around_code:  # that `why` offers for this graph
                    command = f"probe whatif {_name_from_here(self._run)} {offer.candidate.command}"
                    text = row_text(offer.causes[0][1])
                    ideas.setdefault(text, OverviewIdea(command, 1 - busy / whole, text))
        for offer in ranked:
            if offer.candidate.acts_around_code or all(one.kind == "passed" for _, one in offer.causes):
                continue
            mine = [time for (graph, _), time in offer.pieces.items() if not in_call or graph in in_call]
            at_most = None if offer.at_most is None or not whole else min(sum(mine) / whole, 1.0)
            if at_most is None or at_most >= _LEAST_SHARE:
                command = f"probe whatif {_name_from_here(self._run)} {offer.candidate.command}"
                text = row_text(offer.causes[0][1])
                # a setting and a flip may turn the same decision: the one that may gain more comes first
                ideas.setdefault(text, OverviewIdea(command, at_most, text))
        return tuple(ideas.values())[:_MOST_IDEAS]

    def _failed(self) -> Iterator[str]:
        from inductor_probe.report.words.remarks import sentence

        summary = self._run.summary
        remarks: list[Remark] = [
            *(remark for graph in summary.graphs for remark in graph.remarks),
            *summary.remarks,
        ]
        codes = ("compile-failed", "unfinished-compile", "cut-short")
        for remark in remarks:
            if remark.code in codes:
                yield sentence(remark)

    def _wrong(self) -> Iterator[str]:
        from inductor_probe.report.words.own_call import own_name, own_remark

        for call in filter(None, (self._own, *self._others)):
            for remark in call.remarks:
                if remark.code in ("differs", "other-form"):
                    yield f"{own_name(call)}: {own_remark(remark)}"

    def _left_out(self, costs: Sequence[Missed]) -> Iterator[str]:
        from inductor_probe.analysis.overview import agrees
        from inductor_probe.report.units import counted, duration
        from inductor_probe.report.words.own_call import why_no_own_call

        if self._why:
            yield f"nothing was measured: {self._why}"
        elif self._no_own is not None and self._own is None:
            yield why_no_own_call(self._no_own)
        if self._own is not None and self._profiles and not agrees(self._own):
            yield (
                "the parts of the call itself: timed by themselves they take another time than the call "
                "(measure them again with --again); shares are of each graph by itself"
            )
        for call in self._others:
            yield f"{call.name}: {duration(call.compiled)} a call, eager {duration(call.eager)}"
        if others := len(self._graphs) - len(self._chosen):
            yield f"{counted(others, 'graph')} of {len(self._graphs)}, which move fewer bytes"
        if self._run.others:
            yield f"{counted(len(self._run.others), 'other process', 'other processes')} of the dump"
        if costs:
            yield f"{counted(len(costs), 'missed optimisation')} of other causes: probe why"
