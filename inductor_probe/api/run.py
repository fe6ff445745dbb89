"""Runs and their graphs: read when something of them is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from inductor_probe import analysis
from inductor_probe.api.bench import Bench
from inductor_probe.api.rows import LayoutRows
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.bench import BenchFile
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir, GraphDir
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.summary import RunSummary
from inductor_probe.reader.debug_dir import read_graph
from inductor_probe.report.shown import Renderable, Shown
from inductor_probe.report.summary import SummaryTable


class Graph(Shown):
    """A compiled graph of a run. It is read when something of it is first asked for."""

    def __init__(self, folder: GraphDir, run: Run) -> None:
        self.folder = folder
        self.run = run

    @property
    def name(self) -> str:
        """Name of the graph's folder: `model__0_inference_0.0`."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """The graph's folder."""
        return self.folder.path

    @cached_property
    def compiled(self) -> CompiledGraph:
        """Everything that is in the folder, as records."""
        return read_graph(self.folder, self.run.manifest)

    def layouts(self, name: str | None = None) -> LayoutRows:
        """Return how the buffer, input or node `name` lies in memory; every buffer without a name.

        Raises:
            NotFoundError: the graph has nothing of that name.
        """
        return LayoutRows(analysis.layouts(self.compiled, name), self.compiled.problems)

    def write_bench_file(self) -> BenchFile:
        """Write `output_code_bench.py` beside `output_code.py`. A file that was edited is kept as it is.

        Raises:
            ProbeError: nothing to write it from, or the folder cannot be written.
        """
        from inductor_probe import rewrite  # noqa: PLC0415 - libcst takes longer to import than a dump to read

        record = self.run.manifest.graph(self.name) if self.run.manifest else None
        return rewrite.write_bench_file(self.path, record.inputs if record else ())

    def bench_kernel(
        self,
        kernel: str | None = None,
        *,
        min_run_time: float | None = None,
        threads: int | None = None,
        echo: Callable[[str], None] | None = None,
    ) -> Bench:
        """Write the bench file and run it: this executes the generated code, in a child process.

        Args:
            kernel: time only this kernel and its variants.
            min_run_time: seconds spent on each comparison.
            threads: of torch and OpenMP; torch's own choice if None.
            echo: is handed every line that the bench file prints.

        Raises:
            NotFoundError: the graph has no such kernel.
            ProbeError: the file cannot be written, or does not run.
        """
        return self.run_bench_file(
            self.write_bench_file(), kernel, min_run_time=min_run_time, threads=threads, echo=echo
        )

    def run_bench_file(
        self,
        file: BenchFile,
        kernel: str | None = None,
        *,
        min_run_time: float | None = None,
        threads: int | None = None,
        echo: Callable[[str], None] | None = None,
    ) -> Bench:
        """Run the graph's bench file as it stands; see `bench_kernel`."""
        from inductor_probe import bench  # noqa: PLC0415 - reading a dump does not need it

        if kernel is not None and kernel not in file.kernels:
            raise NotFoundError(f"{self.name} has no kernel {kernel}", near_names(kernel, file.kernels))
        result = bench.run_bench_file(
            file.path, kernel=kernel, min_run_time=min_run_time, threads=threads, echo=echo
        )
        return Bench(file, result)

    def __rich__(self) -> Renderable:
        return SummaryTable(analysis.summarise(self.run.debug_dir, [self.compiled]))


class Run(Shown):
    """A `run_*` directory: its graphs in the order they were compiled."""

    def __init__(self, debug_dir: DebugDir) -> None:
        self.debug_dir = debug_dir
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
        """The graphs in numbers, and what deserves a look."""
        return analysis.summarise(self.debug_dir, [graph.compiled for graph in self.graphs])

    def layouts(self, name: str | None = None) -> LayoutRows:
        """Return `name` in every graph that has it; every buffer of every graph without a name.

        Raises:
            NotFoundError: no graph has it, or the run is empty.
        """
        if not self.graphs:
            raise self.empty()
        rows: list[LayoutRow] = []
        problems = list(self.debug_dir.problems)
        missing: NotFoundError | None = None
        for graph in self.graphs:
            problems.extend(graph.compiled.problems)
            try:
                rows.extend(graph.layouts(name))
            except NotFoundError as error:
                missing = error
        if missing is not None and not rows:
            raise missing if len(self.graphs) == 1 else self._nowhere(name)
        return LayoutRows(rows, problems)

    def empty(self) -> NotFoundError:
        """Return the error for what is asked of a run without graphs: it says why there are none."""
        return NotFoundError(
            f"{self.path} is an empty run: {self.summary.empty}",
            "`probe dump` a script that calls what torch.compile returned",
        )

    def _nowhere(self, name: str | None) -> NotFoundError:
        known = [row.buffer for graph in self.graphs for row in graph.layouts()]
        return NotFoundError(
            f"none of the {len(self.graphs)} graphs of {self.path} has a buffer or node {name}",
            near_names(str(name), known),
        )

    def __rich__(self) -> Renderable:
        return SummaryTable(self.summary)
