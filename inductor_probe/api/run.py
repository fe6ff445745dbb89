"""Runs: the graphs that a script's compiles left behind."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.graph import Graph
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.manifest import Manifest
from inductor_probe.notebook.shown import Renderable, Shown

if TYPE_CHECKING:
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.fusion_rows import FusionRows
    from inductor_probe.api.kernels import KernelRows
    from inductor_probe.api.nodes import NodeRows
    from inductor_probe.api.rows import LayoutRows
    from inductor_probe.model.layouts import LayoutRow
    from inductor_probe.model.logs import CompilerLogs
    from inductor_probe.model.summary import RunSummary


class Run(Shown):
    """A `run_*` directory: its graphs in the order they were compiled."""

    def __init__(self, debug_dir: DebugDir, not_remembered: str | None = None) -> None:
        self.debug_dir = debug_dir
        self.not_remembered = not_remembered
        """Why it could not be written down that the run was made here, after a dump."""
        self.graphs = tuple(Graph(folder, self) for folder in debug_dir.graphs)

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.debug_dir.path

    @property
    def manifest(self) -> Manifest | None:
        """What `probe dump` wrote down; None for a run that torch made alone."""
        return self.debug_dir.manifest

    def graph(self, name: str) -> Graph:
        """Return the graph called `name`.

        Raises:
            NotFoundError: there is none; near names are offered.
        """
        for graph in self.graphs:
            if graph.name == name:
                return graph
        raise NotFoundError(
            f"{self.path} has no graph {name}", near_names(name, [graph.name for graph in self.graphs])
        )

    @cached_property
    def summary(self) -> RunSummary:
        """The graphs in numbers, and the remarks about them."""
        from inductor_probe.analysis.summary import summarise

        return summarise(self.debug_dir, [graph.compiled for graph in self.graphs])

    def layouts(self, name: str | None = None) -> LayoutRows:
        """Return `name` in every graph that has it; every buffer of every graph without a name.

        Raises:
            NotFoundError: no graph has it, or the run is empty.
        """
        from inductor_probe.api.rows import LayoutRows

        if not self.graphs:
            raise self.empty()
        rows: list[LayoutRow] = []
        problems = list(self.debug_dir.problems)
        missing: NotFoundError | None = None
        for graph in self.graphs:
            problems.extend(graph.generated.problems)
            try:
                rows.extend(graph.layouts(name))
            except NotFoundError as error:
                missing = error
        if missing is not None and not rows:
            raise missing if len(self.graphs) == 1 else self._nowhere(name)
        return LayoutRows(rows, problems)

    @cached_property
    def logs(self) -> CompilerLogs:
        """What the compiler logged: in `probe_logs`, or in `stderr*.txt` and `*.log` in or beside the run."""
        from inductor_probe.reader.logs.run_logs import read_logs

        return read_logs(self.debug_dir)

    def fusion(self, first: str | None = None, second: str | None = None) -> FusionRows:
        """Return what was fused when and refused why, in each graph that has the names."""
        from inductor_probe.api.fusion_rows import fusion_in

        return fusion_in(self, self.graphs, first, second)

    def kernels(self) -> KernelRows:
        """Return the kernels of every graph.

        Raises:
            NotFoundError: the run is empty.
        """
        from inductor_probe.api.kernels import KernelRows

        if not self.graphs:
            raise self.empty()
        found = [graph.kernels() for graph in self.graphs]
        problems = [*self.debug_dir.problems, *(problem for rows in found for problem in rows.problems)]
        return KernelRows((row for rows in found for row in rows), problems)

    def nodes(self, *, pre: bool = False) -> NodeRows:
        """Return the scheduler's nodes of every graph; with `pre` those before fusion.

        Raises:
            NotFoundError: the run is empty.
        """
        from inductor_probe.api.nodes import NodeRows

        if not self.graphs:
            raise self.empty()
        found = [graph.nodes(pre=pre) for graph in self.graphs]
        problems = [*self.debug_dir.problems, *(problem for rows in found for problem in rows.problems)]
        return NodeRows((row for rows in found for row in rows), problems)

    def diff(self, other: Graph | Run) -> Diff:
        """Compare with another run, graph by graph: this one is A, the other is B."""
        from inductor_probe.api.diff import Diff

        return Diff(self, other)

    def empty(self) -> NotFoundError:
        """Return the error for what is asked of a run without graphs: it says why there are none."""
        from inductor_probe.analysis.run_remarks import why_empty
        from inductor_probe.discovery.inductor_cache import way_to_graphs
        from inductor_probe.report.words.remarks import sentence

        return NotFoundError(
            f"{self.path} is an empty run: {sentence(why_empty(self.debug_dir))}",
            "`probe dump` a script that calls what torch.compile returned"
            if self.manifest
            else way_to_graphs(self.debug_dir),
        )

    def _nowhere(self, name: str | None) -> NotFoundError:
        known = [row.buffer for graph in self.graphs for row in graph.layouts()]
        return NotFoundError(
            f"none of the {len(self.graphs)} graphs of {self.path} has a buffer or node {name}",
            near_names(str(name), known),
        )

    def __rich__(self) -> Renderable:
        from inductor_probe.report.summary import SummaryTable

        return SummaryTable(self.summary)
