"""What was fused when, and what was refused why: of a graph, of a node, and of a pair of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from inductor_probe.model.cause import Cause
from inductor_probe.model.decision import Decision
from inductor_probe.model.fusion import (
    FusionDecision,
    FusionGroup,
    GraphFusion,
    LogMatch,
    NodeFusion,
    PairFacts,
    PairMember,
    SharedBuffer,
)
from inductor_probe.report.document import (
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Inline,
    Line,
    Name,
    Piece,
    Table,
    apart,
    by_graph,
    place,
)
from inductor_probe.report.pages.why import change_facts, decision_lines, decision_table, decision_text
from inductor_probe.report.units import bytes_text, counted, dims_text, folded_names
from inductor_probe.report.words.decisions import names_of
from inductor_probe.report.words.fusion import (
    access_text,
    how_to_record_reasons,
    log_text,
    loops_text,
    member_loops,
    relation_text,
)
from inductor_probe.report.wrapping import shorten

_MOST = 10
"""Rows of a long list that are shown unless all are asked for."""
_MOST_ACCESSES = 4
_ALL = "--all shows them"
_SIDES = ("first",), ("second",)
"""What the nodes of a pair are called where columns have their names."""
_STYLES = {"fused": "bold green", "refused": "bold red"}


def fusion_pages(
    rows: Iterable[GraphFusion | NodeFusion | FusionDecision], *, everything: bool = False
) -> Iterator[Block]:
    """Yield every answer on a page of its own. `everything` shows lists to their end."""
    limit = None if everything else _MOST
    rows = tuple(rows)
    if all(isinstance(row, GraphFusion) for row in rows):  # whose pages begin with their graphs
        yield from apart(_page(row, limit) for row in rows)
    else:
        yield from by_graph((row.graph, _page(row, limit)) for row in rows)


def _page(row: GraphFusion | NodeFusion | FusionDecision, limit: int | None) -> Iterator[Block]:
    match row:
        case GraphFusion():
            yield from _graph_page(row, limit)
        case NodeFusion():
            yield from _node_page(row, limit)
        case FusionDecision():
            yield from _pair_page(row, limit)


def _graph_page(row: GraphFusion, limit: int | None) -> Iterator[Block]:
    before = counted(row.nodes_before, "node")
    counts = f"{before} before fusion, {row.nodes_after} after"
    apart = [one.decision for one in row.causes if one.kind != "passed" and one.decision]
    most = max(apart, key=_shared, default=None)
    pieces: list[Piece] = []
    if most is not None and (shared := _shared(most)):
        first, second, *_ = map(Name, names_of(most))
        pieces = ["; not fused, with most shared: ", first, " and ", second, f" ({bytes_text(shared)})"]
    yield Heading([(row.graph, "bold"), f"  {counts}", *pieces])
    if row.nodes_before == row.nodes_after == 1:
        yield Line("one node: there is nothing to fuse")
        return
    rounds = [
        [
            "reordered" if part.number is None else str(part.number),
            f"{part.nodes_before} -> {part.nodes_after}" if part.nodes_before is not None else "-",
            "?" if part.possible is None else str(part.possible),
            str(part.fused),
            str(part.refused),
        ]
        for part in row.rounds
    ]
    numbers = [Column(title, right=True) for title in ("could be fused", "fused", "refused")]
    yield from _section("rounds", (Column("round"), Column("nodes"), *numbers), rounds)
    yield from _groups(row.groups, limit)
    yield from _decisions(row, limit)
    yield from _log(row.log, row.causes)


def _decisions(row: GraphFusion | NodeFusion, limit: int | None) -> Iterator[Block]:
    """Yield the fusions in order, and what kept others apart."""
    yield from _pairs("steps", row.steps, limit)
    if rest := [cause for cause in row.causes if cause.kind != "passed"]:
        yield Heading(("not fused in the end", "bold"), 2)
        yield replace(decision_table(rest, everything=limit is None), indent=2)


def _shared(decision: Decision) -> int:
    """Return the bytes that torch counted as shared."""
    shared = decision.operand("shared_bytes")
    return shared if isinstance(shared, int) and len(decision.subjects) > 1 else 0


def _pairs(title: str, decisions: Sequence[Decision], limit: int | None) -> Iterator[Block]:
    """Yield decisions about pairs in the order in which torch took them."""
    rows: list[list[Cell]] = [
        [
            str(one.operand("round") or "-"),
            *(Name(name) for name in names_of(one)[:2]),
            bytes_text(_shared(one)) if _shared(one) else "-",
            (decision_text(replace(one, subjects=_SIDES)), _STYLES.get(one.outcome, "")),
            place(one.span) if one.span else "-",
        ]
        for one in sorted(decisions, key=lambda one: one.number)
    ]
    columns = (
        Column("round"),
        *(Column(name, fold="middle") for name in ("first", "second")),
        Column("shared", right=True),
        Column("decision"),
        Column("log", fold="path", rank=1),
    )
    shown = (
        len(columns) if any(one.span for one in decisions) else -1
    )  # what was recorded has no line of a log
    yield from _section(title, columns[:shown], [row[:shown] for row in rows], limit)


def _node_page(row: NodeFusion, limit: int | None) -> Iterator[Block]:
    group = row.group
    fused: list[Piece] = ["not known after fusion" if group is None else "not fused"]
    if group is not None and set(group.nodes) != set(row.nodes):
        fused = ["in ", Name(group.name)]
    yield Heading([(row.name, "bold"), "  ", *fused, f"  in {row.graph}"])
    yield from _groups([group] if group else [], limit)
    yield from _decisions(row, limit)
    yield from _log(row.log, row.causes)
    if not row.causes:
        yield Line("no pair of it with another node is known")


def _log(match: LogMatch, causes: Iterable[Cause]) -> Iterator[Line]:
    """Say where the log is that the page speaks of, or why there is none and how to get it."""
    if match.state in ("proved", "disagrees"):
        style = "dim" if match.state == "proved" else "yellow"
        yield Line((f"log at {place(match.span)}: {log_text(match)}", style))
        return
    yield Line([("AMBIGUOUS: " if match.state == "ambiguous" else "no log: ", "yellow"), log_text(match)])
    known = any(cause.knowledge != "inferred" for cause in causes)
    if not known and (advice := how_to_record_reasons(match)):
        yield Line([("to record reasons: ", "bold cyan"), advice])


def _groups(groups: Sequence[FusionGroup], limit: int | None) -> Iterator[Block]:
    fused = [group for group in groups if len(group.nodes) > 1]
    if groups and not fused:
        yield Line("no two nodes were fused" if len(groups) > 1 else "not fused with another node")
    rows: list[list[Cell]] = [
        [
            (Name(group.name), "bold"),
            str(len(group.nodes)),
            group.kind.removesuffix("SchedulerNode"),
            Name(group.kernel or "-"),
            _ranges(group.steps) or "-",
        ]
        for group in fused
    ]
    alone = len(groups) - len(fused)
    columns = (
        Column("node after fusion", fold="middle"),
        Column("of", right=True),
        Column("kind"),
        Column("kernel", fold="middle"),
        Column("steps"),
    )
    yield from _section(
        f"fused ({counted(alone, 'node')} not fused)" if alone else "fused", columns, rows, limit
    )


def _ranges(numbers: Sequence[int]) -> str:
    """`1-3, 7` of 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _section(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], limit: int | None = None
) -> Iterator[Block]:
    if rows:
        yield Heading((title, "bold"), 2)
        yield Table(columns, rows, 2, limit, _ALL)


# A pair: what became of it, why, and both nodes next to each other.


def _pair_page(row: FusionDecision, limit: int | None) -> Iterator[Block]:
    facts = row.facts
    names = f"{facts.first.name} and {facts.second.name}"
    text = (row.outcome or "not fused").replace("-", " ")
    outcome = (text, _STYLES.get(row.outcome or "", "bold yellow"))
    yield Heading([(names, "bold"), "  ", outcome, f"  in {row.graph}"])
    yield from decision_lines(row.causes, f"{facts.first.name} {facts.second.name}")
    for cause in row.causes:
        yield Facts(change_facts(cause))
    if not row.causes and row.group is None:
        yield Line(
            "why is not known: no decision is recorded or logged, and the IR shows nothing against it", 2
        )
    yield Facts(_became(row))
    yield Line()
    yield _members(facts, limit)
    yield Facts(_between(facts, fused=row.group is not None), 0)
    if facts.shared:
        total = sum(shared.bytes or 0 for shared in facts.shared if shared.matches)
        amount = f": {bytes_text(total)} of accesses that are the same" if total else ""
        yield Line([("used by both", "bold"), amount])
        for shared in facts.shared:
            yield from _shared_buffer(shared, facts)
    else:
        yield Line("they use no common buffer")
    yield from _pairs("decided about them, and about nodes that hold them", row.tried, limit)
    yield from _log(row.log, row.causes)


def _became(row: FusionDecision) -> Iterator[tuple[str, Inline]]:
    if row.group is not None:
        yield "into", [Name(row.group.name), f" ({row.group.kind})"]
    if row.same_kernel is not None:
        text = " runs both all the same: a C++ function may have several loop nests"
        yield "kernel", [Name(row.same_kernel), text]


def _members(facts: PairFacts, limit: int | None) -> Table:
    """Both nodes next to each other; loops and devices that differ are highlighted."""
    first, second = (dict(_member(member, limit)) for member in (facts.first, facts.second))
    rows: list[list[Cell]] = []
    for label, text in first.items():
        if text or second[label]:
            style = "yellow" if label in ("device", "loops") and text != second[label] else ""
            named = label in ("fused into", "kernel")
            texts = (Name(one or "-") if named else one or "-" for one in (text, second[label]))
            rows.append([(label, "dim"), *((one, style) for one in texts)])
    return Table((Column(""), Column(facts.first.name), Column(facts.second.name)), rows)


def _member(member: PairMember, limit: int | None) -> Iterator[tuple[str, str]]:
    rest = len(member.origins) - len(member.origins[:limit])
    top = member.top if member.top and member.top not in (member.name, *member.nodes[:1]) else ""
    most = len(member.nodes) if limit is None else limit
    yield "nodes", "" if member.nodes == (member.name,) else folded_names(member.nodes, "--all", most)
    yield "does", " and ".join(member.kinds)
    yield "writes", "" if member.buffers == (member.name,) else folded_names(member.buffers, "--all", most)
    yield "device", member.device or ""
    yield "loops", member_loops(member) if member.iteration is not None else ""
    yield "sizes", " and ".join(map(dims_text, member.sizes or ()))
    yield "from", ", ".join(member.origins[:limit]) + (f" and {rest} more" if rest else "")
    yield "fused into", top
    yield "kernel", member.kernel or ""


def _between(facts: PairFacts, *, fused: bool) -> Iterator[tuple[str, Inline]]:
    first, second = facts.first.name, facts.second.name
    order = {
        "first": f"{first} before {second}",
        "second": f"{second} before {first}",
        "none": "neither needs the other",
    }[facts.order]
    if facts.direct:
        order += f", which reads what {first if facts.order == 'first' else second} writes"
    if facts.path:
        order += f"{', and' if facts.direct else ','} through {' -> '.join(facts.path)}"
    yield "order", order
    fit, why = loops_text(facts)
    if fused and facts.loops_fit is False:
        fit = "of these two alone do not fit, other nodes are between them: "
    yield "loops", [(fit, "yellow" if facts.loops_fit is False and not fused else "green"), why]


def _shared_buffer(row: SharedBuffer, facts: PairFacts) -> Iterator[Block]:
    sign, style = ("=", "green") if row.matches else ("!", "bold yellow")
    size = f", {bytes_text(row.bytes)}" if row.matches and row.bytes is not None else ""
    unequal = "" if row.matches else ", no access is the same in both"
    yield Line(
        [(f"{sign} ", style), (row.buffer, "bold"), f"  {relation_text(row, facts)}{size}{unequal}"], 2
    )
    same = set(row.first) & set(row.second)
    entries: list[tuple[str, Inline]] = []
    for name, accesses in ((facts.first.name, row.first), (facts.second.name, row.second)):
        shown = [
            (access_text(access), "green" if access in same else "yellow")
            for access in accesses[:_MOST_ACCESSES]
        ]
        entries += [(shorten(name, 24) if number == 0 else "", text) for number, text in enumerate(shown)]
        if len(accesses) > _MOST_ACCESSES:
            entries.append(("", f"and {len(accesses) - _MOST_ACCESSES} more"))
    yield Facts(entries, 6)
