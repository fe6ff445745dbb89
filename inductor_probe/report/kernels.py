"""Kernels in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.code import CppFacts, TritonFacts
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.span import own_lines
from inductor_probe.report.columns import GAP, Cell, Column, Columns, not_shown
from inductor_probe.report.remark_lines import name_style, remark_lines
from inductor_probe.report.units import bytes_were, counted, shorten, table_symbols

_WIDE = 120
"""Columns from which the table has room for more than what is asked for most."""
_SHORTEST = 22
"""Columns that a kernel's name gets at least."""
_PIPE = 1000
"""From this width on nothing is cut: it is a pipe."""
_MANY = 3

_KINDS = {"persistent_reduction": "persistent", "user_autotune": "user's own"}
"""Heuristics by the words that fit into a column."""


class KernelTable:
    """The kernels of one or more graphs, a table each; columns are left out where there is no room."""

    def __init__(self, rows: Sequence[KernelRow]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        groups: dict[str, list[KernelRow]] = {}
        for row in self.rows:
            groups.setdefault(row.graph, []).append(row)
        for at, (graph, rows) in enumerate(groups.items()):
            if at:
                yield Text()
            yield Text.assemble((graph, "bold"), f"  {_counts(rows)}")
            if symbols := table_symbols(symbol for row in rows for symbol in row.symbols):
                yield Text(symbols, style="dim")
            table, left_out = _table(rows, options.max_width)
            yield table
            if left_out:
                yield not_shown(left_out, options.max_width)
            yield from remark_lines(remark for row in rows for remark in row.remarks)


def _counts(rows: Sequence[KernelRow]) -> str:
    generated = sum(row.backend != "extern" for row in rows)
    calls = sum(len(row.launches) for row in rows if row.backend == "extern")
    parts = [counted(generated, "kernel"), counted(calls, "library call")]
    return ", ".join(part for part, number in zip(parts, (generated, calls), strict=True) if number)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table. `wide` ones are left out where there is no room; none is wider than `most`."""

    title: str
    cell: Callable[[KernelRow], str]
    wide: bool = False
    right: bool = False
    most: int = 24
    path: bool = False


def _columns() -> tuple[_Column, ...]:
    return (
        _Column("how", how),
        _Column("nodes", lambda row: str(len(row.nodes)) if row.nodes else "?", right=True),
        _Column("computes", _ops, wide=True, most=28),
        _Column("loads", lambda row: _number(row.loads), wide=True, right=True),
        _Column("stores", lambda row: _number(row.stores), wide=True, right=True),
        _Column("reads", _read, right=True, most=14),
        _Column("writes", _written, right=True, most=14),
        _Column("calls", lambda row: str(len(row.launches)), right=True),
        _Column("from", _from, wide=True, most=30, path=True),
    )


def _table(rows: Sequence[KernelRow], width: int) -> tuple[Columns, list[str]]:
    """Return the table, and the titles of columns that it has no room for."""
    # A wide column that has nothing to tell in this graph only takes room from the names.
    told = [each for each in _columns() if not each.wide or any(each.cell(row) != "-" for row in rows)]
    columns = [column for column in told if width >= _WIDE or not column.wide]
    cells = [[column.cell(row) for column in columns] for row in rows]
    taken = sum(
        GAP + min(max(len(column.title), *(len(line[at]) for line in cells)), column.most)
        for at, column in enumerate(columns)
    )
    room = max(width - taken, _SHORTEST)
    shown = [
        Column("kernel", folds=False),
        *(
            Column(column.title, column.right, None if width >= _PIPE else column.most, path=column.path)
            for column in columns
        ),
    ]
    lines = [[_name(row, room), *line] for row, line in zip(rows, cells, strict=True)]
    return Columns(shown, lines), [column.title for column in told if column not in columns]


def _name(row: KernelRow, room: int) -> Cell:
    style = name_style(row.remarks) if row.remarks or row.backend != "extern" else ""
    return shorten(row.name, room), style


def how(row: KernelRow) -> str:
    """Return the kernel's kind in a few words: `C++, 2 of 3 vectorised`, `persistent INNER`, `fallback`."""
    match row.details:
        case CppFacts(nests=nests) as facts:
            kind = "C++ template" if row.kind == "template" else "C++"
            vectorised, scalar = facts.count("vectorised"), facts.count("scalar")
            if not nests:
                return f"{kind}, no loop"
            return f"{kind}, {vectorised}/{vectorised + scalar} vec"
        case TritonFacts() as facts:
            words = [_KINDS.get(row.kind, row.kind.replace("_", " "))]
            words += [word for word in (facts.reduction_hint, facts.tile_hint) if word]
            words += ["int64"] if facts.index_width == "int64" else []
            return " ".join(words)
    return row.kind if row.backend == "extern" else row.backend


def _ops(row: KernelRow) -> str:
    names = [name.removeprefix("aten.").removeprefix("prims.") for name in row.ops]
    more = f" +{len(names) - _MANY}" if len(names) > _MANY else ""
    return ", ".join(names[:_MANY]) + more or "-"


def _from(row: KernelRow) -> str:
    sources = own_lines(row.sources)
    if not sources:
        return "-"
    first = sources[0]
    more = f" +{len(sources) - 1}" if len(sources) > 1 else ""
    return f"{first.path.rpartition('/')[2]}:{first.line}{more}"


def _read(row: KernelRow) -> str:
    return bytes_were(row.bytes_read, row.recorded_read)


def _written(row: KernelRow) -> str:
    return bytes_were(row.bytes_written, row.recorded_written)


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)
