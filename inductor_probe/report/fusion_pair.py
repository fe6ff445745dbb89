"""The page of a pair: what became of it, why, and both nodes next to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.fusion import (
    FusionDecision,
    Outcome,
    PairAttempt,
    PairFacts,
    PairMember,
    SharedBuffer,
)
from inductor_probe.model.span import Span
from inductor_probe.report.units import bytes_text, dims_text, shorten
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

_STYLES: Mapping[Outcome, str] = {
    "fused": "bold green",
    "refused": "bold red",
    "refused_without_reason": "bold red",
}
_MOST_ACCESSES = 4


def pair_page(row: FusionDecision, width: int, limit: int | None) -> Iterator[RenderableType]:
    """Yield the page from top to bottom."""
    facts = row.facts
    outcome = (OUTCOMES[row.outcome], _STYLES.get(row.outcome, "bold yellow"))
    yield Text.assemble(
        (f"{facts.first.name} and {facts.second.name}", "bold"), "  ", outcome, f"  in {row.graph}"
    )
    answer = _grid()
    if row.group is not None:
        answer.add_row("into", Text(shorten(row.group.name, max(width - 16, 16))))
        answer.add_row("kind", row.group.kind)
    if row.step is not None:
        step = row.step
        when = "the pass with reordered loops" if step.round is None else f"round {step.round}"
        answer.add_row(
            "when",
            f"{when}, step {step.number}: fusing {step.first} with {step.second} ({_short(step.span)})",
        )
    if row.refusal is not None:
        answer.add_row("torch says", Text(row.refusal.reason, style="bold"))
        answer.add_row("meaning", meaning(row.refusal))
        if row.refusal.numbers:
            answer.add_row("numbers", Text("\n".join(number_lines(row.refusal))))
    for at, setting in enumerate(row.settings):
        answer.add_row("" if at else "setting", Text(setting_text(setting), style="cyan"))
    yield Padding(answer, (0, 0, 0, 2), expand=False)
    for sentence in reason_texts(row):
        yield Padding(Text(sentence), (0, 0, 0, 2), expand=False)
    yield Padding(_members(facts, width, limit), (1, 0, 0, 0), expand=False)
    yield _between(facts, fused=row.outcome == "fused")
    yield from _shared(facts)
    yield from _attempts(row, limit)
    if row.outcome != "fused" and (advice := how_to_record_reasons(row.log)):
        yield Text.assemble(("to record why: ", "bold cyan"), advice)


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _members(facts: PairFacts, width: int, limit: int | None) -> Table:
    """Both nodes next to each other; loops and devices that differ are highlighted."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", style="dim", no_wrap=True)
    table.add_column(Text(facts.first.name), overflow="fold")
    table.add_column(Text(facts.second.name), overflow="fold")
    room = max(width // 2 - 10, 24)
    for label in _LABELS:
        one, other = _cell(facts.first, label, limit), _cell(facts.second, label, limit)
        if one == other == "-":
            continue
        style = "yellow" if label in ("device", "loops") and one != other else ""
        if label in ("kernel", "fused into"):
            one, other = shorten(one, room), shorten(other, room)
        table.add_row(label, Text(one, style=style), Text(other, style=style))
    return table


_LABELS = ("nodes", "does", "writes", "device", "loops", "sizes", "from", "fused into", "kernel")


def _cell(member: PairMember, label: str, limit: int | None) -> str:
    match label:
        case "nodes":
            return ", ".join(member.nodes) if member.nodes != (member.name,) else "-"
        case "does":
            return " and ".join(member.kinds)
        case "writes":
            return ", ".join(member.buffers) if member.buffers != (member.name,) else "-"
        case "device":
            return member.device or "-"
        case "loops":
            return member_loops(member)
        case "sizes":
            return " and ".join(dims_text(dims) for dims in member.sizes) if member.sizes is not None else "-"
        case "from":
            more = len(member.origins) - len(member.origins[:limit])
            return (", ".join(member.origins[:limit]) or "-") + (f" and {more} more" if more else "")
        case "fused into":
            return member.top if member.top and member.top not in (member.name, *member.nodes[:1]) else "-"
    return member.kernel or "-"


def _between(facts: PairFacts, *, fused: bool) -> Table:
    grid = _grid()
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
    grid.add_row("order", order)
    verdict, style = {True: ("fit: ", "green"), False: ("do not fit: ", "yellow"), None: ("", "")}[
        facts.loops_fit
    ]
    if fused and facts.loops_fit is False:
        verdict, style = "of these two alone do not fit, other nodes are between them: ", ""
    grid.add_row("loops", Text.assemble((verdict, style), loops_text(facts)))
    return grid


def _shared(facts: PairFacts) -> Iterator[RenderableType]:
    if not facts.shared:
        yield Text("they use no common buffer")
        return
    total = sum(row.bytes or 0 for row in facts.shared if row.matches)
    counted = f": {bytes_text(total)} of accesses that are the same" if total else ""
    yield Text.assemble(("used by both", "bold"), counted)
    for row in facts.shared:
        yield from _shared_buffer(row, facts)


def _shared_buffer(row: SharedBuffer, facts: PairFacts) -> Iterator[RenderableType]:
    sign, style = ("=", "green") if row.matches else ("!", "bold yellow")
    size = f", {bytes_text(row.bytes)}" if row.matches and row.bytes is not None else ""
    unequal = "" if row.matches else ", no access is the same in both"
    relation = relation_text(row, facts)
    yield Text.assemble((f"  {sign} ", style), (row.buffer, "bold"), f"  {relation}{size}{unequal}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    same = set(row.first) & set(row.second)
    for name, accesses in ((facts.first.name, row.first), (facts.second.name, row.second)):
        for at, access in enumerate(accesses[:_MOST_ACCESSES]):
            grid.add_row(
                shorten(name, 24) if at == 0 else "",
                Text(access_text(access), style="green" if access in same else "yellow"),
            )
        if len(accesses) > _MOST_ACCESSES:
            grid.add_row("", f"and {len(accesses) - _MOST_ACCESSES} more")
    yield Padding(grid, (0, 0, 0, 6), expand=False)


def _attempts(row: FusionDecision, limit: int | None) -> Iterator[RenderableType]:
    if row.log.state not in ("proved", "disagrees"):
        word = "AMBIGUOUS: " if row.log.state == "ambiguous" else "no log: "
        yield Text.assemble((word, "yellow"), log_text(row.log))
        return
    yield Text.assemble(("in the log", "bold"), f" (at {_short(row.log.span)}: {log_text(row.log)})")
    if not row.attempts:
        yield Text("  no line mentions the pair")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in ("round", "pair", "shared", "what", "line"):
        table.add_column(name, justify="right" if name in ("shared", "line") else "left", overflow="fold")
    shown = row.attempts if limit is None else row.attempts[-limit:]
    for attempt in shown:
        table.add_row(
            "reordered" if attempt.round is None else str(attempt.round),
            f"{attempt.first} with {attempt.second}",
            _shared_amount(attempt.shared),
            Text(_what(attempt), style="red" if attempt.what == "refused" or attempt.without_reason else ""),
            str(attempt.span.first) if attempt.span else "-",
        )
    if len(shown) < len(row.attempts):
        yield Text(f"  {len(row.attempts) - len(shown)} earlier mentions: --all shows them", style="dim")
    yield Padding(table, (0, 0, 0, 2), expand=False)


def _shared_amount(shared: int | bool | None) -> str:
    if shared is None:
        return "-"
    return ("yes" if shared else "none") if isinstance(shared, bool) else bytes_text(shared)


def _what(attempt: PairAttempt) -> str:
    if attempt.refusal is not None:
        return f"refused: {attempt.refusal.reason}"
    if attempt.without_reason:
        return "refused without a reason"
    return "can be fused" if attempt.what == "possible" else attempt.what


def _short(span: Span | None) -> str:
    return f"{span.path.name}:{span.first}" if span else "?"
