"""One page about a run, or about two: everything that was found, in one file to share."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from inductor_probe.api.compile_time import compile_time
from inductor_probe.api.diff import Diff
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk, causes_of
from inductor_probe.api.overview import overview_of
from inductor_probe.api.session import Graph, Run
from inductor_probe.api.verbs import open_target
from inductor_probe.discovery.dump_processes import name_of_process, process_of
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.compile_time import CompileTimes
from inductor_probe.model.output import Output
from inductor_probe.model.report import ReportOutput, ReportProcess, ReportRun, ReportVerdict, Side
from inductor_probe.model.span import Problem
from inductor_probe.options.reading import ReportOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.report import report_graph, report_page, without_guards
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.model.report import ReportGraph

MOST_GRAPHS = 24
"""Of each run on the page, the first ones: a page of hundreds takes a browser's time and helps nobody."""


class Report(Shown):
    """A page about a run or graph, or about two, A and B. `html` is the page."""

    def __init__(self, *sides: Run | Graph) -> None:
        self._sides = sides

    @cached_property
    def _graphs(self) -> tuple[tuple[Side, GraphOnDisk], ...]:
        pairs: list[tuple[Side, GraphOnDisk]] = []
        for letter, side in zip(("a", "b"), self._sides, strict=False):
            _, graphs = side._scope()
            pairs += [(letter, graph) for graph in graphs[:MOST_GRAPHS]]  # type: ignore[misc] # zip widens
        return tuple(pairs)

    @cached_property
    def diff(self) -> Diff | None:
        """What changed from A to B."""
        return Diff(*self._sides) if len(self._sides) > 1 else None

    @cached_property
    def record(self) -> ReportOutput:
        """Everything that the page shows."""
        runs = [side.run if isinstance(side, Graph) else side for side in self._sides]
        problems = [problem for run in runs for problem in run.debug_dir.problems]
        problems += [problem for _, graph in self._graphs for problem in graph.compiled.problems]
        left_out = [graph.name for side in self._sides for graph in side._scope()[1][MOST_GRAPHS:]]
        verdicts: list[ReportVerdict] = []
        compile_times, missing = _compile_times(runs)
        for run in dict.fromkeys(runs):
            verdicts += _verdicts(run, [graph for _, graph in self._graphs if graph.run is run], problems)
        return ReportOutput(
            runs=tuple(map(_run, runs)),
            overview=tuple(overview_of(side, measure=False).record for side in self._sides),
            graphs=tuple(_graph(letter, graph) for letter, graph in self._graphs),
            left_out=tuple(left_out),
            diff=self.diff.result if self.diff else None,
            verdicts=tuple(verdicts),
            processes=tuple(_processes(runs[0])),
            compile_times=tuple(compile_times),
            missing=(*_missing(runs, verdicts), *missing),
            problems=tuple(dict.fromkeys(problems)),
        )

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """What is on the page, in short."""
        return report_page(self.record)

    @property
    def html(self) -> str:
        """The page: one file that needs no network and no server."""
        from inductor_probe.report.shared_page import page_html

        changes = list(self.diff.page(everything=True)) if self.diff else []
        return page_html(self.record, [list(_drawings(graph)) for _, graph in self._graphs], changes)

    @property
    def model_explorer(self) -> str:
        """The graphs in the form that Model Explorer opens: https://github.com/google-ai-edge/model-explorer."""
        from inductor_probe.report.model_explorer import model_explorer_text

        return model_explorer_text(self.record.graphs)


@takes(ReportOptions)
def report_of(options: ReportOptions, progress: Progress) -> Report:
    """Return the page about a run or graph, or about what changed between two; nothing is measured for it.

    Raises:
        NotFoundError: the run does not exist, or has no graphs.
    """
    sides = [open_target(options.a), *([open_target(options.b)] if options.b is not None else [])]
    for side in sides:
        if isinstance(side, Run) and not side.graphs:
            raise side.empty()
    return Report(*sides)


def _run(run: RunOnDisk) -> ReportRun:
    manifest = run.manifest
    if manifest is None:
        return ReportRun(run.path.name, run.path)
    machine, versions = dict(manifest.machine), dict(manifest.versions)
    gpu = manifest.gpu.device if manifest.gpu else machine.get("gpu", "")
    return ReportRun(
        manifest.label or run.path.name,
        run.path,
        versions.get("torch", ""),
        ", ".join(filter(None, (machine.get("cpu", ""), gpu))),
        manifest.script,
        manifest.started,
        manifest.compile_s,
    )


def _graph(side: Side, graph: GraphOnDisk) -> ReportGraph:
    from inductor_probe.analysis.annotation.annotate import nodes_of_lines
    from inductor_probe.analysis.kernels import kernel_rows
    from inductor_probe.analysis.layouts import layouts
    from inductor_probe.analysis.nodes import node_rows
    from inductor_probe.analysis.pages import formulas

    compiled = graph.generated
    kernels = kernel_rows(compiled)
    texts = [row.name for row in kernels if row.source]
    profile = graph.profiled
    name = graph.name if "/" in graph.short_name else graph.short_name
    missing = [] if profile else [f"no times: probe profile {name} measures where they go"]
    if graph.compiled.decisions is None:
        again = "dump the script with probe dump" if graph.run.manifest is None else "dump it again"
        missing.append(f"why torch decided as it did was not recorded: {again}")
    return report_graph(
        graph.name,
        side,
        nodes=node_rows(compiled),
        buffers=layouts(compiled),
        kernels=kernels,
        causes=causes_of(graph).causes,
        bodies=formulas(compiled),
        lines={name: nodes_of_lines(compiled, name) for name in texts},
        seconds=graph.node_seconds,
        profile=profile,
        missing=tuple(missing),
    )


def _drawings(graph: GraphOnDisk) -> Iterator[tuple[str, str]]:
    """Yield the legend and the drawing of a graph: folded, and where that folds anything, whole."""
    from inductor_probe.analysis.layouts import layouts
    from inductor_probe.analysis.nodes import node_rows
    from inductor_probe.report.plots.drawing import drawing_svg, legend_html
    from inductor_probe.report.plots.outline import MOST_UNITS, missed_of, outline_of

    rows, buffers, seconds = node_rows(graph.generated), layouts(graph.generated), graph.node_seconds
    causes = causes_of(graph).causes
    known: list[int] = []
    for most in (MOST_UNITS, None):
        outline = outline_of(rows, buffers, seconds=seconds, most=most)
        if len(outline.units) not in known:
            known.append(len(outline.units))
            missed = missed_of(outline, causes)
            yield legend_html(outline, missed), drawing_svg(outline, missed)


def _verdicts(
    run: RunOnDisk, graphs: Sequence[GraphOnDisk], problems: list[Problem]
) -> Iterator[ReportVerdict]:
    """Yield what was measured of a run before; what cannot be read is a problem."""
    from inductor_probe.store.profiles import profiles_of_run
    from inductor_probe.store.trials import read_trials

    known = profiles_of_run(run.path)
    for call in known.own if known else ():
        if call.comparison is not None:
            yield ReportVerdict(f"{call.name}, compiled", "eager", call.comparison)
    try:
        for trial in read_trials(run.path, None):
            if trial.call is not None and trial.same_as is None:
                yield ReportVerdict(str(trial.candidate), "the graph as it is", trial.call, trial.graph or "")
        for graph in graphs:
            yield from _of_samples(graph)
    except ProbeError as error:
        problems.append(Problem(str(error)))


def _of_samples(graph: GraphOnDisk) -> Iterator[ReportVerdict]:
    from inductor_probe.api.on_disk import SAMPLES_NAME

    path = graph.path / SAMPLES_NAME
    if path.exists():
        from inductor_probe.bench.result import result_of
        from inductor_probe.store.samples import read_samples

        for one in result_of(read_samples(path)).comparisons:
            yield ReportVerdict(one.candidate, one.baseline, one, graph.name)


def _processes(run: RunOnDisk) -> Iterator[ReportProcess]:
    """Yield the processes of a dump that has several."""
    from inductor_probe.analysis.collectives import collectives

    for one in (run, *run.others) if run.others else ():
        process, graphs = process_of(one.debug_dir), [graph.generated for graph in one.graphs]
        yield ReportProcess(
            name_of_process(one.debug_dir) or one.path.name,
            process.outcome if process else "unknown",
            len(graphs),
            sum(len(graph.code.kernels) for graph in graphs if graph.code),
            sum(len(collectives(graph)) for graph in graphs),
            one.manifest.compile_s if one.manifest else None,
        )


def _compile_times(runs: Sequence[RunOnDisk]) -> tuple[list[CompileTimes], list[str]]:
    """Return where compiling took its time, and a sentence for each run that has no log of it."""
    rows: list[CompileTimes] = []
    missing: list[str] = []
    for run in dict.fromkeys(runs):
        try:
            rows += map(without_guards, compile_time(run))
        except NotFoundError as error:
            missing.append(f"{error}: {error.hint}")
    return rows, missing


def _missing(runs: Sequence[RunOnDisk], verdicts: Sequence[ReportVerdict]) -> Iterator[str]:
    name = shlex.quote((runs[0].manifest.label if runs[0].manifest else None) or runs[0].path.name)
    if not verdicts:
        yield f"nothing was compared: probe whatif {name} --try-all tries and times what probe why offers"
    if len(runs) == 1:
        yield f"of two runs the page has what changed: probe report {name} RUN_B"
