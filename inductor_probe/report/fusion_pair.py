"""The page of a pair: what became of it, why, and both sides next to each other."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.fusion import FusionDecision, PairAttempt, PairFacts, Refusal, SharedBuffer, Side
from inductor_probe.model.ir import Dim
from inductor_probe.model.span import Span
from inductor_probe.report.units import bytes_text, dims_text, shorten

_SAID = {
    "fused": ("fused", "bold green"),
    "refused": ("refused", "bold red"),
    "refused_silently": ("refused without a reason", "bold red"),
    "untold": ("not fused, and the log does not tell why", "bold yellow"),
    "never_tried": ("never tried", "bold yellow"),
    "no_log": ("not fused, and no log tells why", "bold yellow"),
}
_MOST_ACCESSES = 4


def pair_page(row: FusionDecision, width: int, limit: int | None) -> Iterator[RenderableType]:
    """Yield the page from top to bottom."""
    facts = row.facts
    said, style = _SAID[row.outcome]
    yield Text.assemble(
        (f"{facts.first.name} and {facts.second.name}", "bold"), "  ", (said, style), f"  in {row.graph}"
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
        _refusal_rows(answer, row.refusal)
    yield Padding(answer, (0, 0, 0, 2), expand=False)
    for sentence in row.because:
        yield Padding(Text(sentence), (0, 0, 0, 2), expand=False)
    yield Padding(_sides(facts, width, limit), (1, 0, 0, 0), expand=False)
    yield _between(facts, fused=row.outcome == "fused")
    yield from _shared(facts)
    yield from _attempts(row, limit)
    for step_text in row.next_steps:
        yield Text.assemble(("to learn why: ", "bold cyan"), step_text)


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _refusal_rows(grid: Table, refusal: Refusal) -> None:
    grid.add_row("torch says", Text(refusal.reason, style="bold"))
    grid.add_row("meaning", refusal.meaning or "not known here: these are torch's own words")
    if refusal.numbers:
        grid.add_row("numbers", Text("\n".join(f"{label}: {value}" for label, value in refusal.numbers)))
    for at, knob in enumerate(refusal.knobs):
        grid.add_row("setting" if at == 0 else "", Text(knob.text, style="cyan"))


def _sides(facts: PairFacts, width: int, limit: int | None) -> Table:
    """Both sides next to each other; what differs and matters is marked."""
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


def _cell(side: Side, label: str, limit: int | None) -> str:
    match label:
        case "nodes":
            return ", ".join(side.nodes) if side.nodes != (side.name,) else "-"
        case "does":
            return side.kind
        case "writes":
            return ", ".join(side.buffers) if side.buffers != (side.name,) else "-"
        case "device":
            return side.device or "-"
        case "loops":
            return _loops(side)
        case "sizes":
            return " and ".join(dims_text(dims) for dims in side.sizes) if side.sizes is not None else "-"
        case "from":
            more = len(side.origins) - len(side.origins[:limit])
            return (", ".join(side.origins[:limit]) or "-") + (f" and {more} more" if more else "")
        case "fused into":
            return side.top if side.top and side.top not in (side.name, *side.nodes[:1]) else "-"
    return side.kernel or "-"


def _loops(side: Side) -> str:
    if side.iteration is None:
        return "-"
    match side.iteration:
        case (tuple() as kept, tuple() as reduced):
            return _nest(kept) + (f" reducing {_nest(reduced)}" if reduced else "")
        case (numel, rnumel):
            return f"{numel} elements" + (f" reducing {rnumel}" if rnumel != 1 else "")
    return str(side.iteration)


def _nest(dims: tuple[Dim, ...]) -> str:
    return " x ".join(map(str, dims)) or "1"


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
        verdict, style = "of these two alone do not fit, others are between them: ", ""
    grid.add_row("loops", Text.assemble((verdict, style), facts.loops))
    return grid


def _shared(facts: PairFacts) -> Iterator[RenderableType]:
    if not facts.shared:
        yield Text("they use no buffer in common")
        return
    total = sum(row.bytes or 0 for row in facts.shared if row.matches)
    counted = f": {bytes_text(total)} of accesses that are the same" if total else ""
    yield Text.assemble(("used by both", "bold"), counted)
    for row in facts.shared:
        yield from _shared_buffer(row, facts)


def _shared_buffer(row: SharedBuffer, facts: PairFacts) -> Iterator[RenderableType]:
    mark, style = ("=", "green") if row.matches else ("!", "bold yellow")
    relation = row.relation.replace("first", facts.first.name).replace("second", facts.second.name)
    size = f", {bytes_text(row.bytes)}" if row.matches and row.bytes is not None else ""
    note = "" if row.matches else ", no access is the same in both"
    yield Text.assemble((f"  {mark} ", style), (row.buffer, "bold"), f"  {relation}{size}{note}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    same = set(row.first) & set(row.second)
    for name, accesses in ((facts.first.name, row.first), (facts.second.name, row.second)):
        for at, access in enumerate(accesses[:_MOST_ACCESSES]):
            grid.add_row(
                shorten(name, 24) if at == 0 else "",
                Text(access, style="green" if access in same else "yellow"),
            )
        if len(accesses) > _MOST_ACCESSES:
            grid.add_row("", f"and {len(accesses) - _MOST_ACCESSES} more")
    yield Padding(grid, (0, 0, 0, 6), expand=False)


def _attempts(row: FusionDecision, limit: int | None) -> Iterator[RenderableType]:
    if row.log.state not in ("proved", "disagrees"):
        word = "AMBIGUOUS: " if row.log.state == "ambiguous" else "no log: "
        yield Text.assemble((word, "yellow"), row.log.how)
        return
    yield Text.assemble(("in the log", "bold"), f" (at {_short(row.log.span)}: {row.log.how})")
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
            Text(_what(attempt), style="red" if attempt.what == "refused" or attempt.silent else ""),
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
    if attempt.silent:
        return "refused without a reason"
    return {"fused": "fused", "possible": "could be fused", "weighed": "weighed"}.get(
        attempt.what, attempt.what
    )


def _short(span: Span | None) -> str:
    return f"{span.path.name}:{span.first}" if span else "?"
