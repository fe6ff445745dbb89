"""Whether a dump is whole, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.check import DumpCheck, FileCheck
from inductor_probe.report.remark_lines import remark_line
from inductor_probe.report.units import counted
from inductor_probe.report.words.remarks import sentence

_MOST_NAMES = 12


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
            yield remark_line(f"{counted(check.unread_lines, 'line')} not understood", "hazard")
        if check.unlinked_nodes:
            yield remark_line(f"{counted(check.unlinked_nodes, 'node')} without a proved kernel", "hazard")
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
    if check.problems or any(graph.unlinked or graph.remarks for graph in check.graphs):
        yield Text()
    for problem in check.problems:
        yield Text(str(problem), overflow="fold")
    for graph in check.graphs:
        for remark in graph.remarks:
            yield Text(f"{graph.graph}: {sentence(remark)}", style="dim", overflow="fold")
        if graph.unlinked:
            names = ", ".join(graph.unlinked[:_MOST_NAMES])
            more = len(graph.unlinked) - _MOST_NAMES
            rest = f" and {more} more (--json lists all)" if more > 0 else ""
            yield Text(f"{graph.graph}: no kernel could be linked to {names}{rest}", overflow="fold")
