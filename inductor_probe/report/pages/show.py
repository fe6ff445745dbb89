"""The page about one name: a graph, a node, a buffer, an FX node or a line of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import WeakDep
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.layouts import Access, LayoutRow, Pattern
from inductor_probe.model.links import KernelFx, NodeLink
from inductor_probe.model.nodes import NodeBuffer, NodeRow
from inductor_probe.model.pages import (
    Absence,
    BufferPage,
    CollectiveRow,
    GraphPage,
    NodePage,
    NodePart,
    PageRecord,
    SourceTrace,
    TracePage,
)
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import SourceLine, own_lines
from inductor_probe.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Facts,
    Fold,
    FormulaBlock,
    Heading,
    Inline,
    Line,
    Name,
    Piece,
    RemarkLine,
    Table,
    first_place,
    name_style,
    place,
    remark_lines,
    source_text,
)
from inductor_probe.report.pages.kernels import first_of, how, kernel_page
from inductor_probe.report.pages.layouts import layout_page
from inductor_probe.report.pages.nodes import AMBIGUOUS, buffer_text, does, kernel_text, ranges_text
from inductor_probe.report.pages.why import cause_sentence, decision_lines
from inductor_probe.report.units import (
    bytes_text,
    bytes_were,
    bytes_with,
    counted,
    dims_text,
    first_names,
    symbols_text,
)
from inductor_probe.report.words.layouts import format_text, memory_text, pattern_text
from inductor_probe.report.words.links import (
    conflict_texts,
    kernel_proof_text,
    proofs_text,
    searched_text,
    sources_of_fx,
)
from inductor_probe.report.words.remarks import folded
from inductor_probe.report.words.runs import compile_reason

_MOST_BUFFERS = 6
_MOST_KERNELS = 12
_MOST_LINES = 12
_MOST_REMARKS = 8
_MOST_FX = 12
_MOST_OPS = 8
_MOST_MEMBERS = 24
_MOST_BODIES = 12
"""Members of a foreach node whose formulas stand on its page: they are alike, and may be a hundred."""

Dumped: TypeAlias = Callable[[], Mapping[str, Sequence[tuple[int, str]]]]
"""Reads the dumped text by node, as numbered lines."""


def page_blocks(
    page: PageRecord, dumped: Dumped, *, raw: bool = False, code: bool = False
) -> Iterator[Block]:
    """Yield the page of a record.

    Args:
        page: what is shown. dumped: the dumped text of its nodes; read only where it is shown.
        raw: show it instead of formulas. code: show the text of a kernel.
    """
    match page:
        case GraphPage():
            yield from _graph_page(page)
        case NodePage():
            yield from _node_page(page, dumped, raw=raw)
        case BufferPage():
            yield from _buffer_page(page, dumped, raw=raw)
        case TracePage():
            yield from _trace_page(page)
        case KernelRow():
            yield from kernel_page(page, code)


# A graph in outline: what goes in and out, what runs, and the remarks about it.


def _constants(page: GraphPage) -> str:
    """`l.weight f32[16, 32], l.bias f32[16]: 2.06 KiB`."""
    if not page.constants:
        return ""
    texts = [buffer_text(constant) for constant in page.constants]
    return f"{first_names(texts, _MOST_BUFFERS)}: {bytes_text(page.constant_bytes)}"


def _graph_page(page: GraphPage) -> Iterator[Block]:
    record = page.recorded
    about = [f"torch {page.torch_version}" if page.torch_version else "", compile_reason(page.summary)]
    about += [f"case {record.case}" if record and record.case else ""]
    yield Heading([(page.graph, "bold"), "  ", (", ".join(filter(None, about)), "cyan")])
    summary = page.summary
    kinds = ", ".join(f"{number} {kind}" for kind, number in page.kinds)
    nodes = f"{summary.nodes_before} before fusion, {summary.nodes_after} after"
    size = bytes_with(summary.buffer_bytes, summary.recorded_bytes, page.symbols)
    yield Facts(
        [
            ("inputs", _buffers(page.inputs)),
            ("sizes", symbols_text(page.symbols) or first_names(page.sizes)),
            ("outputs", _buffers(page.outputs)),
            ("constants", _constants(page)),
            ("nodes", f"{nodes}: {kinds}" if kinds else nodes if summary.nodes_before else ""),
            ("subgraphs", first_names([part.name for part in summary.subgraphs])),
            ("fused", _fused_nodes(page)),
            ("allocates", f"{size} in {counted(summary.buffers, 'buffer')}" if summary.buffers else ""),
            ("not linked", first_names(page.unlinked)),
            ("not read", counted(page.problems, "part") if page.problems else ""),
        ]
    )
    if page.kernels:
        yield Heading(("kernels", "bold"), 2)
        yield _kernels(page.kernels)
    if page.collectives:
        yield Heading(("collectives", "bold"), 2)
        yield _collectives(page.collectives)
    for title, installed in (("from your lines", False), ("from lines of installed packages", True)):
        if traces := [trace for trace in page.lines if trace.line.installed == installed]:
            yield Heading((title, "bold"), 2)
            yield _lines(traces)
    remarks = [RemarkLine("hazard", str(problem), 2) for problem in summary.problems]
    remarks += [RemarkLine(remark.kind, text, 2) for remark, text in folded(summary.remarks)]
    if remarks:
        yield Heading(("remarks", "bold"), 2)
        yield from remarks[:_MOST_REMARKS]
    if rest := remarks[_MOST_REMARKS:]:
        yield Line((f"and {len(rest)} more: probe show --json", "dim"), 2)


def _collectives(rows: Sequence[CollectiveRow]) -> Table:
    """`1  all_reduce sum  0  buf3  512 B  512 B  op4  113  116  -`, in the order of the calls."""
    columns = [
        Column("#", right=True), Column("collective"), Column("group", rank=2), Column("of"),
        Column("reads", right=True), Column("writes", right=True), Column("nodes", rank=3),
        Column("line", right=True), Column("waits at", right=True),
        Column("meanwhile", fold="middle", rank=1, least=18),
    ]  # fmt: skip
    cells: list[list[Cell]] = []
    for row in rows:
        size = f" of {row.group_size}" if row.group_size else ""
        cells.append(
            [
                str(row.place),
                " ".join(filter(None, (row.name, row.reduction))),
                f"{row.group or '-'}{size}",
                first_names(row.buffers),
                bytes_text(row.bytes_in),
                bytes_text(row.bytes_out),
                first_names(row.nodes) or "-",
                str(row.span.first),
                first_names([str(span.first) for span in row.waits]) or "never",
                Name(first_names(list(dict.fromkeys(row.meanwhile))) or "-"),
            ]
        )
    return Table(columns, cells, 2, _MOST_KERNELS, "probe show --json")


def _buffers(rows: Sequence[LayoutRow]) -> str:
    """`arg0_1 f32[4, 3, 8, 8] channels_last, arg1_1 i64[4]`."""
    texts = []
    for row in rows[:_MOST_BUFFERS]:
        known = row.memory_format not in ("contiguous", "none", "unknown")
        texts.append(
            f"{buffer_text(NodeBuffer(row.buffer, row.layout))}{f' {row.memory_format}' if known else ''}"
        )
    texts += [f"and {len(rows) - _MOST_BUFFERS} more"] if len(rows) > _MOST_BUFFERS else []
    return ", ".join(texts)


def _fused_nodes(page: GraphPage) -> list[Piece]:
    """The largest three: `op0_op1_op2 (3), op7_op8 (2) and 4 more`."""
    pieces: list[Piece] = []
    for node in sorted(page.fused, key=lambda node: -node.nodes)[:3]:
        pieces += [", "] if pieces else []
        pieces += [Name(node.name), f" ({node.nodes})"]
    return [*pieces, f" and {len(page.fused) - 3} more"] if len(page.fused) > 3 else pieces


def _kernels(rows: Sequence[KernelRow]) -> Table:
    """The largest first, where not all are shown."""
    if len(rows) > _MOST_KERNELS:
        rows = sorted(rows, key=_bytes_moved, reverse=True)
    cells: list[list[Cell]] = [
        [
            (Name(row.name), name_style(row.remarks)),
            how(row),
            first_of(row.nodes),
            bytes_were(row.bytes_read, row.recorded_read),
            bytes_were(row.bytes_written, row.recorded_written),
            str(len(row.launches)),
        ]
        for row in rows
    ]
    columns = [Column(title) for title in ("how", "nodes", "reads", "writes", "calls")]
    return Table([Column("kernel", fold="middle"), *columns], cells, 2, _MOST_KERNELS, "probe kernels")


def _bytes_moved(row: KernelRow) -> int:
    sizes = (row.recorded_read or row.bytes_read, row.recorded_written or row.bytes_written)
    return sum(size for size in sizes if isinstance(size, int))


def _lines(traces: Sequence[SourceTrace]) -> Table:
    columns = (
        Column("line", fold="path"),
        Column("code", fold="middle"),
        Column("FX nodes"),
        Column("nodes"),
    )
    rows = [
        [
            f"{trace.line.path.rpartition('/')[2]}:{trace.line.line}",
            Name(trace.line.code),
            first_of(trace.fx),
            first_of(trace.nodes),
        ]
        for trace in traces
    ]
    return Table(columns, rows, 2, _MOST_LINES)


# One scheduler node, or the nodes of a fused one: links, memory, and what is computed.


def _node_page(page: NodePage, dumped: Dumped, *, raw: bool) -> Iterator[Block]:
    yield from _single(page, page.parts[0]) if len(page.parts) == 1 else _fused(page)
    for title, rows in (("writes", page.writes), ("reads", page.reads)):
        if rows:
            yield Heading((title, "bold"), 2)
            yield _accessed(rows, page, title)
    if page.inside:
        inside = [buffer_text(NodeBuffer(row.buffer, row.layout)) for row in page.inside]
        yield Line([("only inside  ", "bold"), first_names(inside)])
    rows = (*page.writes, *page.reads, *page.inside)
    nodes = {part.row.node for part in page.parts}
    places = {part.row.node: first_place(part.row.link.sources) for part in page.parts}
    remarks = (remark for row in rows for remark in row.remarks if _is_about(remark, nodes))
    yield from remark_lines(remarks, places=places)
    yield from decision_lines(page.causes, page.name)
    for text in conflict_texts(page.conflicts):
        yield RemarkLine("hazard", text)
    most = _MOST_BODIES if page.node_class.startswith("Foreach") else len(page.parts)
    for part in page.parts[:most]:
        what = "" if len(page.parts) == 1 else f"{part.row.node} "
        yield from _body(part, f"{what}computes", dumped, raw=raw)
    if rest := page.parts[most:]:
        yield Line((f"and {len(rest)} more: probe show {rest[0].row.node} shows the next", "dim"))


def _is_about(remark: Remark, nodes: set[str]) -> bool:
    return any(subject.type == "node" and subject.name in nodes for subject in remark.subjects)


def _body(part: NodePart, title: str, dumped: Dumped, *, raw: bool) -> Iterator[Block]:
    """The formula and, to unfold, the dumped text; the other way round where that was asked for."""
    node = part.row.node
    if raw:
        yield Heading((f"{node} as dumped", "bold"), 2)
        yield from _dumped_code(dumped, node)
        return
    if part.formula is not None:
        if title:
            yield Heading((title, "bold"), 2)
        yield FormulaBlock(part.formula)
    if part.body or part.row.span:
        yield Fold(f"{node} as dumped", lambda: _dumped_code(dumped, node))


def _dumped_code(dumped: Dumped, node: str) -> list[Block]:
    lines = dumped().get(node, ())
    return [Code("\n".join(line for _, line in lines), "python", first=lines[0][0])] if lines else []


def _single(page: NodePage, part: NodePart) -> Iterator[Block]:
    row = part.row
    what = f"{row.node_class}({row.ir}){f' on {row.device}' if row.device else ''}"
    yield Heading([(row.node, "bold"), "  ", (does(row), "cyan"), f"  {what}"])
    deps = (*part.met, *part.unmet)
    weak = [dep for dep in deps if isinstance(dep, WeakDep)]
    modes = [
        f"{dep.name} {dep.mode}"
        for dep in deps
        if not isinstance(dep, WeakDep) and dep.mode not in (None, "None")
    ]
    apart = (
        "; those of the nodes it is fused with do not fit into the same nest" if row.agrees is False else ""
    )
    yield Facts(
        [
            ("graph", f"{page.graph}{', removed before code was written' if page.removed else ''}"),
            ("links", _chain(row.link)),
            *_link_facts(row.link),
            ("fused into", [Name(row.top), f" ({row.top_class})"] if row.top else ""),
            ("loops", f"{ranges_text(row.ranges)}{apart}" if row.ranges else ""),
            ("operations", _operations(row.operations)),
            ("memory", memory_text(row)),
            ("waits for", ", ".join(map(_weak, weak))),
            ("modes", ", ".join(modes)),
            ("users", first_names(row.users)),
            ("read at", place(row.span) if row.span else ""),
        ]
    )


def _fused(page: NodePage) -> Iterator[Block]:
    parts = page.parts
    tops = tuple(dict.fromkeys(part.row.top or part.row.node for part in parts))
    joined = f"part of {tops[0]}" if len(tops) == 1 else "not fused with each other in the end"
    yield Heading([(Name(page.name), "bold"), "  ", (page.node_class or joined, "cyan")])
    launches = dict.fromkeys(span for part in parts for span in part.row.link.launches)
    sources = dict.fromkeys(source for part in parts for source in part.row.link.sources)
    agrees = {
        True: "yes, they fit into one nest",
        False: "no: they do not fit into one nest of loops",
        None: "",
    }
    yield Facts(
        [
            ("graph", page.graph),
            ("name", page.name),
            ("nodes", f"{len(parts)} in it"),
            ("kernel", ", ".join(dict.fromkeys(kernel_text(part.row.link) for part in parts))),
            ("launched", ", ".join(map(place, launches))),
            ("same ranges", agrees[parts[0].row.agrees]),
            *(("from", source_text(source)) for source in _in_order(sources)[:_MOST_LINES]),
        ]
    )
    yield Heading(("nodes", "bold"), 2)
    rows: list[list[Cell]] = [
        [
            (part.row.node, "bold"),
            does(part.row),
            ", ".join(map(buffer_text, part.row.writes)),
            ranges_text(part.row.ranges),
            _fx_text(part.row.link, most=4),
        ]
        for part in parts
    ]
    columns = [Column(title) for title in ("node", "does", "writes", "loops", "FX nodes")]
    kernel = next((part.row.link.kernel for part in parts if part.row.link.kernel), None)
    more = f"probe nodes --kernel {kernel}" if kernel else "probe nodes"
    yield Table(columns, rows, 2, _MOST_MEMBERS, more)


def _chain(link: NodeLink) -> list[Piece]:
    """From the user's line to the launch: `a.py:12 -> rev -> op0 -> cpp_fused_flip_0 -> output_code.py:9`."""
    sources = [f"{source.path.rpartition('/')[2]}:{source.line}" for source in own_lines(link.sources)]
    fx = _last_of(link.fx) if link.fx else f"{AMBIGUOUS} FX nodes" if link.fx_candidates else "?"
    kernel = [Name(kernel_text(link)), _last_of([place(span) for span in link.launches])]
    if not link.kernel and not link.kernel_candidates:
        kernel = ["no kernel"]
    pieces: list[Piece] = []
    for text in filter(None, (_last_of(sources), fx, link.node, *kernel)):
        pieces += [" -> "] if pieces else []
        pieces.append(text)
    return pieces


def _last_of(texts: Sequence[str]) -> str:
    """`mul_3 (+2)`: the one whose value it is, and how many there are beside it."""
    return (texts[-1] if len(texts) == 1 else f"{texts[-1]} (+{len(texts) - 1})") if texts else ""


def _link_facts(link: NodeLink) -> Iterator[tuple[str, str]]:
    """Yield the links of a node with their proofs."""
    kernel = kernel_text(link)
    if link.launches:
        calls = "called" if link.kernel and "." in link.kernel else "launched"
        kernel += f", {calls} at {first_names([place(span) for span in link.launches], 4)}"
    yield "kernel", "\n".join(filter(None, ("none" if kernel == "-" else kernel, kernel_proof_text(link))))
    yield "FX nodes", "\n".join(filter(None, (_fx_text(link), proofs_text(link.fx_proofs))))
    for source in _in_order(link.sources)[:_MOST_LINES]:
        yield "from", source_text(source)
    if len(link.sources) > _MOST_LINES:
        yield "", f"and {counted(len(link.sources) - _MOST_LINES, 'more line')}"


def _fx_text(link: NodeLink, most: int = _MOST_FX) -> str:
    """Return the FX nodes of a node, the one whose value it writes first."""
    if link.fx:
        perhaps = f"; perhaps also {first_names(link.fx_candidates, most)}" if link.fx_candidates else ""
        return first_names(link.fx[::-1], most) + perhaps
    return f"{AMBIGUOUS}: {first_names(link.fx_candidates, most)}" if link.fx_candidates else "not known"


def _in_order(sources: Iterable[SourceLine]) -> list[SourceLine]:
    return sorted(sources, key=lambda source: (source.path, source.line))


def _weak(dep: WeakDep) -> str:
    changed = f", before it changes {dep.mutating_buf}" if dep.mutating_buf else ""
    return f"{dep.name} (order only{changed}{', fake' if dep.is_fake else ''})"


def _operations(operations: tuple[tuple[str, int], ...]) -> str:
    """`12: load 3, mul 2, and 4 other kinds`."""
    if not operations:
        return ""
    shown = ", ".join(f"{name} {times}" for name, times in operations[:_MOST_OPS])
    others = len(operations) - _MOST_OPS
    more = f", and {counted(others, 'other kind')}" if others > 0 else ""
    return f"{sum(times for _, times in operations)}: {shown}{more}"


def _accessed(rows: Sequence[LayoutRow], page: NodePage, direction: str) -> Table:
    nodes = {part.row.node for part in page.parts}
    cells: list[list[Cell]] = [
        [
            (buffer_text(NodeBuffer(row.buffer, row.layout)), "bold"),
            dims_text(row.layout.stride if row.layout else None),
            format_text(row, always=True),
            _patterns(
                [
                    access
                    for access in (row.writes if direction == "writes" else row.reads)
                    if access.node in nodes
                ]
            ),
        ]
        for row in rows
    ]
    columns = [Column(title) for title in ("buffer", "stride", "format", "how")]
    return Table(columns, cells, 2, _MOST_MEMBERS, "probe layouts")


def _patterns(accesses: Sequence[Access]) -> Inline:
    """`contiguous, indirect 3 times`: patterns; in yellow where the generated code is not contiguous."""
    counts: dict[Pattern, int] = {}
    contiguous: dict[Pattern, bool | None] = {}
    for access in accesses:
        generated = access.generated
        counts[access.pattern] = counts.get(access.pattern, 0) + access.count
        contiguous[access.pattern] = access.contiguous if generated is None else generated.contiguous
    pieces: list[Piece] = []
    for pattern, times in counts.items():
        pieces += [", "] if pieces else []
        pieces.append((pattern_text(pattern), "yellow" if contiguous[pattern] is False else ""))
        pieces += [f" {times} times"] if times > 1 else []
    return pieces or "-"


def _buffer_page(page: BufferPage, dumped: Dumped, *, raw: bool) -> Iterator[Block]:
    """One buffer: its layout, and what computes it."""
    yield from layout_page(replace(page.row, causes=page.causes))
    if (part := page.producer) is not None:
        yield Heading([(f"computed by {part.row.node}", "bold"), "  ", (does(part.row), "cyan")], 2)
        yield Facts([("links", _chain(part.row.link))])
        yield from _body(part, "", dumped, raw=raw)


# What became of a line of the user's, or of an FX node: from there down to the launches.


def _trace_page(page: TracePage) -> Iterator[Block]:
    kind = "line" if ":" in page.what else "operator" if "." in page.what else "FX node"
    name = str(page.lines[0]) if kind == "line" and len(page.lines) == 1 else page.what
    yield Heading([(name, "bold"), "  ", (kind, "cyan")])
    yield Facts([("graph", page.graph), *(("from", source_text(line)) for line in page.lines)])
    if page.before:
        yield Heading(("FX nodes before inductor's passes", "bold"), 2)
        yield _fx_table(page.before, {})
    if page.rewrites:
        yield Heading(("rewrites", "bold"), 2)
        for cause in page.rewrites[:_MOST_REMARKS]:
            yield RemarkLine(cause.kind, cause_sentence(cause), 2)
        if (more := len(page.rewrites) - _MOST_REMARKS) > 0:
            yield Line((f"and {more} more: probe why {page.what} --kind rewrite,freezing", "dim"), 2)
    if page.fx:
        buffers: dict[str, list[str]] = {}
        for node, buffer in page.holds:
            buffers.setdefault(node, []).append(buffer)
        yield Heading(("FX nodes", "bold"), 2)
        yield _fx_table(page.fx, {node: ", ".join(names) for node, names in buffers.items()})
    if page.nodes:
        yield Heading(("scheduler nodes", "bold"), 2)
        titles = ("node", "does", "writes", "kernel", "proof")
        columns = [Column(title, fold="middle" if title == "kernel" else "words") for title in titles]
        yield Table(columns, [_traced(row) for row in page.nodes], 2)
    if page.maybe:
        names = first_names([row.node for row in page.maybe])
        yield Facts([("perhaps also", f"{names}: which of them is not known")])
    if page.kernels:
        yield Heading(("kernels", "bold"), 2)
        pairs = grouped(page.kernels, lambda pair: pair.kernel)
        rows = [
            [_launched(members), Name(kernel), sources_of_fx(members)] for kernel, members in pairs.items()
        ]
        yield Table((Column("launched at"), Column("kernel"), Column("proof")), rows, 2)
    for text in conflict_texts(page.kernels):
        yield RemarkLine("hazard", text)
    for absence in page.absent:
        yield Line((_absence(absence), "dim"))
    if page.before and not page.fx and not page.absent:
        yield Line(("nothing says what inductor's passes made of it", "dim"))


def _launched(pairs: Sequence[KernelFx]) -> str:
    spans = dict.fromkeys(span for pair in pairs for span in pair.launches)
    return ", ".join(map(place, spans)) or "?"


def _fx_table(nodes: Sequence[FxNode], buffers: Mapping[str, str]) -> Table:
    columns = [Column("node"), Column("calls"), Column("type"), Column("arguments", most=60, rank=1)]
    rows: list[list[Cell]] = [
        [
            (node.name, "bold"),
            node.target.removeprefix("torch.ops."),
            node.type or "",
            node.arguments,
            *([buffers.get(node.name, "-")] if buffers else []),
        ]
        for node in nodes
    ]
    return Table([*columns, *([Column("value in")] if buffers else [])], rows, 2)


def _traced(row: NodeRow) -> list[Cell]:
    writes = ", ".join(map(buffer_text, row.writes))
    return [
        (row.node, "bold"),
        does(row),
        writes,
        Name(kernel_text(row.link)),
        proofs_text(row.link.fx_proofs),
    ]


def _absence(absence: Absence) -> str:
    of = first_names(absence.of)
    name = absence.fx
    match absence.reason:
        case "view":
            return f"{name} is a view of {of}: nothing is computed for it"
        case "item":
            return f"{name} is an item of {of}: what computes {of} computes it"
        case "number":
            return f"{name} is a number that the wrapper hands to kernels: no scheduler node computes it"
        case "attribute":
            return f"{name} reads an attribute of the module: nothing is computed for it"
        case "unused":
            return f"nothing uses the value of {name}, and no kernel is known to compute it"
        case "unknown":
            searched = searched_text(absence.searched)
            users = f"; what uses it is computed in {of}" if of else ""
            return f"no scheduler node is known to compute {name} from {searched}{users}"
