"""What was fused when, and what was refused why: of a graph, of a node, and of a pair of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from inductor_probe.model.fusion import (
    FusionDecision,
    FusionGroup,
    FusionStep,
    GraphFusion,
    LogMatch,
    NodeFusion,
    Outcome,
    PairAttempt,
    PairFacts,
    PairMember,
    RefusalCount,
    RoundRow,
    SharedBuffer,
    UnfusedPair,
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
from inductor_probe.report.pages.why import decision_lines
from inductor_probe.report.units import bytes_text, counted, dims_text, folded_names
from inductor_probe.report.words.fusion import (
    OUTCOMES,
    access_text,
    how_to_record_reasons,
    log_text,
    loops_text,
    meaning,
    member_loops,
    number_lines,
    reason_texts,
    relation_text,
    setting_text,
)
from inductor_probe.report.wrapping import shorten

_MOST = 10
"""Rows of a long list that are shown unless all are asked for."""
_MOST_ACCESSES = 4
_ALL = "--all shows them"
_STYLES: Mapping[Outcome, str] = {
    "fused": "bold green",
    "refused": "bold red",
    "refused_without_reason": "bold red",
}


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
    yield Heading([(row.graph, "bold"), f"  {counts}", *_most_shared(row.unfused)])
    if row.nodes_before == row.nodes_after == 1:
        yield Line("one node: there is nothing to fuse")
        return
    yield from _rounds(row.rounds)
    yield from _groups(row.groups, limit)
    yield from _steps(row.steps, limit)
    yield from _refusals(row.refusals)
    yield from _unfused("tried and not fused, most shared first", row.unfused, limit)
    yield from _log(row.log)


def _most_shared(pairs: Sequence[UnfusedPair]) -> list[Piece]:
    """`; not fused, with most shared: op1 and op3 (4.04 MiB)`."""
    first = max(pairs, key=_shared_bytes, default=None)
    if first is None or not _shared_bytes(first):
        return []
    shared = bytes_text(_shared_bytes(first))
    return ["; not fused, with most shared: ", Name(first.first), " and ", Name(first.second), f" ({shared})"]


def _shared_bytes(pair: UnfusedPair) -> int:
    return 0 if pair.shared is None or isinstance(pair.shared, bool) else pair.shared


def _node_page(row: NodeFusion, limit: int | None) -> Iterator[Block]:
    group = row.group
    alone = group is not None and set(group.nodes) == set(row.nodes)
    fused: list[Piece] = ["not known after fusion" if group is None else "not fused"]
    if group is not None and not alone:
        fused = ["in ", Name(group.name)]
    yield Heading([(row.name, "bold"), "  ", *fused, f"  in {row.graph}"])
    if group is not None:
        yield from _groups([group], limit)
    yield from _steps(row.steps, limit)
    name = group.name if group else row.name
    yield from _unfused(
        f"tried and not fused with {shorten(name, 40)}, most shared first", row.unfused, limit, group
    )
    yield from _log(row.log)
    if alone and not row.unfused and row.log.state == "proved":
        yield Line("the log has no pair of it with another node")


def _log(match: LogMatch) -> Iterator[Line]:
    """Say where the log is that the page speaks of, or why there is none and how to get it."""
    if match.state in ("proved", "disagrees"):
        style = "dim" if match.state == "proved" else "yellow"
        yield Line((f"log at {place(match.span)}: {log_text(match)}", style))
        return
    yield Line([("AMBIGUOUS: " if match.state == "ambiguous" else "no reasons: ", "yellow"), log_text(match)])
    if advice := how_to_record_reasons(match):
        yield Line([("to record them: ", "bold cyan"), advice])


def _rounds(rounds: Sequence[RoundRow]) -> Iterator[Block]:
    rows = [
        [
            "reordered" if part.number is None else str(part.number),
            f"{part.nodes_before} -> {part.nodes_after}" if part.nodes_before is not None else "-",
            "?" if part.possible is None else str(part.possible),
            str(part.fused),
            str(part.refused),
        ]
        for part in rounds
    ]
    numbers = [Column(title, right=True) for title in ("could be fused", "fused", "refused")]
    yield from _section("rounds", (Column("round"), Column("nodes"), *numbers), rows)


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


def _steps(steps: Sequence[FusionStep], limit: int | None) -> Iterator[Block]:
    rows: list[list[Cell]] = [
        [
            str(step.number),
            _round(step.round),
            Name(step.first),
            Name(step.second),
            _shared(step.shared),
            place(step.span),
        ]
        for step in steps
    ]
    names = [Column(title, fold="middle") for title in ("first", "second")]
    columns = (
        Column("step", right=True),
        Column("round"),
        *names,
        Column("shared", right=True),
        Column("log"),
    )
    yield from _section("steps", columns, rows, limit)


def _round(number: int | None) -> str:
    return "reordered" if number is None else str(number)


def _shared(shared: int | bool | None) -> str:
    """What a pair shares: bytes, or whether."""
    if shared is None:
        return "-"
    return ("yes" if shared else "none") if isinstance(shared, bool) else bytes_text(shared)


def _refusals(counts: Sequence[RefusalCount]) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for count in counts:
        reason: list[Piece] = [(count.refusal.form.replace("%s", "…"), "bold"), f"\n{meaning(count.refusal)}"]
        reason += [(f"\n{setting_text(setting)}", "cyan") for setting in count.settings]
        rows.append([str(count.unfused), str(count.pairs), str(count.lines), reason])
    numbers = [Column(title, right=True) for title in ("unfused", "pairs", "lines")]
    title = "refused (pairs not fused in the end, pairs in all, lines of the log)"
    yield from _section(title, (*numbers, Column("reason")), rows)


def _unfused(
    title: str, pairs: Sequence[UnfusedPair], limit: int | None, group: FusionGroup | None = None
) -> Iterator[Block]:
    """Yield the pairs that were tried; of a group's only the other node is named."""
    rows: list[list[Cell]] = []
    for pair in pairs:
        names = [pair.first, pair.second]
        if group is not None:
            names.remove(group.name)
        rows.append([*map(Name, names), _shared(pair.shared), _reasons(pair)])
    titles = ("first", "second") if group is None else ("node",)
    columns = [Column(name, fold="middle") for name in titles]
    yield from _section(title, (*columns, Column("shared", right=True), Column("reason")), rows, limit)


def _reasons(pair: UnfusedPair) -> str:
    """What torch said last comes first."""
    reasons = [refusal.reason for refusal in reversed(pair.refusals)]
    if pair.without_reason:
        reasons = ["refused without a reason", *(f"before: {reason}" for reason in reasons)]
    return "; ".join(reasons) or "not logged"


def _section(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], limit: int | None = None
) -> Iterator[Block]:
    if rows:
        yield Heading((title, "bold"), 2)
        yield Table(columns, rows, 2, limit, _ALL)


# A pair: what became of it, why, and both nodes next to each other.


def _pair_page(row: FusionDecision, limit: int | None) -> Iterator[Block]:
    facts = row.facts
    outcome = (OUTCOMES[row.outcome], _STYLES.get(row.outcome, "bold yellow"))
    yield Heading(
        [(f"{facts.first.name} and {facts.second.name}", "bold"), "  ", outcome, f"  in {row.graph}"]
    )
    yield from decision_lines(row.causes, f"{facts.first.name} {facts.second.name}")
    yield Facts(_decision(row))
    for text in reason_texts(row):
        yield Line(text, 2)
    yield Line()
    yield _members(facts, limit)
    yield Facts(_between(facts, fused=row.outcome == "fused"), 0)
    if facts.shared:
        total = sum(shared.bytes or 0 for shared in facts.shared if shared.matches)
        amount = f": {bytes_text(total)} of accesses that are the same" if total else ""
        yield Line([("used by both", "bold"), amount])
        for shared in facts.shared:
            yield from _shared_buffer(shared, facts)
    else:
        yield Line("they use no common buffer")
    yield from _attempts(row, limit)
    if row.outcome != "fused" and not row.causes and (advice := how_to_record_reasons(row.log)):
        yield Line([("to record why: ", "bold cyan"), advice])


def _decision(row: FusionDecision) -> Iterator[tuple[str, Inline]]:
    if row.group is not None:
        yield "into", Name(row.group.name)
        yield "kind", row.group.kind
    if (step := row.step) is not None:
        when = "the pass with reordered loops" if step.round is None else f"round {step.round}"
        yield (
            "when",
            f"{when}, step {step.number}: fusing {step.first} with {step.second} ({place(step.span)})",
        )
    if row.refusal is not None:
        yield "torch says", (row.refusal.reason, "bold")
        yield "meaning", meaning(row.refusal)
        yield "numbers", "\n".join(number_lines(row.refusal)) if row.refusal.numbers else ""
    yield "setting", ("\n".join(map(setting_text, row.settings)), "cyan") if row.settings else ""


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
    fit = {True: ("fit: ", "green"), False: ("do not fit: ", "yellow"), None: ("", "")}[facts.loops_fit]
    if fused and facts.loops_fit is False:
        fit = ("of these two alone do not fit, other nodes are between them: ", "")
    yield "loops", [fit, loops_text(facts)]


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


def _attempts(row: FusionDecision, limit: int | None) -> Iterator[Block]:
    if row.log.state not in ("proved", "disagrees"):
        word = "AMBIGUOUS: " if row.log.state == "ambiguous" else "no log: "
        yield Line([(word, "yellow"), log_text(row.log)])
        return
    yield Line([("in the log", "bold"), f" (at {place(row.log.span)}: {log_text(row.log)})"])
    if not row.attempts:
        yield Line("no line mentions the pair", 2)
        return
    shown = row.attempts if limit is None else row.attempts[-limit:]
    if len(shown) < len(row.attempts):
        yield Line((f"{len(row.attempts) - len(shown)} earlier mentions: {_ALL}", "dim"), 2)
    rows: list[list[Cell]] = [
        [
            _round(attempt.round),
            f"{attempt.first} with {attempt.second}",
            _shared(attempt.shared),
            (_attempt(attempt), "red" if attempt.what == "refused" or attempt.without_reason else ""),
            str(attempt.span.first) if attempt.span else "-",
        ]
        for attempt in shown
    ]
    columns = (
        Column("round"),
        Column("pair"),
        Column("shared", right=True),
        Column("what"),
        Column("line", right=True),
    )
    yield Table(columns, rows, 2)


def _attempt(attempt: PairAttempt) -> str:
    if attempt.refusal is not None:
        return f"refused: {attempt.refusal.reason}"
    if attempt.without_reason:
        return "refused without a reason"
    return "can be fused" if attempt.what == "possible" else attempt.what
