"""The verbs of `probe` as functions, and the objects they return. The command line is a mirror of this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe import analysis
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.bench import BenchFile, BenchResult
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir, GraphDir
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.span import Problem
from inductor_probe.model.summary import RunSummary
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.reader.discover import Found, find
from inductor_probe.report.layouts import LayoutPage, LayoutTable
from inductor_probe.report.shown import Renderable, Shown
from inductor_probe.report.summary import SummaryTable

if TYPE_CHECKING:
    from typing_extensions import Self


class LayoutRows(tuple[LayoutRow, ...], Shown):
    """Rows of `layouts`: one shows as a page, several as a table. `problems` is what could not be read."""

    problems: tuple[Problem, ...]

    def __new__(cls, rows: Iterable[LayoutRow], problems: Iterable[Problem] = ()) -> Self:
        """Join the rows with what could not be read."""
        made = super().__new__(cls, rows)
        made.problems = tuple(problems)
        return made

    def __rich__(self) -> Renderable:
        return LayoutPage(self[0]) if len(self) == 1 else LayoutTable(self)

    __repr__ = Shown.__repr__


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
        echo: Callable[[str], None] | None = None,
    ) -> BenchResult:
        """Write the bench file and run it: this executes the generated code, in a child process.

        Args:
            kernel: time only this kernel and its variants.
            min_run_time: seconds spent on each comparison.
            echo: is handed what the bench file prints, line by line.

        Raises:
            ProbeError: the file cannot be written, or does not run.
        """
        from inductor_probe import bench  # noqa: PLC0415 - reading a dump does not need it

        file = self.write_bench_file()
        return bench.run_bench_file(file.path, kernel=kernel, min_run_time=min_run_time, echo=echo)

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
            NotFoundError: no graph has it.
        """
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

    def _nowhere(self, name: str | None) -> NotFoundError:
        known = [row.buffer for graph in self.graphs for row in graph.layouts()]
        return NotFoundError(
            f"none of the {len(self.graphs)} graphs of {self.path} has a buffer or node {name}",
            near_names(str(name), known),
        )

    def __rich__(self) -> Renderable:
        return SummaryTable(self.summary)


def dump(
    script: str | Path,
    *,
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    label: str | None = None,
    save_inputs: bool = False,
    out: Path | None = None,
    stdout_to_stderr: bool = False,
) -> Run:
    """Run a script that calls `torch.compile` in a child process, and return what inductor dumped.

    How the script ended is in `run.manifest`: a script that failed still leaves a run.

    Args:
        script: a path, or the bare name of a script here or in the project's scenarios.
        args: the script's own arguments.
        cases, knobs: of a scenario: which cases to run, and knobs to set in them.
        label: a name to find the run by.
        save_inputs: keep the bytes of every graph's real inputs.
        out: folder for `torch_compile_debug`, the working folder by default.
        stdout_to_stderr: keep the script's output off stdout.

    Raises:
        NotFoundError: no such script. ProbeError: cases or knobs for a script that has none.
    """
    from inductor_probe import capture  # noqa: PLC0415 - reading a dump does not need it

    result = capture.dump(
        capture.find_script(str(script), Path.cwd()),
        args=args,
        cases=cases,
        knobs=knobs or {},
        label=label,
        save_inputs=save_inputs,
        out=out,
        stdout_to_stderr=stdout_to_stderr,
    )
    return Run(read_run(result.run))


def open_run(target: str | Path | None = None) -> Run:
    """Return the run that `target` names: a path, a run's name or label, or a graph; the latest if None.

    Raises:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    return Run(_find(target).run)


def open_graph(target: str | Path | None = None) -> Graph:
    """Return the graph that `target` names; for a run, or None, the only graph of it.

    Raises:
        NotFoundError: no such graph. ProbeError: the run has several graphs.
    """
    found = _find(target)
    run = Run(found.run)
    if found.graph:
        return next(graph for graph in run.graphs if graph.path == found.graph.path)
    if len(run.graphs) == 1:
        return run.graphs[0]
    names = [graph.name for graph in run.graphs]
    if not names:
        raise NotFoundError(f"{run.path} is an empty run", "see why: probe dump shows it, as does probe.json")
    raise ProbeError(f"{run.path} has {len(names)} graphs: name one", f"one of {', '.join(names)}")


def layouts(name: str | None = None, target: str | Path | None = None) -> LayoutRows:
    """Return the layouts of `name` (buffer, input or node), or of all buffers, in a run or graph.

    Raises:
        NotFoundError, UnreadableError: see `open_run` and `Run.layouts`.
    """
    found = _find(target)
    run = Run(found.run)
    if found.graph is None:
        return run.layouts(name)
    return next(graph for graph in run.graphs if graph.path == found.graph.path).layouts(name)


def _find(target: str | Path | None) -> Found:
    return find(None if target is None else str(target), Path.cwd())
