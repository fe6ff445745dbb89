"""What a run compiled, in a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from inductor_probe.model.runs import GraphSummary, NextStep, RunSummary
from inductor_probe.report.remark_lines import name_style, remark_line, remark_lines
from inductor_probe.report.units import bytes_text, bytes_were
from inductor_probe.report.words.remarks import sentence
from inductor_probe.report.words.runs import compile_reason

_LONGEST_NAMES = 60
"""Names of nodes that are longer are those of large fused ones: nobody types them."""


def next_text(step: NextStep, target: str) -> str:
    """Return the command of a next step, and why it is that one; an empty `target` is the latest run."""
    where = f" {target}" if target else ""
    match step.kind:
        case "doctor":
            return "probe doctor"
        case "unread":
            return f"probe check{where} (parts of the dump could not be read)"
        case "scalar":
            have = "1 kernel has" if len(step.names) == 1 else f"{len(step.names)} kernels have"
            return f"probe kernels{where} --only scalar ({have} scalar loops)"
        case "apart":
            nodes = " ".join(step.names)
            shared = bytes_text(step.bytes)
            if len(nodes) > _LONGEST_NAMES:
                return f"probe fusion{where} (two nodes share {shared}, and were not fused)"
            return f"probe fusion {nodes}{where} (they share {shared}, and were not fused)"
        case "measure":
            return f"probe bench-kernel{where}"


class SummaryTable:
    """A row per graph, then the remarks about each, and about the run."""

    def __init__(self, summary: RunSummary) -> None:
        self.summary = summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.summary.empty:
            yield Text.assemble(("empty run: ", "bold red"), sentence(self.summary.empty))
        else:
            yield _table(self.summary)
        for graph in self.summary.graphs:
            if graph.problems or graph.remarks:
                yield Text.assemble((graph.graph, "bold"), ":")
            yield from _lines(graph)
        if self.summary.problems or self.summary.remarks:
            yield Text("the run:", style="bold")
        yield from _lines(self.summary)


def _lines(summary: GraphSummary | RunSummary) -> Iterator[RenderableType]:
    yield from (remark_line(str(problem), "hazard") for problem in summary.problems)
    yield from remark_lines(summary.remarks)


def _table(summary: RunSummary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    with_case = any(graph.case for graph in summary.graphs)
    with_why = any(graph.compile_kind not in (None, "first") for graph in summary.graphs)
    table.add_column("graph", overflow="fold")
    if with_case:
        table.add_column("case", overflow="fold")
    if with_why:
        table.add_column("why", overflow="fold")
    table.add_column("nodes", no_wrap=True)
    table.add_column("kernels", no_wrap=True)
    table.add_column("extern", justify="right")
    table.add_column("buffers", justify="right")
    table.add_column("bytes", justify="right", overflow="fold")
    for graph in summary.graphs:
        kernels = ", ".join(f"{count} {backend}" for backend, count in graph.kernels) or "-"
        table.add_row(
            Text(graph.graph, style="bold red" if graph.problems else name_style(graph.remarks)),
            *([graph.case or "-"] if with_case else []),
            *([compile_reason(graph) or "-"] if with_why else []),
            f"{graph.nodes_before} -> {graph.nodes_after}",
            kernels,
            str(graph.externs),
            str(graph.buffers),
            bytes_were(graph.buffer_bytes, graph.recorded_bytes),
        )
    return table
