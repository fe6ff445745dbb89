"""Runs and graphs on disk: read when something of them is first asked for, and then held."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inductor_probe.discovery.dump_processes import is_rank, name_of_process, process_of, runs_of_dump
from inductor_probe.errors import AmbiguousError, NotFoundError, ProbeError
from inductor_probe.model.assembly import REMARKS_NAME
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir, GraphDir
from inductor_probe.model.manifest import ConstantFact, InputFact, Manifest
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.debug_dir import read_graph, with_earlier

SAMPLES_NAME = "output_code_bench.json"
"""What `probe bench-kernel` measured with its own inputs and sizes, beside the bench file."""

if TYPE_CHECKING:
    from inductor_probe.analysis.causes.times import Times
    from inductor_probe.analysis.fusion.log import Matched
    from inductor_probe.model.cause import GraphCauses
    from inductor_probe.model.decision import Decision
    from inductor_probe.model.logs import CompilerLogs
    from inductor_probe.model.profile import Profile
    from inductor_probe.model.runs import RunSummary


class GraphOnDisk:
    """A compiled graph of a run: what was read of it. `Graph` adds the verbs."""

    def __init__(self, folder: GraphDir, run: RunOnDisk) -> None:
        self.folder = folder
        self.run = run

    @property
    def name(self) -> str:
        """Name of its folder, `model__0_inference_0.0`; `...@rank1` of one among several processes."""
        return self.folder.name + self.folder.process

    @property
    def path(self) -> Path:
        """The graph's folder."""
        return self.folder.path

    @cached_property
    def compiled(self) -> CompiledGraph:
        """Everything that is in the folder, as records."""
        return with_earlier(self.generated)

    @cached_property
    def generated(self) -> CompiledGraph:
        """What code was generated from: neither the nodes before fusion nor the FX graph before passes."""
        return read_graph(self.folder, self.run.manifest, earlier=False)

    @cached_property
    def matched_log(self) -> Matched:
        """The part of the run's fusion log that is about this graph."""
        from inductor_probe.analysis.fusion.log import match_log

        graphs = self.run.graphs
        place = next(number for number, other in enumerate(graphs) if other.path == self.path)
        return match_log(
            self.compiled, place, self.run.logs, lambda: [other.compiled for other in graphs], len(graphs)
        )

    @cached_property
    def fusion_decisions(self) -> tuple[Decision, ...]:
        """The decisions about fusion: as recorded, or else as torch's log has them."""
        from inductor_probe.analysis.fusion.decisions import logged_decisions

        recorded = self.compiled.decisions
        if recorded is not None and "fusion" in recorded.recorders:
            return tuple(one for one in recorded.decisions if one.kind == "fusion")
        return logged_decisions(self.compiled, self.matched_log.log)

    @property
    def short_name(self) -> str:
        """What finds the graph from the working folder: `gpt_block:1`, its name, or its path."""
        from inductor_probe.discovery.discover import name_of

        return name_of(self.run.debug_dir, self.folder, Path.cwd())

    @cached_property
    def times(self) -> Times:
        """How long its loop nests and kernels take: as `probe profile` timed them, else `bench-kernel`."""
        from inductor_probe.analysis.causes.times import Times, times_of

        profile = self.profiled
        return times_of(profile) if profile is not None else Times(self._kernel_seconds())

    @property
    def profiled(self) -> Profile | None:
        """Its last profile; None where it was not profiled, or its code was changed since."""
        from inductor_probe.store.profiles import profile_of_graph

        return profile_of_graph(self.run.path, self.path, self.folder.name)

    @property
    def node_seconds(self) -> dict[str, float]:
        """What each node after fusion takes in a call, where the graph was profiled; else nothing."""
        from inductor_probe.analysis.nodes import node_rows
        from inductor_probe.analysis.profiled import node_seconds

        profile = self.profiled
        return node_seconds(node_rows(self.generated), profile) if profile is not None else {}

    def forget_times(self) -> None:
        """Have `times` read anew: something was measured since."""
        self.__dict__.pop("times", None)

    def _kernel_seconds(self) -> dict[str, float]:
        path = self.path / SAMPLES_NAME
        if not path.exists():
            return {}  # without numpy, which is a third of what such a question takes to start
        from inductor_probe.bench.overheads import overheads_of
        from inductor_probe.store.samples import read_samples

        try:
            processes = read_samples(path).processes
        except ProbeError:
            return {}  # `probe verdict` says what is wrong with it
        timed = [process.overheads for process in processes if process.overheads]
        rows = overheads_of(timed).rows if timed else ()
        return {row.name: row.seconds for row in rows if row.kind == "kernel"}

    @property
    def inputs(self) -> tuple[InputFact, ...]:
        """What the manifest says of the graph's inputs; empty where nothing does."""
        record = self.run.manifest.graph(self.folder.name) if self.run.manifest else None
        return record.inputs if record else ()

    @property
    def constants(self) -> tuple[ConstantFact, ...] | None:
        """What the dump keeps of the graph's constants; None where nothing says so."""
        record = self.run.manifest.graph(self.folder.name) if self.run.manifest else None
        return record.constants if record else None


class RunOnDisk:
    """A `run_*` directory: its graphs in the order of compilation. `Run` makes them, and adds the verbs."""

    graphs: tuple[GraphOnDisk, ...]
    others: tuple[RunOnDisk, ...] = ()  # the further ones of a dump of several processes

    def __init__(self, debug_dir: DebugDir) -> None:
        self.debug_dir = debug_dir

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.debug_dir.path

    @property
    def manifest(self) -> Manifest | None:
        """What `probe dump` wrote down; None for a run that torch made alone."""
        return self.debug_dir.manifest

    @cached_property
    def logs(self) -> CompilerLogs:
        """What the compiler logged: in `probe_logs`, or in `stderr*.txt` and `*.log` in or beside the run."""
        from inductor_probe.reader.logs.run_logs import read_logs

        return read_logs(self.debug_dir)

    @cached_property
    def dump_graphs(self) -> tuple[GraphOnDisk, ...]:
        """The graphs of all processes of the dump, `...@rank1`; of what ranks share only the first's."""
        return tuple(_different_graphs((self, *self.others)))

    @cached_property
    def summary(self) -> RunSummary:
        """The graphs of the dump in numbers, and the remarks about them and about its processes."""
        return _summary_of_dump((self, *self.others), self.dump_graphs)

    def empty(self) -> NotFoundError:
        """Return the error for what is asked of a run without graphs: it says why there are none."""
        from inductor_probe.analysis.run_remarks import why_empty
        from inductor_probe.discovery.inductor_cache import way_to_graphs
        from inductor_probe.report.words.remarks import sentence

        why = why_empty(self.debug_dir)
        if why.code == "compile-failed":
            return NotFoundError(f"{self.path} is an empty run: {sentence(why)}")
        return NotFoundError(
            f"{self.path} is an empty run: {sentence(why)}",
            "`probe dump` a script that calls the compiled function"
            if self.manifest
            else way_to_graphs(self.debug_dir),
        )

    def several_graphs(self) -> AmbiguousError:
        """Return the error for a run where one graph is needed: its hint names each by what finds it."""
        most = 12
        names = [graph.short_name for graph in self.graphs[:most]]
        more = f" and {len(self.graphs) - most} more" if len(self.graphs) > most else ""
        return AmbiguousError(
            f"{self.path} has {len(self.graphs)} graphs: name one", f"one of {', '.join(names)}{more}"
        )


def _different_graphs(runs: Sequence[RunOnDisk]) -> Iterator[GraphOnDisk]:
    """Yield the graphs of all runs of a dump; of those that ranks have in common only the first rank's.

    `runs` are that which stands for the dump, and the others.
    """
    from inductor_probe.analysis.ranks import is_same

    first_rank: dict[str, GraphOnDisk] | None = None
    for run in runs:
        ranked = is_rank(run.debug_dir)
        twins = first_rank if ranked and first_rank is not None else {}
        for graph in run.graphs:
            twin = twins.get(graph.folder.name)
            if twin is None or not is_same(twin.generated, graph.generated):
                yield graph
        if ranked and first_rank is None:
            first_rank = {graph.folder.name: graph for graph in run.graphs}


def _summary_of_dump(runs: Sequence[RunOnDisk], graphs: Sequence[GraphOnDisk]) -> RunSummary:
    """Return `graphs` in numbers, with remarks about each, and about the processes of the dump."""
    from inductor_probe.analysis.ranks import ProcessGraphs, dump_remarks
    from inductor_probe.analysis.run_remarks import failed_compiles
    from inductor_probe.analysis.summary import summarise

    run, *others = runs
    summary = summarise(run.debug_dir, [graph.compiled for graph in graphs])
    if not others and len(runs_of_dump(run.debug_dir)) > 1:
        return summary  # of one process, which was named
    processes = [
        ProcessGraphs(name_of_process(one.debug_dir), process, tuple(graph.generated for graph in one.graphs))
        for one in runs
        if (process := process_of(one.debug_dir))
    ]
    named = {graph.name for graph in graphs}
    failed = (
        remark
        for one in others
        for remark in failed_compiles(one.debug_dir)
        if remark != summary.empty and f"{remark.subject.name}@{name_of_process(one.debug_dir)}" not in named
    )
    remarks = (*dump_remarks(run.debug_dir, processes), *summary.remarks, *failed)
    problems = [problem for one in runs for problem in one.debug_dir.problems]
    return replace(summary, remarks=remarks, problems=tuple(problems))


def causes_of(graph: GraphOnDisk, names: Sequence[str] = (), kinds: Collection[str] = ()) -> GraphCauses:
    """Return what was decided about names of a graph, by torch's log where fusion was not recorded."""
    from inductor_probe.analysis.causes.causes import graph_causes

    recorded = graph.compiled.decisions
    is_recorded = recorded is not None and "fusion" in recorded.recorders
    logged = None if is_recorded or graph.matched_log.log is None else graph.fusion_decisions
    return graph_causes(graph.compiled, names, kinds, graph.times, logged)


def with_compiler(row: GraphCauses, graph: GraphOnDisk) -> GraphCauses:
    """Add what the C++ compiler said of the kernels that a row is about; of a graph, of all."""
    from inductor_probe.store.compiler_remarks import read_remarks

    names = concerned_kernels(row)
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    sources = {kernel.name: kernel.source for kernel in kernels if not row.asked or kernel.name in names}
    try:
        return replace(row, compiler=read_remarks(graph.path, sources))
    except ProbeError as error:
        problem = Problem(error.message, Span(graph.path / REMARKS_NAME, 1, 1))
        return replace(row, problems=(*row.problems, problem))


def concerned_kernels(row: GraphCauses) -> frozenset[str]:
    """Return the names of the kernels that a subject is, or belongs to."""
    asked = {subject.name for subject in row.asked if subject.type == "kernel"}
    return frozenset(asked.union(*(cause.kernels for cause in row.causes)))
