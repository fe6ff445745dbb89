"""Read every graph below some folders: how fast, what is not understood or not linked, and what crashes.

    python -m benchmarks.sweeps.read PATH...

What is wrong is grouped by the form of its message, the most frequent first, each with one place. The exit
status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.links import links
from inductor_probe.discovery.walk import everything_below
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir, GraphDir
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.reader.debug_dir import read_graph, texts_of

# Names and numbers that differ from graph to graph, though what is wrong is the same.
_VARYING = re.compile(r"""'[^']*'|"[^"]*"|/[\w./-]+|[A-Za-z_]*\d\w*(?=\b)""")
MB = 1e6


@dataclass
class Totals:
    """What was counted; `forms` are the kinds of trouble, with how often and one place."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    forms: dict[str, tuple[int, str]] = field(default_factory=dict)
    seconds: float = 0.0
    linking: float = 0.0

    def trouble(self, form: str, place: str) -> None:
        """Count one thing that is wrong."""
        count, first = self.forms.get(form, (0, place))
        self.forms[form] = (count + 1, first)


def main() -> None:
    """Read what lies below the paths, and print the counts and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    totals = Totals()
    for run, folder in _graphs(parser.parse_args().paths, totals):
        try:
            _read(run, folder, totals)
        except Exception as error:  # the reader must not fail on any dump: that is what is looked for
            totals.trouble(f"TRACEBACK {_raised(error)}", str(folder.path))
    _print(totals)
    sys.exit(1 if totals.forms else 0)


def _graphs(paths: list[Path], totals: Totals) -> Iterator[tuple[DebugDir, GraphDir]]:
    for path in paths:
        below = everything_below(path)
        for problem in below.problems:
            totals.trouble(_form(problem.message), str(problem))
        for run in below:
            totals.counts["runs"] += 1
            for problem in run.problems:
                totals.trouble(_form(problem.message), str(problem))
            yield from ((run, folder) for folder in run.graphs)


def _read(run: DebugDir, folder: GraphDir, totals: Totals) -> None:
    counts = totals.counts
    begin = time.process_time()
    graph = read_graph(folder, run.manifest)
    read = time.process_time()
    linked = links(graph)
    totals.linking += time.process_time() - read
    totals.seconds += read - begin
    found = check_graph(graph, texts_of(graph))
    counts["graphs"] += 1
    counts["bytes"] += sum(file.path.stat().st_size for file in graph.files)
    for file in found.files:
        counts["lines"] += file.lines
        counts["lines not read"] += file.unread
    counts["nodes"] += found.nodes
    counts["kernels"] += found.kernels
    counts["launches"] += found.launches
    counts["library calls"] += len(graph.code.externs) if graph.code else 0
    for link in linked.nodes.values():
        counts["nodes with several kernels possible"] += bool(link.kernel_candidates)
        counts["nodes with their FX nodes proved"] += bool(link.fx)
        counts["nodes with several FX nodes possible"] += bool(link.fx_candidates)
    kernels = {name for link in linked.nodes.values() for name in (link.kernel, *link.kernel_candidates)}
    for launch in graph.code.launches if graph.code else ():
        if launch.kernel not in kernels:
            totals.trouble("LAUNCHED WITHOUT A NODE", f"{launch.kernel} at {launch.span}")
    for problem in found.problems:
        totals.trouble(_form(problem.message), str(problem))
    leaves = {leaf.name: leaf for top in graph.nodes for leaf in top.leaves()}
    totals.kinds.update(leaf.kind for leaf in leaves.values())
    for name in found.unlinked:
        totals.trouble(f"UNLINKED {_what(leaves[name])}", f"{name} in {_place(graph, leaves[name])}")


def _raised(error: Exception) -> str:
    """Say what was raised, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {error} at {last.filename}:{last.lineno}"


def _what(node: SchedulerNode) -> str:
    """Say what kind of node it is, in the words of the dump."""
    data = "/".join(dict.fromkeys(buffer.kind or "?" for buffer in node.outputs)) or "no buffer"
    return f"{node.kind} {data} {'with' if node.body else 'without'} loop body"


def _place(graph: CompiledGraph, node: SchedulerNode) -> str:
    return str(node.span or graph.folder.path)


def _form(message: str) -> str:
    return _VARYING.sub("~", message)


def _print(totals: Totals) -> None:
    counts = totals.counts
    for name, count in counts.items():
        print(f"{count:>12,} {name}")
    if totals.seconds:
        rate = counts["bytes"] / MB / totals.seconds
        print(f"read in {totals.seconds:.1f} s ({rate:.1f} MB/s), linked in {totals.linking:.1f} s")
    print("nodes: " + ", ".join(f"{count} {kind}" for kind, count in totals.kinds.most_common()))
    print(f"{len(totals.forms)} forms of trouble" if totals.forms else "everything was read and linked")
    for form, (count, place) in sorted(totals.forms.items(), key=lambda item: -item[1][0]):
        print(f"\n{count} times: {form}\n    {place}")


if __name__ == "__main__":
    main()
