"""Kernels: a table, and one kernel on one page: what it computes, what it is passed, its loops, its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.code import CppFacts, KernelArg, Loop, LoopNest, TritonFacts
from inductor_probe.model.kernels import KernelLaunch, KernelRow, Passed
from inductor_probe.model.record import grouped
from inductor_probe.model.span import own_lines
from inductor_probe.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Facts,
    Fold,
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
from inductor_probe.report.words.bounds import BOUNDS_OF, bound_sentence, bound_text
from inductor_probe.report.words.decisions import short_cause
from inductor_probe.report.words.kernels import fact_texts
from inductor_probe.report.words.layouts import FEATURES
from inductor_probe.report.words.links import conflict_texts, counted_sources_of_fx

_MOST_OPS = 3
_MOST_ARGUMENTS = 24
_MOST_PASSED = 3
_MOST_PAGES = 40
"""Kernels whose page comes along with a table; a notebook with thousands could not be opened again."""
LEXERS = {"cpp": "cpp", "triton": "python", "cutedsl": "python", "pallas": "python"}
_KINDS = {"persistent_reduction": "persistent", "user_autotune": "user's own"}
"""Heuristics by the words that fit into a column."""
_BOUND = Column("at least", right=True, most=16)
_COLUMNS = (
    Column("kernel", fold="middle", least=42),
    Column("how", most=24),
    Column("nodes", right=True),
    Column("computes", most=28, rank=3),
    Column("loads", right=True, rank=2),
    Column("stores", right=True, rank=2),
    Column("reads", right=True, most=14),
    Column("writes", right=True, most=14),
    _BOUND,
    Column("calls", right=True),
    Column("from", most=30, fold="path", rank=4),
)


def kernel_table(rows: Sequence[KernelRow]) -> Iterator[Block]:
    """Yield the kernels of one or more graphs, a table each, and the page of each to unfold."""
    graphs = grouped(rows, lambda row: row.graph)
    for graph, members in graphs.items():
        if graph != rows[0].graph:
            yield Line()
        yield Heading([(graph, "bold"), f"  {_counts(members)}"])
        if symbols := table_symbols(symbol for row in members for symbol in row.symbols):
            yield Line((symbols, "dim"))
        yield _table(members)
        if gpu := next((row.bound.gpu for row in members if row.bound), None):
            yield Line((BOUNDS_OF.format(gpu=gpu), "dim"), indent=2)
        places = {row.name: first_place(row.sources) for row in members}
        yield from remark_lines((remark for row in members for remark in row.remarks), 2, places=places)
    for row in [row for row in rows[:_MOST_PAGES] if row.backend != "extern"]:
        yield _page_fold(row)


def _page_fold(row: KernelRow) -> Fold:
    return Fold(row.name, lambda: kernel_page(row))


def _counts(rows: Sequence[KernelRow]) -> str:
    generated = sum(row.backend != "extern" for row in rows)
    calls = sum(len(row.launches) for row in rows if row.backend == "extern")
    parts = ((generated, "kernel"), (calls, "library call"))
    return ", ".join(counted(number, noun) for number, noun in parts if number)


def _table(rows: Sequence[KernelRow]) -> Table:
    cells = [_cells(row) for row in rows]
    # A column that is empty in this graph only takes room from the names.
    empty = {
        index
        for index, column in enumerate(_COLUMNS)
        if (column.rank or column is _BOUND) and all(line[index] == "-" for line in cells)
    }
    shown = [index for index in range(len(_COLUMNS)) if index not in empty]
    return Table([_COLUMNS[index] for index in shown], [[line[index] for index in shown] for line in cells])


def _cells(row: KernelRow) -> list[Cell]:
    sources = own_lines(row.sources)
    ops = [name.removeprefix("aten.").removeprefix("prims.") for name in row.ops]
    more = f" +{len(ops) - _MOST_OPS}" if len(ops) > _MOST_OPS else ""
    return [
        (Name(row.name), name_style(row.remarks) if row.remarks or row.backend != "extern" else ""),
        how(row),
        str(len(row.nodes)) if row.nodes else "?",
        ", ".join(ops[:_MOST_OPS]) + more or "-",
        "-" if row.loads is None else str(row.loads),
        "-" if row.stores is None else str(row.stores),
        bytes_were(row.bytes_read, row.recorded_read),
        bytes_were(row.bytes_written, row.recorded_written),
        bound_text(row.bound),
        str(len(row.launches)),
        first_of([f"{source.path.rpartition('/')[2]}:{source.line}" for source in sources]),
    ]


def first_of(texts: Sequence[str]) -> str:
    """`op0 +3`."""
    return (texts[0] if len(texts) == 1 else f"{texts[0]} +{len(texts) - 1}") if texts else "-"


def how(row: KernelRow) -> str:
    """Return the kernel's kind in a few words: `C++, 2/3 vec`, `persistent INNER`, `fallback`."""
    match row.details:
        case CppFacts(nests=nests) as facts:
            kind = "C++ template" if row.kind == "template" else "C++"
            if not nests:
                return f"{kind}, no loop"
            return f"{kind}, {facts.count('vectorised')}/{len(facts.decided_nests)} vec"
        case TritonFacts() as facts:
            words = [_KINDS.get(row.kind, row.kind.replace("_", " "))]
            words += [word for word in (facts.reduction_hint, facts.tile_hint) if word]
            words += ["int64"] if facts.index_width == "int64" else []
            return " ".join(words)
    return row.kind if row.backend == "extern" else row.backend


def kernel_page(row: KernelRow, code: bool = False) -> Iterator[Block]:
    """Yield one kernel; with `code` its text is shown, else it can be unfolded."""
    yield Heading([(row.name, "bold"), "  ", (how(row), "cyan")])
    yield Facts(_facts(row))
    if row.args:
        yield Heading(("arguments", "bold"), 2)
        yield _arguments(row)
    if isinstance(row.details, CppFacts) and row.details.nests:
        yield Heading(("loops", "bold"), 2)
        above = row.span.first - 1 if row.span else 0
        causes = _causes(row)
        nests = [
            _nest(nest, above, causes.get(nest.line)) for nest in row.details.nests if nest.kind != "threads"
        ]
        yield Table((Column(""), Column(""), Column("")), nests, indent=2)
    if row.launches:
        yield Heading(("calls" if row.backend == "extern" else "launches", "bold"), 2)
        for launch in row.launches:
            yield Line([place(launch.span), "  ", (_call(launch), "dim")], indent=2)
    yield from remark_lines(row.remarks, about=row.name, places={row.name: first_place(row.sources)})
    for text in conflict_texts(row.fx_proofs, row.name):
        yield RemarkLine("hazard", text)
    if row.source:
        source = Code(row.source, LEXERS.get(row.backend, ""))
        if code:
            yield Heading(("text", "bold"), 2)
            yield source
        else:
            yield Fold("text", lambda: [source])


def _facts(row: KernelRow) -> Iterator[tuple[str, Inline]]:
    yield "graph", row.graph
    yield "computes", ", ".join(row.ops)
    yield "nodes", _nodes(row)
    if row.fx:
        sources = counted_sources_of_fx(pair for pair in row.fx_proofs if pair.fx in row.fx)
        yield "FX nodes", "\n".join(filter(None, (first_names(row.fx), sources)))
    for source in row.sources:
        yield "from", source_text(source)
    yield "reads", bytes_with(row.bytes_read, row.recorded_read, row.symbols) + _in_text(row.loads, "load")
    yield (
        "writes",
        bytes_with(row.bytes_written, row.recorded_written, row.symbols) + _in_text(row.stores, "store"),
    )
    if row.bound:
        yield "at least", bound_sentence(row.bound)
    yield "symbols", symbols_text(row.symbols)
    yield from fact_texts(row)
    if row.span:
        yield "defined at" if row.source else "first called at", place(row.span)


def _nodes(row: KernelRow) -> Inline:
    """`op0, op1, fused as op0_op1`; of a foreach kernel `op0, op1, ... (100: probe nodes --kernel K)`."""
    if not row.nodes:
        return "none could be linked to it"
    names = first_names(row.nodes)
    if row.kind == "foreach":
        names = folded_names(row.nodes, f"probe nodes --kernel {row.name}")
    pieces: list[Piece] = [names]
    for top in row.tops if row.tops != row.nodes else ():
        pieces += [", fused as " if len(pieces) == 1 else ", ", Name(top)]
    return pieces


def _in_text(number: int | None, what: str) -> str:
    return "" if number is None else f", {counted(number, what)} in its text"


def _arguments(row: KernelRow) -> Table:
    passed: dict[str, list[Passed]] = {}
    for launch in row.launches:
        for item in launch.passed:
            if item.arg is not None:
                passed.setdefault(item.arg.name, []).append(item)
    rows: list[list[Cell]] = [
        [(arg.name, "bold"), arg.role, arg.type or "?", _texts(items), _size(arg, items)]
        for arg in row.args
        for items in (passed.get(arg.name, []),)
    ]
    columns = [Column(title) for title in ("name", "role", "type", "passed", "size")]
    return Table(columns, rows, 2, _MOST_ARGUMENTS, f"probe show {row.name} --json")


def _texts(items: list[Passed]) -> str:
    """What the launches pass, each different text once."""
    texts = list(dict.fromkeys(item.buffer or item.text for item in items))
    more = f" and {len(texts) - _MOST_PASSED} more" if len(texts) > _MOST_PASSED else ""
    return " | ".join(texts[:_MOST_PASSED]) + more or "-"


def _size(arg: KernelArg, items: list[Passed]) -> str:
    if arg.role == "size" or not items:
        return ""
    return " | ".join(dict.fromkeys(_layout(item) for item in items[:_MOST_PASSED]))


def _layout(item: Passed) -> str:
    layout = item.layout
    return f"{layout.dtype or '?'} {dims_text(layout.size)}" if layout else "?"


def _causes(row: KernelRow) -> dict[int, str]:
    """Return by its first line why each loop nest has no full vector, as far as that is recorded."""
    decided = row.details.decided_nests if isinstance(row.details, CppFacts) else ()
    return {
        nest.line: short_cause(decision)
        for nest, decision in zip(decided, row.decisions, strict=False)
        if nest.kind != "vectorised"
    }


def _nest(nest: LoopNest, above: int, cause: str | None) -> list[Cell]:
    """`vectorised`, `x0 1024 (omp for) > x1 768 by 16`: the loops from the outermost to the innermost.

    Behind those of a nest without full vectors stands the recorded cause, or what its text has where none is
    recorded.
    """
    loops = " > ".join(map(_loop, nest.order))
    tile = f", transposing tiles of {'x'.join(map(str, nest.tile))}" if nest.tile else ""
    features = ", ".join(FEATURES[feature] for feature in nest.features)
    why = f": {cause}" if cause else f"; it has {features}" if features else ""
    style = {"vectorised": "green", "underfilled": "yellow", "scalar": "yellow"}.get(nest.kind, "dim")
    lines = (f"lines {above + nest.line}-{above + nest.last}", "dim")
    return [(nest.kind, style), f"{loops}{tile}{why}", lines]


def _loop(loop: Loop) -> str:
    extent = str(loop.stop) if loop.start == 0 else f"{loop.start} to {loop.stop}"
    step = "" if loop.step == 1 else f" by {loop.step}"
    pragmas = f" ({', '.join(loop.pragmas)})" if loop.pragmas else ""
    return f"{loop.variable} {extent}{step}{pragmas}"


def _call(launch: KernelLaunch) -> str:
    keywords = [f"{name}={text}" for name, text in launch.keywords]
    passed = folded_names([item.text for item in launch.passed], "--json", _MOST_ARGUMENTS)
    return ", ".join([*filter(None, [passed]), *keywords])
