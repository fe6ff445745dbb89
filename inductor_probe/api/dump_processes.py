"""The graphs of a dump of several processes as one, and what its summary says of the processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inductor_probe.analysis.ranks import ProcessGraphs, dump_remarks, is_same
from inductor_probe.analysis.summary import summarise
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.discovery.dump_processes import is_rank, name_of_process, process_of, runs_of_dump
from inductor_probe.model.runs import RunSummary


def different_graphs(runs: Sequence[RunOnDisk]) -> Iterator[GraphOnDisk]:
    """Yield the graphs of all runs of a dump; of those that ranks have in common only the first rank's.

    `runs` are that which stands for the dump, and the others.
    """
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


def summary_of_dump(runs: Sequence[RunOnDisk], graphs: Sequence[GraphOnDisk]) -> RunSummary:
    """Return `graphs` in numbers, with remarks about each, and about the processes of the dump."""
    run, *others = runs
    summary = summarise(run.debug_dir, [graph.compiled for graph in graphs])
    if not others and len(runs_of_dump(run.debug_dir)) > 1:
        return summary  # of one process, which was named
    processes = [
        ProcessGraphs(name_of_process(one.debug_dir), process, tuple(graph.generated for graph in one.graphs))
        for one in runs
        if (process := process_of(one.debug_dir))
    ]
    remarks = (*dump_remarks(run.debug_dir, processes), *summary.remarks)
    problems = [problem for one in runs for problem in one.debug_dir.problems]
    return replace(summary, remarks=remarks, problems=tuple(problems))
