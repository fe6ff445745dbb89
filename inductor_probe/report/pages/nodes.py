"""Scheduler nodes in a table, and the short texts about nodes that other pages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inductor_probe.model.fx import fx_dtype
from inductor_probe.model.links import NodeLink
from inductor_probe.model.nodes import NodeBuffer, NodeRow, Ranges
from inductor_probe.model.record import grouped
from inductor_probe.model.span import own_lines
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, Table
from inductor_probe.report.units import counted, dims_text
from inductor_probe.report.words.layouts import memory_text

AMBIGUOUS = "AMBIGUOUS"
_MOST_NAMES = 3
_MOST_GROUPS = 8
"""Fused nodes that are named below a table; `probe show` names the others."""
_COLUMNS = (
    Column("node", fold="never"),
    Column("does", most=24),
    Column("fused", right=True, rank=1),
    Column("writes", most=40, rank=2),
    Column("loops", most=30, rank=3),
    Column("reads", most=32, rank=4),
    Column("ops", right=True, rank=7),
    Column("users", most=28, rank=8),
    Column("memory", most=28, rank=5),
    Column("from", most=36, fold="path", rank=6),
    Column("kernel", fold="middle", least=18),
)
_FUSED_COLUMNS = (Column("fused", right=True), Column("node", fold="middle"), Column("class", fold="never"))


def node_table(rows: Sequence[NodeRow]) -> Iterator[Block]:
    """Yield the nodes of one or more graphs, a table each."""
    graphs = grouped(rows, lambda row: row.graph)
    for graph, members in graphs.items():
        if graph != rows[0].graph:
            yield Line()
        fused = {row.top: row.top_class for row in members if row.top is not None}
        yield Heading([(graph, "bold"), f"  {_answer(members, len(fused))}"])
        yield _table(members, list(fused))
        names: list[list[Cell]] = [
            [(str(number), "dim"), (Name(top), "dim"), (kind or "", "dim")]
            for number, (top, kind) in enumerate(fused.items(), start=1)
        ]
        yield Table(_FUSED_COLUMNS, names, most=_MOST_GROUPS, more="probe show NODE names its own")
        if any(row.agrees is False for row in members):
            yield Line(("≠  the nodes fused here do not fit into one nest of loops", "dim"))
        if any(kernel_text(row.link).startswith(AMBIGUOUS) for row in members):
            yield Line(("AMBIGUOUS  more than one is possible: see probe show NODE", "dim"))


def _answer(rows: Sequence[NodeRow], fused: int) -> str:
    """`5 nodes (4 pointwise, 1 reduction), 3 of them in 1 fused; 2 kernels`."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in Counter(row.kind for row in rows).most_common())
    inside = f", {sum(row.top is not None for row in rows)} of them in {fused} fused" if fused else ""
    kernels = len({row.link.kernel for row in rows if row.link.kernel is not None})
    in_kernels = f"; {counted(kernels, 'kernel')}" if kernels else ""
    return f"{counted(len(rows), 'node')} ({kinds}){inside}{in_kernels}"


def _table(rows: Sequence[NodeRow], fused: Sequence[str]) -> Table:
    numbers = {top: str(number) for number, top in enumerate(fused, start=1)}
    cells = [_cells(row, numbers) for row in rows]
    empty = {
        index
        for index, column in enumerate(_COLUMNS)
        if column.title in ("fused", "memory") and all(line[index] == "-" for line in cells)
    }
    shown = [index for index in range(len(_COLUMNS)) if index not in empty]
    return Table([_COLUMNS[index] for index in shown], [[line[index] for index in shown] for line in cells])


def _cells(row: NodeRow, fused: dict[str, str]) -> list[Cell]:
    kernel = kernel_text(row.link)
    loops = ranges_text(row.ranges) + (" ≠" if row.agrees is False and row.ranges else "")
    return [
        (row.node, "bold"),
        does(row),
        fused.get(row.top or "", "-"),
        ", ".join(map(buffer_text, row.writes)) or "-",
        loops,
        ", ".join(_few(row.reads)) or "-",
        str(row.op_count) if row.operations else "-",
        ", ".join(_few(row.users)) or "-",
        memory_text(row) or "-",
        _from(row.link),
        (Name(kernel), "yellow" if row.link.kernel is None and kernel != "-" else ""),
    ]


def does(row: NodeRow) -> str:
    """`reduction sum`, `pointwise`, `extern`: what the node does."""
    kinds = tuple(dict.fromkeys(kind.removesuffix("_reduce") for kind in row.reductions))
    return f"{row.kind} {', '.join(kinds)}" if kinds else row.kind


def buffer_text(buffer: NodeBuffer) -> str:
    """`buf3 f32[4, 3]`."""
    layout = buffer.layout
    if layout is None:
        return buffer.name
    if layout.size is None or layout.kind == "NoneLayout":  # which is printed with the size [0]
        return f"{buffer.name} {layout.kind}"
    return f"{buffer.name} {fx_dtype(layout.dtype or '?')}{dims_text(layout.size)}"


def ranges_text(ranges: Ranges | None) -> str:
    """`1024 x 768`, reduced ranges after a bar: `1024 | 768`."""
    if ranges is None:
        return "-"
    outer, reduced = (" x ".join(map(str, dims)) for dims in (ranges.iteration, ranges.reduction))
    return f"{outer or '1'} | {reduced}" if reduced else outer or "1"


def kernel_text(link: NodeLink) -> str:
    """The kernel, or what there is to say instead."""
    if link.kernel is not None:
        return link.kernel
    if link.kernel_candidates:
        return f"{AMBIGUOUS}: {' or '.join(link.kernel_candidates)}"
    return "not linked" if link.is_unlinked else "-"


def _few(names: Sequence[str]) -> list[str]:
    more = [f"+{len(names) - _MOST_NAMES}"] if len(names) > _MOST_NAMES else []
    return [*names[:_MOST_NAMES], *more]


def _from(link: NodeLink) -> str:
    """`check_hflip.py:12 rev`: the first line of the user's, and the FX nodes; `?` when unknown."""
    names = link.fx or link.fx_candidates
    if not names:
        return "?" if not link.fx_proofs and link.kernel is not None else "-"
    sources = own_lines(link.sources)
    line = f"{sources[0].path.rpartition('/')[2]}:{sources[0].line} " if sources else ""
    last = names[-1] if link.fx else AMBIGUOUS
    more = f" +{len(names) - 1}" if link.fx and len(names) > 1 else ""
    return f"{line}{last}{more}"
