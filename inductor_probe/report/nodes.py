"""Scheduler nodes in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from inductor_probe.model.fx import fx_dtype
from inductor_probe.model.links import NodeLink
from inductor_probe.model.nodes import NodeBuffer, NodeRow, Ranges
from inductor_probe.model.span import own_lines
from inductor_probe.report.columns import Cell, Column, Columns, not_shown
from inductor_probe.report.units import counted, dims_text, shorten
from inductor_probe.report.words.layouts import memory_text

_PIPE = 1000
"""From this width on nothing is cut: it is a pipe."""
_SHORTEST = 18
"""Columns that a kernel's name gets at least."""
_MANY = 3
_MOST_GROUPS = 8
"""Fused nodes that are named below a table; `probe show` names the others."""
AMBIGUOUS = "AMBIGUOUS"


class NodeTable:
    """The nodes of one or more graphs, a table each; columns are left out where there is no room."""

    def __init__(self, rows: Sequence[NodeRow]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        groups: dict[str, list[NodeRow]] = {}
        for row in self.rows:
            groups.setdefault(row.graph, []).append(row)
        for at, (graph, rows) in enumerate(groups.items()):
            if at:
                yield Text()
            yield Text.assemble((graph, "bold"), f"  {_counts(rows)}")
            table, left_out = _table(rows, options.max_width)
            yield table
            if left_out:
                yield not_shown(left_out, options.max_width)
            yield from _notes(rows, options.max_width)


def _counts(rows: Sequence[NodeRow]) -> str:
    fused = {row.top for row in rows if row.top is not None}
    text = counted(len(rows), "node")
    return (
        f"{text}, {sum(row.top is not None for row in rows)} of them in {len(fused)} fused" if fused else text
    )


def _notes(rows: Sequence[NodeRow], width: int) -> Iterator[RenderableType]:
    groups = dict.fromkeys((row.top, row.top_class) for row in rows if row.top is not None)
    if width < _PIPE and 0 < len(groups) <= _MOST_GROUPS:
        for at, (top, kind) in enumerate(groups, start=1):
            name = shorten(str(top), max(width - len(f"fused {at}  {kind}") - 2, _SHORTEST))
            yield Text(f"fused {at}  {name}  {kind}", style="dim")
    if any(row.agrees is False for row in rows):
        yield Text("≠  the nodes fused here do not fit into one nest of loops", style="dim")
    if any(kernel_text(row.link).startswith(AMBIGUOUS) for row in rows):
        yield Text("AMBIGUOUS  more than one is possible: see probe show NODE", style="dim")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table.

    `rank` says how much it is missed: where there is no room, columns are left out from the highest rank on.
    """

    title: str
    cell: Callable[[NodeRow], str]
    rank: int = 0
    right: bool = False
    most: int = 40
    path: bool = False


def _columns(rows: Sequence[NodeRow], pipe: bool) -> list[_Column]:
    groups = {
        top: str(at) for at, top in enumerate(dict.fromkeys(row.top for row in rows if row.top), start=1)
    }
    columns = [
        _Column("does", does, most=24),
        _Column(
            "fused", lambda row: (row.top if pipe else groups.get(row.top or "")) or "-", 1, right=not pipe
        ),
        _Column("writes", lambda row: ", ".join(map(buffer_text, row.writes)) or "-", 1),
        _Column("loops", _loops, 2, most=30),
        _Column("reads", lambda row: ", ".join(_few(row.reads)) or "-", 6, most=32),
        _Column("ops", lambda row: str(row.op_count) if row.operations else "-", 3, right=True),
        _Column("users", lambda row: ", ".join(_few(row.users)) or "-", 7, most=28),
        _Column("memory", lambda row: memory_text(row) or "-", 4, most=28),
        _Column("from", lambda row: from_text(row.link), 5, most=36, path=True),
    ]
    told = {"fused": bool(groups), "memory": any(memory_text(row) for row in rows)}
    return [column for column in columns if told.get(column.title, True)]


def _table(rows: Sequence[NodeRow], width: int) -> tuple[Columns, list[str]]:
    """Return the table, and the titles of columns that it has no room for."""
    pipe = width >= _PIPE
    columns = _columns(rows, pipe)
    cells = [[column.cell(row) for column in columns] for row in rows]
    widths = [
        2 + min(max(len(column.title), *(len(line[at]) for line in cells)), column.most)
        for at, column in enumerate(columns)
    ]
    first = 2 + max(len("node"), *(len(row.node) for row in rows))
    kernels = [kernel_text(row.link) for row in rows]
    wanted = min(max(map(len, kernels)), _SHORTEST)
    kept = sorted(range(len(columns)), key=lambda at: columns[at].rank)
    while len(kept) > 1 and not pipe and first + sum(widths[at] for at in kept) + wanted > width:
        kept.pop()
    kept.sort()
    room = width if pipe else max(width - first - sum(widths[at] for at in kept), _SHORTEST)
    shown = [
        Column("node", folds=False),
        *(
            Column(column.title, column.right, None if pipe else column.most, path=column.path)
            for column in (columns[at] for at in kept)
        ),
        Column("kernel", folds=False),
    ]
    lines: list[list[Cell]] = [
        [(row.node, "bold"), *(line[at] for at in kept), _kernel(row.link, room)]
        for row, line in zip(rows, cells, strict=True)
    ]
    return Columns(shown, lines), [column.title for at, column in enumerate(columns) if at not in kept]


def does(row: NodeRow) -> str:
    """`reduction sum`, `pointwise`, `extern`: what the node does."""
    kinds = tuple(dict.fromkeys(kind.removesuffix("_reduce") for kind in row.reductions))
    return f"{row.kind} {', '.join(kinds)}" if kinds else row.kind


def buffer_text(buffer: NodeBuffer) -> str:
    """`buf3 f32[4, 3]`."""
    layout = buffer.layout
    if layout is None:
        return buffer.name
    if layout.size is None:
        return f"{buffer.name} {layout.kind}"
    return f"{buffer.name} {fx_dtype(layout.dtype or '?')}{dims_text(layout.size)}"


def ranges_text(ranges: Ranges | None) -> str:
    """`1024 x 768`, reduced ranges after a bar: `1024 | 768`."""
    if ranges is None:
        return "-"
    outer, reduced = (" x ".join(map(str, dims)) for dims in (ranges.iteration, ranges.reduction))
    return f"{outer or '1'} | {reduced}" if reduced else outer or "1"


def _loops(row: NodeRow) -> str:
    return ranges_text(row.ranges) + (" ≠" if row.agrees is False and row.ranges else "")


def _few(names: Sequence[str]) -> list[str]:
    more = [f"+{len(names) - _MANY}"] if len(names) > _MANY else []
    return [*names[:_MANY], *more]


def from_text(link: NodeLink) -> str:
    """`check_hflip.py:12 rev`: the first line of the user's, and the FX nodes; `?` when nothing tells."""
    names = link.fx or link.fx_candidates
    if not names:
        return "?" if not link.fx_proofs and link.kernel is not None else "-"
    sources = own_lines(link.sources)
    place = f"{sources[0].path.rpartition('/')[2]}:{sources[0].line} " if sources else ""
    last = names[-1] if link.fx else AMBIGUOUS
    more = f" +{len(names) - 1}" if link.fx and len(names) > 1 else ""
    return f"{place}{last}{more}"


def kernel_text(link: NodeLink) -> str:
    """The kernel, or what there is to say instead."""
    if link.kernel is not None:
        return link.kernel
    if link.kernel_candidates:
        return f"{AMBIGUOUS}: {' or '.join(link.kernel_candidates)}"
    return "not linked" if link.is_unlinked else "-"


def _kernel(link: NodeLink, room: int) -> tuple[str, str]:
    text = kernel_text(link)
    missing = link.kernel is None and text != "-"
    return shorten(text, room), "yellow" if missing else ""
