"""Whether a dump is whole, in words and in JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.check import DumpCheck, FileCheck
from inductor_probe.model.span import Problem
from inductor_probe.report.look import look
from inductor_probe.report.units import counted

_MOST_NAMES = 12


def check_json(check: DumpCheck) -> dict[str, Any]:
    """Return the check with stable keys, ready for `json.dumps`.

    `whole` says that nothing is wrong and everything was read or checked; `sound` that nothing is wrong as
    far as was read and checked. `graphs`, `nodes` (unfused), `kernels`, `launches`, `lines`, `unread_lines`
    and `unlinked_nodes` are counts; `files` has an object for each kind of file with `kind`, `files`,
    `lines`, and the lines that were `read`, `checked`, are `comments` (or empty), were only `counted`, or are
    `unread`; `unopened` are files that nothing reads; `problems` are objects with `path`, `line` (None when
    not of one line), `last_line` and `message`; `empty_graphs` are folders of graphs that compute nothing;
    `notes` say what torch did not write; `unlinked` names nodes as `graph folder:node`.
    """
    return {
        "whole": check.whole,
        "sound": check.sound,
        "graphs": len(check.graphs),
        "nodes": check.nodes,
        "kernels": check.kernels,
        "launches": check.launches,
        "lines": check.lines,
        "unread_lines": check.unread_lines,
        "unlinked_nodes": check.unlinked_nodes,
        "files": [asdict(file) for file in check.files],
        "unopened": [str(path) for path in check.unopened],
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
    """The verdict in one line, what was read of each kind of file, then every problem."""

    def __init__(self, check: DumpCheck) -> None:
        self.check = check

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        check = self.check
        runs = f" and {counted(len(check.logs), 'log')}" if check.logs else ""
        yield Text.assemble(
            _verdict(check),
            f": {counted(len(check.graphs), 'graph')}{runs}, {counted(check.nodes, 'node')}, "
            f"{counted(check.kernels, 'kernel')}, {counted(check.launches, 'launch', 'launches')}, "
            f"{_lines(check.total)}",
        )
        if check.sound and not check.whole:
            yield Text(f"not called whole: {_unseen(check)}", overflow="fold")
        if check.empty_graphs:
            folders = counted(len(check.empty_graphs), "graph folder is empty", "graph folders are empty")
            yield Text(f"{folders}: inductor makes one before it sees that the graph computes nothing")
        if check.unread_lines:
            yield look(f"{counted(check.unread_lines, 'line')} not understood")
        if check.unlinked_nodes:
            yield look(f"{counted(check.unlinked_nodes, 'node')} without a proved kernel")
        for file in check.files:
            yield Text(f"  {file.kind}: {_lines(file)}", style="dim", overflow="fold")
        yield from _problems(check)


def _verdict(check: DumpCheck) -> Text:
    if check.whole:
        return Text("whole", style="bold green")
    return Text("no problem", style="bold green") if check.sound else Text("not whole", style="bold red")


def _lines(file: FileCheck) -> str:
    """`300 lines (200 read, 80 checked, 20 comments or empty)`."""
    parts = (
        (file.read, "read"),
        (file.checked, "checked"),
        (file.comments, "comments or empty"),
        (file.counted, "only counted"),
        (file.unread, "not understood"),
    )
    detail = ", ".join(f"{number:,} {what}" for number, what in parts if number)
    return f"{counted(file.lines, 'line')} ({detail})" if detail else counted(file.lines, "line")


def _unseen(check: DumpCheck) -> str:
    """Say what was neither read nor checked."""
    parts = [
        f"{counted(file.counted, 'line')} of {file.kind} only counted" for file in check.files if file.counted
    ]
    names = Counter(path.name for path in check.unopened)
    parts.extend(
        f"{name} not opened" + (f" ({count} times)" if count > 1 else "") for name, count in names.items()
    )
    return ", ".join(parts)


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
