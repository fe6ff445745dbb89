"""Buffers in a table: the dimension that runs fastest, a picture of each layout, and remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import LayoutRow, MemoryFormat
from inductor_probe.notebook.index_picture import fastest_dim, small_picture
from inductor_probe.notebook.outline import slow_readers
from inductor_probe.notebook.page import escaped, page
from inductor_probe.notebook.rich_html import rich_html, table
from inductor_probe.report.remark_lines import remark_lines
from inductor_probe.report.units import bytes_text, dims_text

_TITLES = ("buffer", "dtype", "size", "stride", "format", "in memory", "bytes", "writer", "readers")
_RIGHT = _TITLES.index("bytes")
_COLOURS: dict[MemoryFormat, str] = {
    "channels_last": "green",
    "transposed": "yellow",
    "padded": "yellow",
    "broadcast": "cyan",
    "other": "yellow",
    "unknown": "dim",
}
"""Formats whose chip has a colour."""


def layouts_html(rows: Sequence[LayoutRow]) -> str:
    """Return buffers as a table for each graph."""
    graphs: dict[str, list[LayoutRow]] = {}
    for row in rows:
        graphs.setdefault(row.graph, []).append(row)
    return page(*(part for graph, found in graphs.items() for part in _graph(graph, found)))


def format_chip(row: LayoutRow) -> str:
    """Return the memory format as a small label."""
    colour = _COLOURS.get(row.memory_format, "")
    return f'<span class="ip-chip{f" ip-{colour}" if colour else ""}">{escaped(row.memory_format)}</span>'


def dims_html(dims: Sequence[Dim] | None, fastest: int | None) -> str:
    """Return sizes or strides, that of the dimension that runs fastest in bold."""
    if dims is None:
        return escaped(dims_text(None))
    inside = (escaped(str(dim)) for dim in dims)
    shown = (f'<b class="ip-cyan">{dim}</b>' if at == fastest else dim for at, dim in enumerate(inside))
    return f"[{', '.join(shown)}]"


def _graph(graph: str, rows: Sequence[LayoutRow]) -> Iterator[str]:
    yield f'<div class="ip-bold">{escaped(graph)}</div>'
    head = "".join(f"<th{_right(at)}>{title}</th>" for at, title in enumerate(_TITLES))
    yield table(head, [_row(row) for row in rows])
    remarks = (remark for row in rows for remark in row.remarks)
    yield from map(rich_html, remark_lines(remarks, indent=0))


def _row(row: LayoutRow) -> str:
    layout, fastest = row.layout, fastest_dim(row)
    name = f"<b{' class=ip-red' if row.remarks else ''}>{escaped(row.buffer)}</b>"
    cells = (
        name,
        escaped(layout.dtype if layout and layout.dtype else "?"),
        dims_html(layout.size if layout else None, fastest),
        dims_html(layout.stride if layout else None, fastest),
        format_chip(row),
        small_picture(row),
        escaped(bytes_text(row.size_bytes)),
        escaped(row.producer or row.role),
        _readers(row),
    )
    return "".join(f"<td{_right(at)}>{cell}</td>" for at, cell in enumerate(cells))


def _readers(row: LayoutRow) -> str:
    """Return who reads it; in red who reads it non-contiguously."""
    slow = slow_readers(row)
    names = [
        f'<span class="ip-red">{escaped(name)}</span>' if name in slow else escaped(name)
        for name in dict.fromkeys(access.node for access in row.reads)
    ]
    return ", ".join([*names, *(["OUTPUT"] if row.role == "output" else [])]) or "-"


def _right(at: int) -> str:
    return ' class="ip-right"' if at == _RIGHT else ""
