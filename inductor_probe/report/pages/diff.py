"""A comparison: what changed in sentences, then each part, weightiest first; and the code of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inductor_probe.catalogue.templates import listed
from inductor_probe.model.decision import Decision
from inductor_probe.model.diff import (
    BufferChange,
    CallChange,
    DecisionChange,
    FactChange,
    FusionChange,
    GraphDiff,
    NodeChange,
    RunDiff,
    Statement,
)
from inductor_probe.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Fold,
    Heading,
    Inline,
    Line,
    Name,
    Piece,
    Table,
)
from inductor_probe.report.words.decisions import kind_words, names_of, sentence
from inductor_probe.report.words.diff import (
    NOT_DECIDED,
    buffer_words,
    cosmetic_words,
    count_name,
    count_words,
    decision_words,
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

_MOST_ENTRIES = 8
"""So many entries of a section are shown, unless all are asked for."""
_MOST_NODES = 6
"""So many nodes of a fused group are named."""
_MOST_OPERATIONS = 6
"""So many operations of a node are named, those that changed most."""
_MOST_TEXTS = 20
"""Pairs of kernels whose code can be unfolded."""

CodeDiff = tuple[str, tuple[str, ...]]
"""The names of a pair of kernels, and the unified diff of their text."""
_Entry = tuple[Inline, Sequence[Inline]]
"""What changed, and how: lines below it."""


def diff_page(
    diff: GraphDiff | RunDiff, code: Callable[[], Sequence[CodeDiff]], *, everything: bool = False
) -> Iterator[Block]:
    """Yield what changed between two graphs or two runs.

    Args:
        diff: the changes. code: compares the code of kernels; called where it is unfolded.
        everything: what did not change, too, and lists to their end.
    """
    if isinstance(diff, GraphDiff):
        yield sides_table((diff.a.label, str(diff.a.path)), (diff.b.label, str(diff.b.path)))
        yield from environment_lines(diff.environment)
        yield Line()
        yield from _graph(diff, everything)
    else:
        yield from _run(diff, everything)
    if any(match.code for graph in _graphs(diff) for match in graph.kernels):
        yield Fold("code of the kernels that changed", lambda: code_page(code()[:_MOST_TEXTS]))


def _graphs(diff: GraphDiff | RunDiff) -> Sequence[GraphDiff]:
    return (diff,) if isinstance(diff, GraphDiff) else diff.graphs


def code_page(diffs: Sequence[CodeDiff]) -> Iterator[Block]:
    """Yield unified diffs of pairs of kernels."""
    for number, (title, lines) in enumerate(diffs):
        if number:
            yield Line()
        yield Heading((title, "bold"), 2)
        if lines:
            yield Code("\n".join(lines), "diff")


def _run(diff: RunDiff, everything: bool) -> Iterator[Block]:
    yield sides_table((diff.label_a, str(diff.a)), (diff.label_b, str(diff.b)))
    yield from environment_lines(diff.environment)
    if len(diff.graphs) != 1:
        yield Line((run_words(diff), "bold"))
    for count in diff.counts:
        if count.changed:
            yield Line(count_words(count), 2)
    for word, names in (("only in A", diff.removed), ("only in B", diff.added)):
        for name in names:
            yield Line([(f"{word}: ", "red"), name], 2)
    equal = [graph for graph in diff.graphs if graph.equal and not graph.missing]
    if everything or len(diff.graphs) == 1:
        equal = []
    if equal:
        yield Line(("equal, names and spelling aside:", "green"))
        for graph in equal:
            yield Line(names_words(graph.a.name, graph.b.name), 2)
    for graph in diff.graphs:
        if graph not in equal:
            yield Line()
            yield from _graph(graph, everything, graph.environment)


def sides_table(*sides: tuple[str | None, str]) -> Table:
    """Name A and B by their labels where there are some, and by their paths."""
    labels = any(label for label, _ in sides)
    rows: list[list[Cell]] = [
        [(side, "bold"), *([(label or "", "bold")] if labels else []), path]
        for side, (label, path) in zip("AB", sides, strict=True)
    ]
    return Table([Column(""), *([Column("")] if labels else []), Column("", fold="path")], rows)


def environment_lines(facts: Sequence[FactChange]) -> Iterator[Block]:
    """Say what was set otherwise: it may explain all that follows."""
    if facts:
        yield Heading(("environment", "bold cyan"), 2)
        for fact in facts:
            yield Line(fact_words(fact), 2)


def _graph(diff: GraphDiff, everything: bool, environment: Sequence[FactChange] = ()) -> Iterator[Block]:
    yield Heading((names_words(diff.a.name, diff.b.name), "bold"))
    for fact in environment:
        yield Line((fact_words(fact), "dim"), 2)
    for headline in headlines(diff):
        yield Line((headline, "green" if diff.equal else ""), 2)
    for part in diff.missing:
        yield Line((missing_words(part), "yellow"), 2)
    sections: tuple[tuple[str, list[_Entry]], ...] = (
        ("outputs", list(_buffers(diff.outputs, everything))),
        ("inputs", list(_buffers(diff.inputs, everything))),
        ("decisions", list(_decisions(diff.decisions))),
        ("computation", [_node(node) for node in diff.nodes if node.a and node.b]),
        ("kernels", list(_kernels(diff, everything))),
        ("library calls", [_call(call) for call in diff.calls]),
        ("fusion", [_fusion(change) for change in diff.fusion]),
        ("buffers", list(_buffers(diff.buffers, everything))),
        ("unmatched nodes", list(_unmatched(diff.nodes, everything))),
    )
    for title, entries in sections:
        if not entries:
            continue
        yield Line()
        yield Heading((title, "bold cyan"), 2)
        shown = entries if everything else entries[:_MOST_ENTRIES]
        for head, lines in shown:
            yield Line(head, 2)
            for line in lines:
                yield Line(line, 4)
        if len(shown) < len(entries):
            yield Line((f"and {len(entries) - len(shown)} more (--all)", "dim"), 2)
    if everything:
        yield Line()
        yield _numbers(diff)
    if diff.cosmetic and not diff.equal:
        yield Line()
        yield Line((f"spelling only: {cosmetic_words(diff)}", "dim"))


def _buffers(changes: Sequence[BufferChange], everything: bool) -> Iterator[_Entry]:
    for change in changes:
        head = buffer_words(change)
        if change.a is None or change.b is None:
            yield (f"{head}: only in {'A' if change.b is None else 'B'}", "bold"), ()
            continue
        facts = [fact for fact in change.facts if everything or fact.weight != "cosmetic"]
        if facts:
            yield (
                (head, "bold"),
                [
                    f"was {fact.a}, is {fact.b}" if fact.name == "format" else fact_words(fact)
                    for fact in facts
                ],
            )


def _node(node: NodeChange) -> _Entry:
    kinds = {
        "computes": "computes differently",
        "indexes": "the same operations at other indices",
        "loops": "the same operations in other loops",
        "calls": "another library call",
    }
    lines: list[Inline] = [fact_words(node.loops)] if node.loops else []
    if node.operations:
        counts = sorted(node.operations, key=lambda count: -abs((count.a or 0) - (count.b or 0)))
        more = f" and {len(counts) - _MOST_OPERATIONS} more" if len(counts) > _MOST_OPERATIONS else ""
        names = ", ".join(f"{count.name} {count.a} -> {count.b}" for count in counts[:_MOST_OPERATIONS])
        lines.append(f"operations: {names}{more}")
    if node.first_a or node.first_b:
        lines += [_statement("-", node.first_a, "red"), _statement("+", node.first_b, "green")]
    kind = kinds.get(node.kind, node.kind)
    return (f"{names_words(node.a, node.b)}: {kind}{proof_words(node.proof)}", "bold"), lines


def _decisions(changes: Sequence[DecisionChange]) -> Iterator[_Entry]:
    """Yield changed decisions; those that one side took alone, alike for several subjects, as one."""
    alone: dict[tuple[str, str, bool], list[DecisionChange]] = {}
    for change in changes:
        if change.a and change.b:
            names = names_words(*(_subject(side) for side in (change.a, change.b)))
            yield (
                (f"{kind_words(change.a.kind)} of {names}", "bold"),
                [(f"- {sentence(change.a)}", "red"), (f"+ {sentence(change.b)}", "green")],
            )
        else:
            decision = change.decision
            key = (decision.kind, decision_words(decision), change.a is None)
            alone.setdefault(key, []).append(change)
    for (_, words, is_new), alike in alone.items():
        decision = alike[0].decision
        names = listed([_subject(change.decision) for change in alike], _MOST_NODES)
        text = sentence(decision) if len(alike) == 1 else words
        a, b = (NOT_DECIDED, text) if is_new else (text, NOT_DECIDED)
        yield (f"{kind_words(decision.kind)} of {names}", "bold"), [(f"- {a}", "red"), (f"+ {b}", "green")]


def _subject(decision: Decision) -> str:
    return "_".join(names_of(decision)) or "the graph"


def _statement(sign: str, statement: Statement | None, style: str) -> Inline:
    if statement is None:
        return (f"{sign} no further statement", "dim")
    where = f"   {statement.span.path.name}:{statement.span.first}" if statement.span else ""
    inside = f" in {statement.block}" if statement.block != "body" else ""
    return [(f"{sign} {statement_words(statement)}{inside}", style), (where, "dim")]


def _kernels(diff: GraphDiff, everything: bool) -> Iterator[_Entry]:
    facts = [pair for pair in shared_facts(diff.kernels) if not is_of_environment(diff, pair[0])]
    shared = {fact: names for fact, names in facts if len(names) > 1}
    for match in diff.kernels:
        if match.relation == "same" and not everything:
            continue
        lines: list[Inline] = []
        if match.relation in ("changed", "same"):
            head: list[Piece] = [(Name(match.a[0]), "bold")]
            head += [(" -> ", "bold"), (Name(match.b[0]), "bold")] if match.a[0] != match.b[0] else []
            head.append((": the same" if match.relation == "same" else ": changed", "bold"))
        else:
            head = [(match.relation, "bold")]
            lines += [[("- ", "red"), (Name(name), "red")] for name in match.a]
            lines += [[("+ ", "green"), (Name(name), "green")] for name in match.b]
        lines += [
            fact_words(fact)
            for fact in match.facts
            if fact not in shared and fact.weight != "cosmetic" and not is_of_environment(diff, fact)
        ]
        if match.code:
            lines.append(f"code -{match.code.removed} +{match.code.added} lines (--code shows them)")
        yield head, lines
    if shared:
        in_several = [f"{fact_words(fact)} ({len(names)} kernels)" for fact, names in shared.items()]
        yield ("in several kernels", "bold"), in_several


def _call(call: CallChange) -> _Entry:
    if call.a is None or call.b is None:
        return (f"{call.a or call.b}: only in {'A' if call.b is None else 'B'}", "bold"), ()
    lines = [line for fact in call.facts for line in ((f"- {fact.a}", "red"), (f"+ {fact.b}", "green"))]
    names = ", ".join(fact.name for fact in call.facts)
    return (f"{names_words(call.a, call.b)}: {names} changed", "bold"), lines


def _fusion(change: FusionChange) -> _Entry:
    relations = {
        "split": "fused in A, not in B",
        "merged": "fused in B, not in A",
        "regrouped": "fused with others",
    }
    lines = [(f"- {_groups(change.a)}", "red"), (f"+ {_groups(change.b)}", "green")]
    return (relations[change.relation], "bold"), lines


def _groups(groups: tuple[tuple[str, ...], ...]) -> str:
    """`op0 op1 | op3`: groups of nodes."""
    shown = [
        " ".join(group[:_MOST_NODES])
        + (f" and {len(group) - _MOST_NODES} more" if len(group) > _MOST_NODES else "")
        for group in groups[:_MOST_NODES]
    ]
    more = f" | and {len(groups) - _MOST_NODES} more" if len(groups) > _MOST_NODES else ""
    return " | ".join(shown) + more


def _unmatched(nodes: Sequence[NodeChange], everything: bool) -> Iterator[_Entry]:
    for side, kind in (("A", "removed"), ("B", "added")):
        names = [node.a or node.b or "" for node in nodes if node.kind == kind]
        if names:
            shown = names if everything else names[:_MOST_NODES]
            more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
            yield f"only in {side}: {' '.join(shown)}{more}", ()


def _numbers(diff: GraphDiff) -> Table:
    rows = []
    for count in diff.counts:
        numbers = ("?" if number is None else str(number) for number in (count.a, count.b))
        style = "bold" if count.changed else ""
        rows.append([(text, style) for text in (count_name(count.name), *numbers)])
    for name, number in (("matched nodes", diff.matched_nodes), ("matched buffers", diff.matched_buffers)):
        rows.append([(text, "") for text in (name, str(number), str(number))])
    return Table((Column(""), Column("A", right=True), Column("B", right=True)), rows, 2)
