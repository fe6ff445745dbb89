"""A comparison on one screen: what changed in sentences, then each part, weightiest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.diff import (
    BufferChange,
    CallChange,
    FactChange,
    FusionChange,
    GraphDiff,
    NodeChange,
    RunDiff,
    Statement,
)
from inductor_probe.report.columns import shorten_path
from inductor_probe.report.facts import code_text
from inductor_probe.report.units import shorten
from inductor_probe.report.words.diff import (
    buffer_words,
    cosmetic_words,
    count_name,
    count_words,
    fact_words,
    headlines,
    is_of_environment,
    missing_words,
    names_words,
    proof_words,
    run_words,
    shared_facts,
    statement_words,
)

_SHOWN = 8
"""So many entries of a section are shown, unless all are asked for."""
_GROUP = 6
"""So many nodes of a fused group are named."""
_SHORTEST = 20  # columns of a path
_OPERATIONS = 6
"""So many operations of a node are named, those that changed most."""


class DiffPage:
    """What changed between two graphs or two runs; `everything` shows what did not change as well."""

    def __init__(self, diff: GraphDiff | RunDiff, everything: bool = False) -> None:
        self.diff = diff
        self.everything = everything

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if isinstance(self.diff, GraphDiff):
            a, b = self.diff.a, self.diff.b
            yield from _sides(options.max_width, (a.label, str(a.path)), (b.label, str(b.path)))
            yield from _environment(self.diff.environment)
            yield Text()
            yield from _graph(self.diff, self.everything, options.max_width)
            return
        yield from _run(self.diff, self.everything, options.max_width)


def _run(diff: RunDiff, everything: bool, width: int) -> Iterator[RenderableType]:
    yield from _sides(width, (diff.label_a, str(diff.a)), (diff.label_b, str(diff.b)))
    yield from _environment(diff.environment)
    if len(diff.graphs) != 1:
        yield Text(run_words(diff), style="bold")
    for count in diff.counts:
        if count.changed:
            yield Text(f"  {count_words(count)}")
    for word, names in (("only in A", diff.removed), ("only in B", diff.added)):
        for name in names:
            yield Text.assemble("  ", (f"{word}: ", "red"), name)
    folded = [graph for graph in diff.graphs if graph.equal and not graph.missing]
    if everything or len(diff.graphs) == 1:
        folded = []
    if folded:
        yield Text("equal, names and spelling aside:", style="green")
        for graph in folded:
            yield Text(f"  {names_words(graph.a.name, graph.b.name)}")
    for graph in diff.graphs:
        if graph not in folded:
            yield Text()
            yield from _graph(graph, everything, width, graph.environment)


def _sides(width: int, *sides: tuple[str | None, str]) -> Iterator[Text]:
    """Name A and B by their labels where there are some, and by their paths."""
    longest = max(len(label or "") for label, _ in sides)
    for side, (label, path) in zip("AB", sides, strict=True):
        head = f"{side} {label or '':<{longest}}  " if longest else f"{side} "
        yield Text.assemble((head, "bold"), shorten_path(path, max(width - len(head), _SHORTEST)))


def _environment(facts: Sequence[FactChange]) -> Iterator[RenderableType]:
    """Say what was set otherwise: it may explain all that follows."""
    if facts:
        yield Text("environment", style="bold cyan")
        for fact in facts:
            yield _hanging(fact_words(fact))


def _graph(
    diff: GraphDiff, everything: bool, width: int, environment: Sequence[FactChange] = ()
) -> Iterator[RenderableType]:
    yield Text.assemble((names_words(diff.a.name, diff.b.name), "bold"))
    for fact in environment:
        yield Text(f"  {fact_words(fact)}", style="dim")
    for sentence in headlines(diff):
        yield _hanging(sentence, "green" if diff.equal else "")
    for part in diff.missing:
        yield _hanging(missing_words(part), "yellow")
    limit = None if everything else _SHOWN
    sections: tuple[tuple[str, list[RenderableType]], ...] = (
        ("outputs", list(_buffers(diff.outputs, everything))),
        ("inputs", list(_buffers(diff.inputs, everything))),
        ("computation", [_node(node) for node in diff.nodes if node.a and node.b]),
        ("kernels", list(_kernels(diff, everything, width))),
        ("library calls", [_call(call) for call in diff.calls]),
        ("fusion", [_fusion(change) for change in diff.fusion]),
        ("buffers", list(_buffers(diff.buffers, everything))),
        ("unmatched nodes", list(_unmatched(diff.nodes, everything))),
    )
    for title, entries in sections:
        if entries:
            yield Text()
            yield Text(title, style="bold cyan")
            yield from entries[:limit]
            if limit is not None and len(entries) > limit:
                yield Text(f"  and {len(entries) - limit} more (--all)", style="dim")
    if everything:
        yield from _numbers(diff)
    if diff.cosmetic and not diff.equal:
        yield Text()
        yield _hanging(f"spelling only: {cosmetic_words(diff)}", "dim", 0)


def _hanging(text: str, style: str = "", indent: int = 2) -> RenderableType:
    """A sentence whose further lines stand under its first."""
    return Padding(Text(text, style=style), (0, 0, 0, indent), expand=False)


def _entry(head: str, lines: Sequence[str | Text]) -> RenderableType:
    body = [
        _hanging(line, indent=4) if isinstance(line, str) else Padding(line, (0, 0, 0, 4)) for line in lines
    ]
    return Group(Padding(Text(head, style="bold"), (0, 0, 0, 2), expand=False), *body)


def _buffers(changes: Sequence[BufferChange], everything: bool) -> Iterator[RenderableType]:
    for change in changes:
        head = buffer_words(change)
        if change.a is None or change.b is None:
            yield _entry(f"{head}: only in {'A' if change.b is None else 'B'}", ())
            continue
        facts = [fact for fact in change.facts if everything or fact.weight != "cosmetic"]
        if facts:
            lines = [
                f"was {fact.a}, is {fact.b}" if fact.name == "format" else fact_words(fact) for fact in facts
            ]
            yield _entry(head, lines)


def _node(node: NodeChange) -> RenderableType:
    says = {
        "computes": "computes differently",
        "indexes": "the same operations at other indices",
        "loops": "the same operations in other loops",
        "calls": "another library call",
    }
    lines: list[str | Text] = []
    if node.loops:
        lines.append(fact_words(node.loops))
    if node.operations:
        most = sorted(node.operations, key=lambda count: -abs((count.a or 0) - (count.b or 0)))
        more = f" and {len(most) - _OPERATIONS} more" if len(most) > _OPERATIONS else ""
        named = ", ".join(f"{each.name} {each.a} -> {each.b}" for each in most[:_OPERATIONS])
        lines.append(f"operations: {named}{more}")
    if node.first_a or node.first_b:
        lines += [_statement("-", node.first_a, "red"), _statement("+", node.first_b, "green")]
    return _entry(
        f"{names_words(node.a, node.b)}: {says.get(node.kind, node.kind)}{proof_words(node.proof)}", lines
    )


def _statement(sign: str, statement: Statement | None, style: str) -> Text:
    if statement is None:
        return Text(f"{sign} no further statement", style="dim")
    where = f"   {statement.span.path.name}:{statement.span.first}" if statement.span else ""
    inside = f" in {statement.block}" if statement.block != "body" else ""
    return Text.assemble((f"{sign} {statement_words(statement)}{inside}", style), (where, "dim"))


def _kernels(diff: GraphDiff, everything: bool, width: int) -> Iterator[RenderableType]:
    kernels = diff.kernels
    shared = {
        fact: names
        for fact, names in shared_facts(kernels)
        if len(names) > 1 and not is_of_environment(diff, fact)
    }
    for match in kernels:
        if match.relation == "same" and not everything:
            continue
        room = max(width - 20, 24)
        lines: list[str | Text] = []
        if match.relation in ("changed", "same"):
            head = names_words(shorten(match.a[0], room), shorten(match.b[0], room))
            head = f"{head}: {'the same' if match.relation == 'same' else 'changed'}"
        else:
            head = match.relation
            lines += [Text(f"- {shorten(name, room)}", style="red") for name in match.a]
            lines += [Text(f"+ {shorten(name, room)}", style="green") for name in match.b]
        lines += [
            fact_words(fact)
            for fact in match.facts
            if fact not in shared and fact.weight != "cosmetic" and not is_of_environment(diff, fact)
        ]
        if match.code:
            lines.append(f"code -{match.code.removed} +{match.code.added} lines (--code shows them)")
        yield _entry(head, lines)
    if shared:
        yield _entry(
            "in several kernels",
            [f"{fact_words(fact)} ({len(names)} kernels)" for fact, names in shared.items()],
        )


def _call(call: CallChange) -> RenderableType:
    if call.a is None or call.b is None:
        return _entry(f"{call.a or call.b}: only in {'A' if call.b is None else 'B'}", ())
    lines: list[str | Text] = []
    for fact in call.facts:
        lines += [Text(f"- {fact.a}", style="red"), Text(f"+ {fact.b}", style="green")]
    return _entry(
        f"{names_words(call.a, call.b)}: {', '.join(fact.name for fact in call.facts)} changed", lines
    )


def _fusion(change: FusionChange) -> RenderableType:
    says = {
        "split": "fused in A, not in B",
        "merged": "fused in B, not in A",
        "regrouped": "fused with others",
    }
    return _entry(
        says[change.relation],
        [
            Text(f"- {_groups(change.a)}", style="red"),
            Text(f"+ {_groups(change.b)}", style="green"),
        ],
    )


def _groups(groups: tuple[tuple[str, ...], ...]) -> str:
    shown = [
        " ".join(group[:_GROUP]) + (f" and {len(group) - _GROUP} more" if len(group) > _GROUP else "")
        for group in groups[:_GROUP]
    ]
    more = f" | and {len(groups) - _GROUP} more" if len(groups) > _GROUP else ""
    return " | ".join(shown) + more


def _unmatched(nodes: Sequence[NodeChange], everything: bool) -> Iterator[RenderableType]:
    for which, kind in (("A", "removed"), ("B", "added")):
        names = [node.a or node.b or "" for node in nodes if node.kind == kind]
        if names:
            shown = names if everything else names[:_GROUP]
            more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
            yield _hanging(f"only in {which}: {' '.join(shown)}{more}")


def _numbers(diff: GraphDiff) -> Iterator[RenderableType]:
    yield Text()
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("", "A", "B"):
        table.add_column(title, justify="right" if title else "left")
    for count in diff.counts:
        style = "bold" if count.changed else ""
        numbers = ("?" if number is None else str(number) for number in (count.a, count.b))
        table.add_row(count_name(count.name), *numbers, style=style)
    table.add_row("matched nodes", *[str(diff.matched_nodes)] * 2)
    table.add_row("matched buffers", *[str(diff.matched_buffers)] * 2)
    yield Padding(table, (0, 0, 0, 2), expand=False)


class CodePage:
    """Unified diffs of matched kernels."""

    def __init__(self, diffs: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self.diffs = diffs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        styles = {"+": "green", "-": "red", "@": "cyan"}
        for at, (title, lines) in enumerate(self.diffs):
            if at:
                yield Text()
            yield Text(title, style="bold")
            for line in lines:
                yield code_text(line, styles.get(line[:1], ""))
