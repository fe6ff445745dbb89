"""Whether a dump is whole, in words and in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.check import DumpCheck
from inductor_probe.model.span import Problem
from inductor_probe.report.look import look
from inductor_probe.report.units import counted

_MOST_NAMES = 12


def check_json(check: DumpCheck) -> dict[str, Any]:
    """Return the check with stable keys, ready for `json.dumps`.

    `graphs`, `nodes` (unfused), `kernels`, `launches`, `lines`, `unread_lines` and `unlinked_nodes` are
    counts; `problems` are objects with `path`, `line` (None when not of one line), `last_line` and
    `message`; `empty_graphs` are folders of graphs that compute nothing; `notes` say what torch did not
    write; `unlinked` names nodes as `graph folder:node`.
    """
    return {
        "graphs": len(check.graphs),
        "nodes": check.nodes,
        "kernels": check.kernels,
        "launches": check.launches,
        "lines": check.lines,
        "unread_lines": check.unread_lines,
        "unlinked_nodes": check.unlinked_nodes,
        "problems": [problem_json(problem) for problem in check.problems],
        "empty_graphs": [str(folder) for folder in check.empty_graphs],
        "notes": [f"{graph.graph}: {note}" for graph in check.graphs for note in graph.notes],
        "unlinked": [f"{graph.graph}:{node}" for graph in check.graphs for node in graph.unlinked],
    }


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem with the keys `path`, `line`, `last_line` and `message`."""
    span = problem.span
    return {
        "path": str(span.path) if span else None,
        "line": span.first if span else None,
        "last_line": span.last if span else None,
        "message": problem.message,
    }


class CheckText:
    """What was read in one line, then every problem."""

    def __init__(self, check: DumpCheck) -> None:
        self.check = check

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        check = self.check
        verdict = Text("whole", style="bold green") if check.whole else Text("not whole", style="bold red")
        runs = f" and {counted(len(check.logs), 'log')}" if check.logs else ""
        yield Text.assemble(
            verdict,
            f": {counted(len(check.graphs), 'graph')}{runs}, {counted(check.nodes, 'node')}, "
            f"{counted(check.kernels, 'kernel')}, {counted(check.launches, 'launch', 'launches')}, "
            f"{counted(check.lines, 'line')} read",
        )
        if check.empty_graphs:
            folders = counted(len(check.empty_graphs), "graph folder is empty", "graph folders are empty")
            yield Text(f"{folders}: inductor makes one before it sees that the graph computes nothing")
        if check.unread_lines:
            yield look(f"{counted(check.unread_lines, 'line')} not understood")
        if check.unlinked_nodes:
            yield look(f"{counted(check.unlinked_nodes, 'node')} without a proved kernel")
        yield from _problems(check)


def _problems(check: DumpCheck) -> Iterator[Text]:
    if check.problems or any(graph.unlinked or graph.notes for graph in check.graphs):
        yield Text()
    for problem in check.problems:
        yield Text(str(problem), overflow="fold")
    for graph in check.graphs:
        for note in graph.notes:
            yield Text(f"{graph.graph}: {note}", style="dim", overflow="fold")
        if graph.unlinked:
            names = ", ".join(graph.unlinked[:_MOST_NAMES])
            more = len(graph.unlinked) - _MOST_NAMES
            rest = f" and {more} more (--json lists all)" if more > 0 else ""
            yield Text(f"{graph.graph}: no kernel could be linked to {names}{rest}", overflow="fold")
