"""Layouts: a page for one buffer, a table for many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Access, LayoutRow
from inductor_probe.model.record import grouped
from inductor_probe.report.document import (
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Inline,
    Line,
    Name,
    Picture,
    Piece,
    RemarkLine,
    Table,
    name_style,
    place,
    remark_lines,
    source_text,
)
from inductor_probe.report.pages.why import decision_lines
from inductor_probe.report.units import (
    bytes_were,
    bytes_with,
    counted,
    dims_text,
    first_names,
    folded_names,
    symbols_text,
    table_symbols,
)
from inductor_probe.report.words.layouts import (
    format_text,
    generated_text,
    part_text,
    pattern_text,
    unknown_layout,
)
from inductor_probe.report.words.links import origin_text
from inductor_probe.report.words.remarks import sentence

FORMAT_STYLES = {
    "channels_last": "green",
    "transposed": "yellow",
    "padded": "yellow",
    "broadcast": "cyan",
    "other": "yellow",
    "unknown": "dim",
}
_COLUMNS = (
    Column("buffer", fold="never"),
    Column("dtype", fold="never", rank=2),
    Column("size", least=10),
    Column("stride", least=10),
    Column("format", least=10),
    Column("in memory"),
    Column("bytes", right=True, rank=1),
    Column("writer"),
    Column("readers", least=12),
)


def layout_table(rows: Sequence[LayoutRow]) -> Iterator[Block]:
    """Yield the buffers of one or more graphs, a table each, and remarks about them."""
    graphs = grouped(rows, lambda row: row.graph)
    for graph, members in graphs.items():
        yield Heading([(graph, "bold"), f"  {_answer(members)}"])
        if symbols := table_symbols(symbol for row in members for symbol in row.symbols):
            yield Line((symbols, "dim"))
        yield Table(_COLUMNS, [_cells(row) for row in members])
        reasons: dict[str, list[str]] = {}
        for row in members:
            if row.memory_format == "unknown":
                reasons.setdefault(unknown_layout(row), []).append(row.buffer)
        for reason, names in reasons.items():
            yield Line((f"{first_names(names, 6)}: {reason}", "dim"))
        places = {row.producer or row.buffer: _source(row) for row in members}
        remarks = remark_lines((remark for row in members for remark in row.remarks), 2, places=places)
        yield from remarks
        if remarks:
            yield Line()


def _answer(rows: Sequence[LayoutRow]) -> str:
    """`5 buffers: 4 contiguous, 1 channels_last; accessed non-contiguously: arg0_1`."""
    formats = Counter(row.memory_format for row in rows)
    without = formats.pop("none", 0)
    counts = ", ".join(f"{number} {name}" for name, number in formats.most_common())
    counts += f"{', ' if counts else ''}{without} without memory" if without else ""
    remarks = [remark for row in rows for remark in row.remarks if remark.code == "noncontiguous-access"]
    slow = list(dict.fromkeys(str(remark.number("buffer")) for remark in remarks))
    accessed = f"; accessed non-contiguously: {first_names(slow, 6)}" if slow else ""
    return f"{counted(len(rows), 'buffer')}: {counts}{accessed}"


def _cells(row: LayoutRow) -> list[Cell]:
    layout = row.layout
    printed = ["-"] * 3
    if row.memory_format != "none":
        dims = (layout.size, layout.stride) if layout else (None, None)
        printed = [layout.dtype if layout and layout.dtype else "?", *map(dims_text, dims)]
    return [
        (row.buffer, name_style(row.remarks)),
        *printed,
        (format_text(row), FORMAT_STYLES.get(row.memory_format, "")),
        Picture(lambda: _small_picture(row)),
        bytes_were(row.size_bytes, row.recorded_bytes),
        row.producer or (f"argument of {row.subgraph}" if row.subgraph else row.role),
        _readers(row),
    ]


def _small_picture(row: LayoutRow) -> str:
    from inductor_probe.report.plots.index_picture import small_picture  # noqa: PLC0415 - only HTML shows it

    return small_picture(row)


def _readers(row: LayoutRow) -> Inline:
    """Return who reads a buffer; in red who does so non-contiguously, as a remark says."""
    names = list(dict.fromkeys(access.node for access in row.reads))
    if row.role == "output":
        names.append("OUTPUT")
    slow = row.noncontiguous_readers
    if not slow:
        return folded_names(names, f"probe layouts {row.buffer}") or "-"
    pieces: list[Piece] = []
    for name in names:
        pieces += [", "] if pieces else []
        pieces.append((name, "red") if name in slow else name)
    return pieces


def _source(row: LayoutRow) -> str:
    return str(row.origin.source) if row.origin and row.origin.source else ""


def layout_page(row: LayoutRow) -> Iterator[Block]:
    """Yield one buffer: its layout, who writes and reads it and how, where it came from."""
    layout = row.layout
    yield Heading([(row.buffer, "bold"), "  ", (format_text(row, always=True), "cyan")])
    for remark in row.remarks:
        yield RemarkLine(remark.kind, sentence(remark), at=_source(row))
    yield Facts(_facts(row))
    if layout and row.dim_order is not None:
        yield Picture(lambda: _index_picture(row))
    for title, accesses in (("written by", row.writes), ("read by", row.reads)):
        yield from _accesses(title, accesses)
    if row.role == "output":
        yield Line((f"returned by {row.subgraph or 'the graph'}", "bold"))
    yield from decision_lines(row.causes, row.buffer)


def _index_picture(row: LayoutRow) -> str:
    from inductor_probe.report.plots.index_picture import index_picture  # noqa: PLC0415 - only HTML shows it

    return index_picture(row)


def _facts(row: LayoutRow) -> Iterator[tuple[str, str]]:
    layout = row.layout
    if layout:
        device = f" on {layout.device}" if layout.device else ""
        dtype = layout.dtype or ("no dtype" if row.memory_format == "none" else "dtype unknown")
        yield "layout", f"{layout.kind}{device}, {dtype}"
    if layout and row.memory_format != "none":
        yield "size", dims_text(layout.size)
        yield "stride", dims_text(layout.stride) + (f", offset {layout.offset}" if layout.offset else "")
    if layout is None or row.memory_format == "unknown":
        yield "unknown" if layout else "layout", unknown_layout(row)
    local = ", no memory of its own in the wrapper (kernel-local or fused away)" if row.local else ""
    yield "bytes", bytes_with(row.size_bytes, row.recorded_bytes, row.symbols) + local
    yield "symbols", symbols_text(row.symbols)
    yield "role", f"{row.role} of {f'{row.subgraph} in ' if row.subgraph else ''}{row.graph}"
    if row.origin:
        source = f"\n{source_text(row.origin.source)}" if row.origin.source else ""
        yield "from", f"{origin_text(row.origin)}{source}"
    yield "read at", ", ".join(f"{evidence.fact} {place(evidence.span)}" for evidence in row.evidence)


def _accesses(title: str, accesses: Sequence[Access]) -> Iterator[Block]:
    """Accesses that differ only in which indirect value they use are one entry."""
    groups = grouped(accesses, lambda one: (one.node, one.pattern, one.strides, one.ranges, one.generated))
    for members in groups.values():
        access = members[0]
        count = sum(member.count for member in members)
        times = f" {count} times" if count > 1 else ""
        head: list[Piece] = [(f"{title} {access.node}{times}", "bold")]
        head += [" in ", Name(access.kernel)] if access.kernel else []
        yield Line([*head, f" ({place(access.span)})"] if access.span else head)
        yield Facts(_access_facts(access, len(members) - 1))


def _access_facts(access: Access, others: int) -> Iterator[tuple[str, Inline]]:
    generated = access.generated
    contiguous = access.contiguous if generated is None else generated.contiguous
    style = "yellow" if contiguous is False else "green"
    if access.index is not None:
        yield "index", f"{access.index}{f'  (and {others} like it)' if others else ''}"
    text = part_text(access.parts) if access.parts else pattern_text(access.pattern)
    yield "pattern", (text, style if generated is None else "")
    if generated is not None:
        where = f" ({place(generated.span)})" if generated.span else ""
        yield "generated", (f"{generated_text(generated)}{where}", style)
    yield "strides", _strides(access)
    for name, variables in access.indirect:
        depends = f"varies with {', '.join(variables)}" if variables else "does not vary with the loops"
        yield "indirect", f"{name} {depends}"


def _strides(access: Access) -> list[Piece]:
    """`z0 150528 (4 steps)  z1 1 (3 steps) innermost`."""
    ranges = dict(access.ranges)
    pieces: list[Piece] = []
    for name, stride in access.strides:
        text = f"{name} {stride} ({_steps(ranges[name])})"
        pieces += ["  "] if pieces else []
        pieces.append((f"{text} innermost", "bold") if name == access.innermost else text)
    return pieces


def _steps(steps: Dim) -> str:
    return f"{steps} step" if steps == 1 else f"{steps} steps"
