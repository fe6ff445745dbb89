"""A graph in outline: what goes in and out, what runs, and the remarks about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.nodes import NodeBuffer
from inductor_probe.model.pages import GraphPage, SourceTrace
from inductor_probe.model.runs import GraphSummary
from inductor_probe.report.columns import GAP, Cell, Column, Columns
from inductor_probe.report.facts import facts, names
from inductor_probe.report.kernels import how
from inductor_probe.report.nodes import buffer_text
from inductor_probe.report.remark_lines import name_style, remark_line
from inductor_probe.report.units import bytes_were, bytes_with, counted, shorten, symbols_text
from inductor_probe.report.words.remarks import folded
from inductor_probe.report.words.runs import compile_reason

_MOST_BUFFERS = 6
_MOST_KERNELS = 12
_MOST_LINES = 10
_MOST_REMARKS = 8
_PIPE = 1000
_SHORTEST = 20


class GraphPageText:
    """A graph on a page that fits a screen: of much, the first and how much more there is."""

    def __init__(self, page: GraphPage) -> None:
        self.page = page

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page, width = self.page, options.max_width
        record = page.recorded
        made = [f"torch {page.torch_version}" if page.torch_version else "", compile_reason(page.summary)]
        made += [f"case {record.case}" if record and record.case else ""]
        yield Text.assemble((page.graph, "bold"), "  ", (", ".join(text for text in made if text), "cyan"))
        yield facts(
            [
                ("inputs", _buffers(page.inputs)),
                ("sizes", symbols_text(page.symbols) or names(page.sizes)),
                ("outputs", _buffers(page.outputs)),
                ("nodes", _nodes(page)),
                ("fused", _fused(page, width)),
                ("allocates", _allocates(page)),
                ("not linked", names(page.unlinked)),
                ("not read", counted(page.problems, "part") if page.problems else ""),
            ]
        )
        if page.kernels:
            yield Text("kernels", style="bold")
            yield from _kernels(page.kernels, width)
        installed = [trace for trace in page.lines if trace.line.installed]
        own = [trace for trace in page.lines if not trace.line.installed]
        for title, traces in (("from your lines", own), ("from lines of installed packages", installed)):
            if traces:
                yield Text(title, style="bold")
                yield from _lines(traces, width)
        yield from _remarks(page.summary, width)


def _buffers(rows: Sequence[LayoutRow]) -> str:
    shown = [
        f"{buffer_text(NodeBuffer(row.buffer, row.layout))}{_format(row)}" for row in rows[:_MOST_BUFFERS]
    ]
    more = [f"and {len(rows) - _MOST_BUFFERS} more"] if len(rows) > _MOST_BUFFERS else []
    return ", ".join([*shown, *more])


def _format(row: LayoutRow) -> str:
    return "" if row.memory_format in ("contiguous", "unknown") else f" {row.memory_format}"


def _nodes(page: GraphPage) -> str:
    kinds = ", ".join(f"{number} {kind}" for kind, number in page.kinds)
    before, after = page.summary.nodes_before, page.summary.nodes_after
    return f"{before} before fusion, {after} after{f': {kinds}' if kinds else ''}"


def _fused(page: GraphPage, width: int) -> str:
    if not page.fused:
        return ""
    largest = sorted(page.fused, key=lambda node: -node.nodes)[:3]
    room = max((width - 40) // len(largest), 12)
    shown = ", ".join(f"{shorten(node.name, room)} ({node.nodes})" for node in largest)
    more = f" and {len(page.fused) - len(largest)} more" if len(page.fused) > len(largest) else ""
    return f"{shown}{more}"


def _allocates(page: GraphPage) -> str:
    if not page.summary.buffers:
        return ""
    summary = page.summary
    size = bytes_with(summary.buffer_bytes, summary.recorded_bytes, page.symbols)
    return f"{size} in {counted(page.summary.buffers, 'buffer')}"


def _kernels(rows: Sequence[KernelRow], width: int) -> Iterator[RenderableType]:
    most = len(rows) if width >= _PIPE else _MOST_KERNELS
    largest = sorted(rows, key=_weight)[:most]
    shown = [row for row in rows if row in largest]
    titles = ("how", "nodes", "reads", "writes", "calls")
    others = [
        (
            how(row),
            _first(row.nodes),
            bytes_were(row.bytes_read, row.recorded_read),
            bytes_were(row.bytes_written, row.recorded_written),
            str(len(row.launches)),
        )
        for row in shown
    ]
    room = max(width - _taken((titles, *others)), _SHORTEST)
    cells: list[Sequence[Cell]] = [
        ((shorten(row.name, room), name_style(row.remarks)), *texts)
        for row, texts in zip(shown, others, strict=True)
    ]
    columns = [Column(title, folds=at > 0) for at, title in enumerate(("kernel", *titles))]
    yield Columns(columns, cells, indent=2)
    if len(shown) < len(rows):
        yield Text(f"  and {len(rows) - len(shown)} more: probe kernels", style="dim")


def _taken(rows: Sequence[Sequence[str]]) -> int:
    """Return the width that columns need, the gaps before them and the indentation included."""
    return GAP + sum(GAP + max(map(len, column)) for column in zip(*rows, strict=True))


def _weight(row: KernelRow) -> int:
    sizes = [row.recorded_read or row.bytes_read, row.recorded_written or row.bytes_written]
    return -sum(size for size in sizes if isinstance(size, int))


def _lines(traces: Sequence[SourceTrace], width: int) -> Iterator[RenderableType]:
    shown = traces if width >= _PIPE else traces[:_MOST_LINES]
    cells = [
        (f"{trace.line.path.rpartition('/')[2]}:{trace.line.line}", _first(trace.fx), _first(trace.nodes))
        for trace in shown
    ]
    room = max(width - _taken([("line", "FX nodes", "nodes"), *cells]), _SHORTEST)
    rows: list[Sequence[Cell]] = [
        (place, shorten(trace.line.code, room), fx, nodes)
        for trace, (place, fx, nodes) in zip(shown, cells, strict=True)
    ]
    columns = (Column("line", path=True), Column("code"), Column("FX nodes"), Column("nodes"))
    yield Columns(columns, rows, indent=2)
    if len(shown) < len(traces):
        yield Text(f"  and {len(traces) - len(shown)} more", style="dim")


def _first(found: Sequence[str]) -> str:
    """`op0 +3`."""
    if not found:
        return "-"
    return found[0] if len(found) == 1 else f"{found[0]} +{len(found) - 1}"


def _remarks(summary: GraphSummary, width: int) -> Iterator[RenderableType]:
    lines = [*(("hazard", str(problem)) for problem in summary.problems), *folded(summary.remarks)]
    shown = lines if width >= _PIPE else lines[:_MOST_REMARKS]
    if lines:
        yield Text("remarks", style="bold")
    for kind, text in shown:
        yield remark_line(text, kind)
    if len(shown) < len(lines):
        yield Text(f"  and {len(lines) - len(shown)} more: probe show --json", style="dim")
