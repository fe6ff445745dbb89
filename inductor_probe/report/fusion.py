"""Fusion on the screen: a graph's, a node's, and a pair's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.fusion import (
    FusionDecision,
    FusionGroup,
    FusionStep,
    GraphFusion,
    LogMatch,
    NodeFusion,
    RefusalCount,
    RoundRow,
    UnfusedPair,
)
from inductor_probe.model.span import Span
from inductor_probe.report.fusion_pair import pair_page
from inductor_probe.report.units import bytes_text, counted, shorten
from inductor_probe.report.words.fusion import how_to_record_reasons, log_text, meaning, setting_text

_SHOWN = 10
"""Rows of a long list that are shown unless all are asked for."""
_SHORTEST_NAME = 16


class FusionPages:
    """Every answer on a page of its own. `everything` shows lists to their end."""

    def __init__(
        self, rows: Sequence[GraphFusion | NodeFusion | FusionDecision], everything: bool = False
    ) -> None:
        self.rows = rows
        self.limit = None if everything else _SHOWN

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for at, row in enumerate(self.rows):
            if at:
                yield Text()
            match row:
                case GraphFusion():
                    yield from _graph_page(row, options.max_width, self.limit)
                case NodeFusion():
                    yield from _node_page(row, options.max_width, self.limit)
                case FusionDecision():
                    yield from pair_page(row, options.max_width, self.limit)


def _graph_page(row: GraphFusion, width: int, limit: int | None) -> Iterator[RenderableType]:
    before = counted(row.nodes_before, "node")
    yield Text.assemble((row.graph, "bold"), f"  {before} before fusion, {row.nodes_after} after")
    if row.nodes_before == row.nodes_after == 1:
        yield Text("one node: there is nothing to fuse")
        return
    yield from log_lines(row.log)
    yield from _rounds(row.rounds)
    yield from _groups(row.groups, width, limit)
    yield from _steps(row.steps, width, limit)
    yield from _refusals(row.refusals, width)
    yield from _unfused("tried and not fused, most shared first", row.unfused, width, limit)


def _node_page(row: NodeFusion, width: int, limit: int | None) -> Iterator[RenderableType]:
    group = row.group
    alone = group is not None and set(group.nodes) == set(row.nodes)
    where = "not known after fusion" if group is None else "not fused" if alone else f"in {group.name}"
    yield Text.assemble((row.name, "bold"), f"  {shorten(where, max(width - 40, 40))}  in {row.graph}")
    yield from log_lines(row.log)
    if group is not None:
        yield from _groups([group], width, limit)
    yield from _steps(row.steps, width, limit)
    name = group.name if group else row.name
    title = f"tried and not fused with {shorten(name, 40)}, most shared first"
    yield from _unfused(title, row.unfused, width, limit, group)
    if alone and not row.unfused and row.log.state == "proved":
        yield Text("the log has no pair of it with another node")


def log_lines(match: LogMatch) -> Iterator[Text]:
    """Say where the log is that the page speaks of, or why there is none and how to get it."""
    if match.state in ("proved", "disagrees"):
        style = "dim" if match.state == "proved" else "yellow"
        yield Text(f"log at {short(match.span)}: {log_text(match)}", style=style)
        return
    word = "AMBIGUOUS: " if match.state == "ambiguous" else "no reasons: "
    yield Text.assemble((word, "yellow"), log_text(match))
    if advice := how_to_record_reasons(match):
        yield Text.assemble(("to record them: ", "bold cyan"), advice)


def short(span: Span | None) -> str:
    """`stderr.txt:12`: the file's name and the line."""
    return f"{span.path.name}:{span.first}" if span else "?"


def _rounds(rounds: Sequence[RoundRow]) -> Iterator[RenderableType]:
    if not rounds:
        return
    table = _table(
        "round", "nodes", "could be fused", "fused", "refused", right=("could be fused", "fused", "refused")
    )
    for part in rounds:
        nodes = f"{part.nodes_before} -> {part.nodes_after}" if part.nodes_before is not None else "-"
        name = "reordered" if part.number is None else str(part.number)
        table.add_row(
            name,
            nodes,
            "?" if part.possible is None else str(part.possible),
            str(part.fused),
            str(part.refused),
        )
    yield from _section("rounds", table)


def _groups(groups: Sequence[FusionGroup], width: int, limit: int | None) -> Iterator[RenderableType]:
    fused = [group for group in groups if len(group.nodes) > 1]
    if not fused:
        if groups:
            yield Text("no two nodes were fused" if len(groups) > 1 else "not fused with another node")
        return
    table = _table("node after fusion", "of", "kind", "kernel", "steps", right=("of",))
    room = max((width - 40) // 2, _SHORTEST_NAME)
    for group in fused[:limit]:
        steps = _numbers(group.steps)
        table.add_row(
            Text(shorten(group.name, room), style="bold"),
            str(len(group.nodes)),
            group.kind.removesuffix("SchedulerNode"),
            shorten(group.kernel or "-", room),
            steps or "-",
        )
    alone = len(groups) - len(fused)
    title = "fused" if not alone else f"fused ({counted(alone, 'node')} not fused)"
    yield from _section(title, table, len(fused), limit)


def _numbers(numbers: Sequence[int]) -> str:
    """`1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _steps(steps: Sequence[FusionStep], width: int, limit: int | None) -> Iterator[RenderableType]:
    if not steps:
        return
    table = _table("step", "round", "first", "second", "shared", "log", right=("step", "shared"))
    room = max((width - 45) // 2, _SHORTEST_NAME)
    for step in steps[:limit]:
        table.add_row(
            str(step.number),
            "reordered" if step.round is None else str(step.round),
            shorten(step.first, room),
            shorten(step.second, room),
            shared_text(step.shared),
            short(step.span),
        )
    yield from _section("steps", table, len(steps), limit)


def shared_text(shared: int | bool | None) -> str:
    """What a pair shares: bytes, or whether."""
    if shared is None:
        return "-"
    return ("yes" if shared else "none") if isinstance(shared, bool) else bytes_text(shared)


def _refusals(counts: Sequence[RefusalCount], width: int) -> Iterator[RenderableType]:
    if not counts:
        return
    table = _table("unfused", "pairs", "lines", "reason", right=("unfused", "pairs", "lines"))
    for count in counts:
        refusal = count.refusal
        reason = Text(refusal.form.replace("%s", "…"), style="bold")
        reason.append(f"\n{meaning(refusal)}", style="not bold")
        for setting in count.settings:
            reason.append(f"\n{setting_text(setting)}", style="not bold cyan")
        table.add_row(str(count.unfused), str(count.pairs), str(count.lines), reason)
    yield from _section("refused (pairs not fused in the end, pairs in all, lines of the log)", table)


def _unfused(
    title: str, pairs: Sequence[UnfusedPair], width: int, limit: int | None, group: FusionGroup | None = None
) -> Iterator[RenderableType]:
    if not pairs:
        return
    columns = ["first", "second"] if group is None else ["node"]
    table = _table(*columns, "shared", "reason", right=("shared",))
    room = max((width - 40) // 2, _SHORTEST_NAME)
    for pair in pairs[:limit]:
        names = [pair.first, pair.second]
        if group is not None:
            names.remove(group.name)
        table.add_row(
            *(shorten(name, room) for name in names), shared_text(pair.shared), Text(_reasons(pair))
        )
    yield from _section(title, table, len(pairs), limit)


def _reasons(pair: UnfusedPair) -> str:
    """What torch said last comes first."""
    reasons = [refusal.reason for refusal in reversed(pair.refusals)]
    if pair.without_reason:
        reasons = ["refused without a reason", *(f"before: {reason}" for reason in reasons)]
    return "; ".join(reasons) or "not logged"


def _table(*columns: str, right: Iterable[str] = ()) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        long = column in ("reason", "kernel")
        table.add_column(
            column, justify="right" if column in right else "left", no_wrap=not long, overflow="fold"
        )
    return table


def _section(title: str, table: Table, count: int = 0, limit: int | None = None) -> Iterator[RenderableType]:
    yield Text(title, style="bold")
    yield Padding(table, (0, 0, 0, 2), expand=False)
    if limit is not None and count > limit:
        yield Text(f"  and {count - limit} more: --all shows them", style="dim")
