"""Comparisons that show themselves."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from inductor_probe.analysis.diff import code_diff, diff_graphs_of_runs, diff_runs, pair_graphs
from inductor_probe.analysis.names import kernels_called
from inductor_probe.api.graph import Graph
from inductor_probe.api.run import Run
from inductor_probe.discovery.discover import find, runs_below
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.report.diff import DiffPage

Compared = Graph | Run


class Diff(Shown):
    """What changed between two runs or two graphs.

    `result` is a RunDiff when both are runs, else the GraphDiff of the two graphs.
    """

    def __init__(self, a: Compared, b: Compared) -> None:
        self.result, self._pairs = _compare(a, b)
        self.problems: tuple[Problem, ...] = tuple(
            chain.from_iterable(
                side.debug_dir.problems if isinstance(side, Run) else side.run.debug_dir.problems
                for side in (a, b)
            )
        ) + tuple(chain.from_iterable(graph.problems for graph in self.graphs))

    @property
    def equal(self) -> bool:
        """Whether both compute the same with the same code, names and spelling aside."""
        return self.result.equal

    @property
    def graphs(self) -> tuple[GraphDiff, ...]:
        """The comparison of each pair of graphs."""
        return (self.result,) if isinstance(self.result, GraphDiff) else self.result.graphs

    def code(self, kernel: str | None = None) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return unified diffs of the code of matched kernels: a title and lines for each that differs.

        Args:
            kernel: only the pair with a kernel of this name (or start of a name) on either side.

        Raises:
            NotFoundError: no kernel of that name.
        """
        found: list[tuple[str, tuple[str, ...]]] = []
        known = [name for diff in self.graphs for match in diff.kernels for name in (*match.a, *match.b)]
        called = set(known if kernel is None else kernels_called(kernel, known))
        if kernel is not None and not called:
            raise NotFoundError(f"neither side has a kernel {kernel}", near_names(kernel, known))
        for diff, (a, b) in zip(self.graphs, self._pairs, strict=True):
            for match in diff.kernels:
                if called.isdisjoint((*match.a, *match.b)):
                    continue
                if len(match.a) != 1 or len(match.b) != 1:
                    if kernel is not None:
                        title = f"{' '.join(match.a) or 'nothing'} -> {' '.join(match.b) or 'nothing'}"
                        found.append((f"{title}: {match.relation}, so there is no pair to compare", ()))
                    continue
                lines = self._code_of(a, match.a[0], b, match.b[0])
                if lines or kernel is not None:
                    found.append((f"{match.a[0]} -> {match.b[0]}" + ("" if lines else ": the same"), lines))
        return tuple(found)

    def _code_of(self, a: Graph, name_a: str, b: Graph, name_b: str) -> tuple[str, ...]:
        code_a, code_b = a.compiled.code, b.compiled.code
        kernel_a = code_a.kernel(name_a) if code_a else None
        kernel_b = code_b.kernel(name_b) if code_b else None
        return code_diff(kernel_a, kernel_b) if kernel_a and kernel_b else ()

    def __rich__(self) -> Renderable:
        return DiffPage(self.result)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.diff import diff_html

        return diff_html(self.__rich__(), self.code())


def diff(a: str | Path | None = None, b: str | Path | None = None) -> Diff:
    """Compare two runs or two graphs: paths, graphs' names, labels, or the start of one.

    Without `b`, the latest run is B; without both, the run before the latest is A.

    Raises:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    here = Path.cwd()
    if a is None:
        runs = runs_below(here)
        if len(runs) < 2:
            raise NotFoundError(
                f"there are not two runs below {here} to compare", "name two: probe diff RUN_A RUN_B"
            )
        return Diff(Run(read_run(runs[-2])), Run(read_run(runs[-1])))
    return Diff(_open(a, here), _open(b, here))


def _open(target: str | Path | None, here: Path) -> Compared:
    found = find(None if target is None else str(target), here)
    run = Run(found.run)
    if found.graph is None:
        if not run.graphs:
            raise run.empty()
        return run
    return next(graph for graph in run.graphs if graph.path == found.graph.path)


def _compare(a: Compared, b: Compared) -> tuple[GraphDiff | RunDiff, list[tuple[Graph, Graph]]]:
    if isinstance(a, Run) and isinstance(b, Run):
        pairs = pair_graphs([graph.compiled for graph in a.graphs], [graph.compiled for graph in b.graphs])
        run_diff = diff_runs(
            a.debug_dir,
            b.debug_dir,
            [graph.compiled for graph in a.graphs],
            [graph.compiled for graph in b.graphs],
        )
        return run_diff, [(a.graphs[at], b.graphs[other]) for at, other in sorted(pairs.items())]
    one, other_one = _one_graph(a, b), _one_graph(b, a)
    diff = diff_graphs_of_runs(one.compiled, other_one.compiled, one.run.debug_dir, other_one.run.debug_dir)
    return diff, [(one, other_one)]


def _one_graph(side: Compared, other: Compared) -> Graph:
    """Return the graph; of a run, the partner of the graph on the other side."""
    if isinstance(side, Graph):
        return side
    if len(side.graphs) == 1:
        return side.graphs[0]
    if isinstance(other, Graph):
        pairs = pair_graphs([other.compiled], [graph.compiled for graph in side.graphs])
        if pairs:
            return side.graphs[pairs[0]]
    names = ", ".join(graph.name for graph in side.graphs)
    raise ProbeError(f"{side.path} has {len(side.graphs)} graphs: name one", f"one of {names}")
