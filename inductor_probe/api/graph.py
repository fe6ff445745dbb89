"""A compiled graph: read when something of it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe import analysis
from inductor_probe.api.bench import Bench
from inductor_probe.api.rows import LayoutRows
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.bench import BenchFile
from inductor_probe.model.debug_dir import CompiledGraph, GraphDir
from inductor_probe.reader.debug_dir import read_graph
from inductor_probe.report.shown import Renderable, Shown
from inductor_probe.report.summary import SummaryTable

if TYPE_CHECKING:
    from inductor_probe.api.run import Run


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
