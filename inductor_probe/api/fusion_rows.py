"""Fusion in a run or graph: what was fused when, and what was refused why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from inductor_probe.analysis.fusion import (
    Matched,
    fusion_of_graph,
    fusion_of_node,
    fusion_of_pair,
    match_log,
)
from inductor_probe.errors import NotFoundError
from inductor_probe.model.fusion import FusionDecision, GraphFusion, NodeFusion
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.report.fusion import FusionPages

if TYPE_CHECKING:
    from typing_extensions import Self

    from inductor_probe.api.graph import Graph
    from inductor_probe.api.run import Run

FusionRow: TypeAlias = GraphFusion | NodeFusion | FusionDecision


class FusionRows(tuple[FusionRow, ...], Shown):
    """Answers of `fusion`, one a graph: all of it, one node, or one pair. `problems` is what is not whole."""

    problems: tuple[Problem, ...]

    def __new__(cls, rows: Iterable[FusionRow], problems: Iterable[Problem] = ()) -> Self:
        """Join the answers with what could not be read, and with where log and IR disagree."""
        made = super().__new__(cls, rows)
        made.problems = tuple(dict.fromkeys([*problems, *(found for row in made for found in row.problems)]))
        return made

    def __rich__(self) -> Renderable:
        return FusionPages(self)

    __repr__ = Shown.__repr__


def fusion_in(
    run: Run, graphs: Sequence[Graph], first: str | None = None, second: str | None = None
) -> FusionRows:
    """Return fusion in each of the `graphs` of a run: as a whole, of a node, or of a pair.

    A name that only some of the graphs have is answered for those.

    Raises:
        NotFoundError: no graph has the names, or the run is empty. ProbeError: both name the same node.
    """
    if not graphs:
        raise run.empty()
    problems = [*run.debug_dir.problems, *run.logs.problems]
    rows: list[FusionRow] = []
    missing: NotFoundError | None = None
    for graph in graphs:
        problems.extend(graph.compiled.problems)
        try:
            rows.append(_row(graph, _matched(run, graph), first, second))
        except NotFoundError as error:
            missing = missing or error
    if missing is not None and not rows:
        if len(graphs) == 1:
            raise missing
        raise NotFoundError(f"none of the {len(graphs)} graphs has it: {missing.message}", missing.hint)
    return FusionRows(rows, problems)


def _row(graph: Graph, matched: Matched, first: str | None, second: str | None) -> FusionRow:
    if first is None:
        return fusion_of_graph(graph.compiled, matched)
    if second is None:
        return fusion_of_node(graph.compiled, matched, first)
    return fusion_of_pair(graph.compiled, matched, first, second)


def _matched(run: Run, graph: Graph) -> Matched:
    at = next(at for at, other in enumerate(run.graphs) if other.path == graph.path)
    everyone = lambda: [other.compiled for other in run.graphs]  # noqa: E731 - read only if the log needs it
    return match_log(graph.compiled, at, run.logs, everyone, len(run.graphs))
