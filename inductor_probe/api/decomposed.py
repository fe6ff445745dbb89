"""Operators that inductor decomposed, for an overview: their loops beside eager's kernels of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inductor_probe.errors import ProbeError
from inductor_probe.model.overview import DecomposedOperator, OverviewIdea, OverviewPart
from inductor_probe.model.own_call import NoOwnCall, OwnCall

if TYPE_CHECKING:
    from inductor_probe.analysis.causes.candidates import Offer
    from inductor_probe.analysis.decomposed import Loops
    from inductor_probe.api.session import Graph, Run

LEAST_SHARE, MOST = 0.05, 3
"""Of the call, or of the bytes where nothing was timed, that the loops of an operator take; and how many."""
_SECONDS = 1.0
"""For which eager is called without its kernels for vectors."""
Ideas = Callable[[Sequence["Offer"]], tuple[OverviewIdea, ...]]


class Decompositions:
    """The operators that inductor decomposed in graphs of a run.

    Args:
        graphs: that a call runs. own: of the user's callable. parts: of the call, all of them.
    """

    def __init__(
        self, run: Run, graphs: Sequence[Graph], own: OwnCall | None, parts: Sequence[OverviewPart]
    ) -> None:
        from inductor_probe.analysis.decomposed import decomposed

        self._run, self._graphs, self._own = run, graphs, own
        self._parts = {(part.graph, part.name): part for part in parts}
        self._eager = {one.name: one for one in (own.operators if own else ())}
        eager = tuple(self._eager.values())
        self._nodes = {graph.name: decomposed(graph.compiled, eager) for graph in graphs}

    def operators(self) -> tuple[DecomposedOperator, ...]:
        """Return those whose loops take much of a call, most first."""
        names = dict.fromkeys(name for became_of in self._nodes.values() for name in became_of)
        least = LEAST_SHARE if self._parts else 0.0  # on a busy machine none may be longer than its error
        rows = [(share, row) for share, row in map(self._operator, names) if share >= least]
        rows.sort(key=lambda pair: (-pair[0], -self._count(pair[1].name)))
        return tuple(row for _, row in rows[:MOST])

    def _operator(self, name: str) -> tuple[float, DecomposedOperator]:
        loops = self._loops(name)
        parts = (self._part(graph, one) for graph, one in loops)
        known = [*dict.fromkeys(part for part in parts if part is not None)]
        share = sum(part.share for part in known)
        timed = [part.time for part in known if part.time is not None]
        computed = dict.fromkeys(
            other for graph, one in loops for other in one.operators(graph.compiled, self._nodes[graph.name])
        )
        others, mine = tuple(other for other in computed if other != name), self._eager.get(name)
        return share, DecomposedOperator(
            name=name,
            share=share if timed else None,
            seconds=sum(timed) if timed else None,
            eager=mine.seconds if mine else None,
            others=others,
            others_eager=sum(self._eager[other].seconds for other in others if other in self._eager),
            own=mine.own if mine else None,
            below=tuple(below for below, _ in mine.below) if mine else (),
            capability=self._own.capability if self._own else "",
        )

    def _loops(self, name: str) -> list[tuple[Graph, Loops]]:
        from inductor_probe.analysis.decomposed import all_loops

        return [
            (graph, one)
            for graph in self._graphs
            for one in all_loops(graph.compiled)
            if not one.fx.isdisjoint(self._nodes[graph.name].get(name, ()))
        ]

    def with_figures(
        self, operators: Sequence[DecomposedOperator], offers: Sequence[Offer], ideas: Ideas
    ) -> Iterator[DecomposedOperator]:
        """Yield operators with the figures of both sides, and with what inductor could decide otherwise.

        Args:
            offers: changes of decisions in these graphs. ideas: makes the best of some.
        """
        from inductor_probe.analysis.decomposed import figures_of, work_of
        from inductor_probe.store.trials import read_trials

        trials = {trial.candidate: trial for trial in read_trials(self._run.path, None) if not trial.together}
        for operator in operators:
            loops = self._loops(operator.name)
            works = [
                work_of(graph.compiled, one, part.time if (part := self._part(graph, one)) else None)
                for graph, one in loops
            ]
            nodes = {(graph.name, node) for graph, one in loops for node in one.nodes}
            mine = [offer for offer in offers if _is_about(offer, nodes)]
            tried = [one for offer in mine if (one := trials.get(offer.candidate)) is not None and one.call]
            gains = [trial.ratio for trial in tried if trial.rank == "gain" and trial.ratio is not None]
            compiled = list({graph.name: graph.compiled for graph, _ in loops}.values())
            yield replace(
                operator,
                works=tuple(sorted(works, key=lambda work: (-(work.seconds or 0.0), -(work.moved or 0)))),
                figures=figures_of(
                    compiled, self._count(operator.name), works, self._eager.get(operator.name)
                ),
                try_=ideas(mine),
                tries=len(mine),
                tried=len(tried),
                gain=min(gains, default=None),
            )

    def _count(self, name: str) -> int:
        """Return how many FX nodes an operator became."""
        return sum(len(became_of.get(name, ())) for became_of in self._nodes.values())

    def _part(self, graph: Graph, loops: Loops) -> OverviewPart | None:
        """Return what is known of the share of loops: where nothing was timed, that of their kernel."""
        own = self._parts.get((graph.name, loops.name))
        return own or self._parts.get((graph.name, loops.kernel))


def _is_about(offer: Offer, nodes: Collection[tuple[str, str]]) -> bool:
    return any((graph, node) in nodes for graph, cause in offer.causes for node in cause.nodes)


def measured_without_vectors(
    run: Run,
    graphs: Sequence[Graph],
    own: OwnCall,
    trust: bool,
    progress: Callable[[str], None] | None,
) -> OwnCall:
    """Return a call with what its operators take without ATen's kernels for vectors: the script runs again.

    It is as it was where that is known, or cannot be had.
    """
    from inductor_probe.api.own_call import program_of, wanted_of
    from inductor_probe.measuring.own_calls import time_without_vectors
    from inductor_probe.store.profiles import add_to_run, profiles_of_run

    known = own.capability in ("", "DEFAULT") or any(one.without_vectors is not None for one in own.operators)
    program = NoOwnCall("not-asked") if known else program_of(run, threads=own.threads, trust=trust)
    if isinstance(program, NoOwnCall):
        return own
    wanted = tuple((name, backward) for name, backward in wanted_of(graphs) if name in own.graphs)
    if progress:
        progress(f"running {program.script} once more, without ATen's kernels for {own.capability}")
    try:
        timed = time_without_vectors(program, wanted, own, _SECONDS)
    except ProbeError:
        return own
    stored = profiles_of_run(run.path)
    add_to_run(run.path, (), (timed,), stored.no_own if stored else None)
    return timed
