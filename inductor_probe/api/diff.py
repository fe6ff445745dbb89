"""What changed between two runs or two graphs."""

from __future__ import annotations

from functools import cached_property
from itertools import chain

from inductor_probe.analysis.diff.devices import compare_devices
from inductor_probe.analysis.diff.graphs import diff_graphs_of_runs, diff_runs, pair_graphs
from inductor_probe.analysis.diff.kernels import code_diff
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.errors import NotFoundError, names_meant, near_names
from inductor_probe.model.diff import DeviceDiff, DiffOutput, GraphDiff, RunDiff
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem
from inductor_probe.report.document import Document
from inductor_probe.report.pages.devices import devices_page
from inductor_probe.report.pages.diff import diff_page
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.diff import summary_words

Compared = GraphOnDisk | RunOnDisk


class Diff(Shown):
    """What changed between two runs or two graphs.

    `result` is a RunDiff when both are runs, else the GraphDiff of the two graphs; `pairs` are the graphs
    that are compared, in the order of `graphs`.
    """

    def __init__(self, a: Compared, b: Compared, *, devices: bool = False) -> None:
        self._devices_asked = devices
        self.result, self.pairs = _compare(a, b)
        runs = [side if isinstance(side, RunOnDisk) else side.run for side in (a, b)]
        unread = [*(run.debug_dir.problems for run in runs), *(graph.problems for graph in self.graphs)]
        self.problems: tuple[Problem, ...] = tuple(chain.from_iterable(unread))

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

        `kernel` chooses the pairs with a kernel of this name (or start of a name) on either side.
        """
        diffs: list[tuple[str, tuple[str, ...]]] = []
        names = [name for diff in self.graphs for match in diff.kernels for name in (*match.a, *match.b)]
        chosen = set(names if kernel is None else names_meant(kernel, names))
        if kernel is not None and not chosen:
            raise NotFoundError(f"neither side has a kernel {kernel}", near_names(kernel, names))
        for diff, (a, b) in zip(self.graphs, self.pairs, strict=True):
            for match in diff.kernels:
                if chosen.isdisjoint((*match.a, *match.b)):
                    continue
                title = f"{' '.join(match.a) or 'nothing'} -> {' '.join(match.b) or 'nothing'}"
                lines: tuple[str, ...] = ()
                if len(match.a) != 1 or len(match.b) != 1:
                    title += f": {match.relation}, so there is no pair to compare"
                else:
                    code_a, code_b = a.compiled.code, b.compiled.code
                    kernel_a = code_a.kernel(match.a[0]) if code_a else None
                    kernel_b = code_b.kernel(match.b[0]) if code_b else None
                    lines = code_diff(kernel_a, kernel_b) if kernel_a and kernel_b else ()
                    title += "" if lines else ": the same"
                if lines or kernel is not None:
                    diffs.append((title, lines))
        return tuple(diffs)

    @cached_property
    def devices(self) -> tuple[DeviceDiff, ...]:
        """The kernels of each pair of graphs beside each other, with the times that were profiled."""
        return tuple(
            compare_devices(a.compiled, b.compiled, *(one.profiled for one in (a, b))) for a, b in self.pairs
        )

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return DiffOutput(
            diff=self.result,
            summary=summary_words(self.result),
            problems=self.problems,
            devices=self.devices if self._devices_asked else (),
        )

    @property
    def document(self) -> Document:
        """What changed, weightiest first."""
        return self.page()

    def page(self, *, everything: bool = False) -> Document:
        """Return what changed; with `everything` also what did not, and lists to their end."""
        if self._devices_asked:
            return devices_page(self.devices)
        return diff_page(self.result, self.code, everything=everything)


def _compare(a: Compared, b: Compared) -> tuple[GraphDiff | RunDiff, list[tuple[GraphOnDisk, GraphOnDisk]]]:
    if isinstance(a, RunOnDisk) and isinstance(b, RunOnDisk):
        graphs_a, graphs_b = ([graph.compiled for graph in run.graphs] for run in (a, b))
        pairs = sorted(pair_graphs(graphs_a, graphs_b).items())
        run_diff = diff_runs(a.debug_dir, b.debug_dir, graphs_a, graphs_b)
        return run_diff, [(a.graphs[index_a], b.graphs[index_b]) for index_a, index_b in pairs]
    graph_a, graph_b = _one_graph(a, b), _one_graph(b, a)
    diff = diff_graphs_of_runs(
        graph_a.compiled, graph_b.compiled, graph_a.run.debug_dir, graph_b.run.debug_dir
    )
    return diff, [(graph_a, graph_b)]


def _one_graph(side: Compared, other: Compared) -> GraphOnDisk:
    """Return the graph; of a run, the partner of the graph on the other side."""
    if isinstance(side, GraphOnDisk):
        return side
    if len(side.graphs) == 1:
        return side.graphs[0]
    if isinstance(other, GraphOnDisk):
        pairs = pair_graphs([other.compiled], [graph.compiled for graph in side.graphs])
        if pairs:
            return side.graphs[pairs[0]]
    raise side.several_graphs()
