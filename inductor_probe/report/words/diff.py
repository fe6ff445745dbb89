"""Words for comparisons: what changed in sentences, the most consequential first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inductor_probe.catalogue.templates import fill, listed
from inductor_probe.model.decision import Decision
from inductor_probe.model.diff import (
    BufferChange,
    Count,
    DecisionChange,
    FactChange,
    GraphDiff,
    KernelMatch,
    MissingPart,
    NodeChange,
    RunDiff,
    Statement,
)
from inductor_probe.model.proof import Proof, ProofCode
from inductor_probe.report.units import bytes_text, counted, dims_text
from inductor_probe.report.words.decisions import short_cause

EQUAL = "A and B compute the same with the same code"
NOT_DECIDED = "no such decision"
_NAMED = 3
"""More things of a kind than that are counted, not named."""
_SINGULAR = {"launches": "launch", "copies": "copy"}
_NODE_CHANGES = {
    "computes": "{n:# node} {n:?computes/compute} differently",
    "calls": "{n:# node} {n:?makes/make} another library call",
    "indexes": "{n:# node} {n:?does/do} the same operations at other indices",
    "loops": "{n:# node} {n:?does/do} the same operations in other loops",
}
_IN_OTHER_SENTENCES = ("kernels", "fused_groups", "nodes", "library_calls")

_MATCHED_BY: Mapping[ProofCode, str] = {
    "same-input": "the same input",
    "same-return-position": "its position in the return",
    "same-fx-value": "the same FX value",
    "same-computation-and-inputs": "the same computation of the same inputs",
    "same-computation-and-users": "the same computation for the same users",
    "same-computation": "the same computation",
    "same-operations": "the same operations",
    "same-returned-value": "the FX value it returns",
    "same-fx-nodes": "the same FX nodes",
    "same-neighbours": "its neighbours",
    "same-nodes": "the nodes they run",
    "same-code": "the same code",
    "only-kernel": "the only kernel",
}
_FACTS = {
    "vector_bits": "vector width in bits", "index_width": "index width", "index_type": "index type",
    "reduction_hint": "reduction hint", "tile_hint": "tile hint", "size_hints": "size hints",
    "loop_nests": "loop nests", "tail": "tails", "templates": "template", "parallel": "OpenMP",
    "threads": "OpenMP threads", "helper_loops": "loops of helpers", "atomics": "atomic adds",
    "local_buffers": "local buffers", "division_check": "check for division by zero",
    "blocks": "block sizes", "divisible": "divisible by 16", "chooses": "chooses among",
}  # fmt: skip
"""Fields of kernels that have another name on a screen."""
_MEMORY = {
    "own": "its own",
    "reused": "reused from another buffer",
    "view": "a view of another buffer",
    "inlined": "none, kept inside the kernel",
}
_COSMETIC = {
    "unit_dim_strides": "strides of dimensions of size 1",
    "library_calls": "spelling of library calls",
}
_PARTS = {
    "nodes_after_fusion": "no nodes after fusion: fusion and what nodes compute",
    "output_code": "no readable output_code.py: kernels, calls and allocations",
    "fx_graph": "no readable FX graph: operations, and which inputs are the same",
}


def headlines(diff: GraphDiff) -> tuple[str, ...]:
    """Return what changed in a few sentences; one sentence when nothing did."""
    if not diff.equal:
        return tuple(_headlines(diff))
    cosmetic = cosmetic_words(diff)
    causes = _causes(diff.decisions) if diff.decisions else ""
    rest = f"only names and spelling differ: {cosmetic}" if cosmetic else causes or "nothing differs"
    return f"{EQUAL}; {rest}", *_operations(diff)


def _causes(changes: tuple[DecisionChange, ...]) -> str:
    number = counted(len(changes), "decision")
    if all(change.a and change.b and change.a.outcome == change.b.outcome for change in changes):
        return f"only the cause of {number} differs"
    return f"only {number} {'differs' if len(changes) == 1 else 'differ'}"


def summary_words(diff: GraphDiff | RunDiff) -> tuple[str, ...]:
    """Return what changed in a few sentences; of two runs, which graph each is about."""
    if isinstance(diff, GraphDiff):
        return headlines(diff)
    graphs = (f"{graph.a.name}: {line}" for graph in diff.graphs for line in headlines(graph))
    return (run_words(diff), *graphs)


def _headlines(diff: GraphDiff) -> Iterator[str]:
    yield from _inputs_or_outputs("output", diff.outputs)
    yield from _inputs_or_outputs("input", diff.inputs)
    yield from _nodes(diff.nodes)
    yield from _kernels(diff)
    yield from decision_lines(diff.decisions)
    yield from _calls(diff)
    if diff.fusion:
        relations = Counter(change.relation for change in diff.fusion)
        yield f"{_count_of(diff, 'fused_groups')}: {_relations(relations)}"
    yield from _layouts("buffer", diff.buffers)
    for count in diff.counts:
        if count.changed and count.name not in _IN_OTHER_SENTENCES:
            yield count_words(count)
    yield from _operations(diff)


def _operations(diff: GraphDiff) -> Iterator[str]:
    if diff.operations:
        changes = [f"{count.name} {count.a} -> {count.b}" for count in diff.operations]
        yield f"FX operations: {listed(changes, _NAMED)}"


def _inputs_or_outputs(role: str, changes: tuple[BufferChange, ...]) -> Iterator[str]:
    yield from _layouts(role, tuple(change for change in changes if change.facts))
    moved = [
        f"{names_words(change.a, change.b)} from {change.position_a} to {change.position_b}"
        for change in changes
        if any(fact.name == "position" for fact in change.facts)
    ]
    removed = [change.a or "" for change in changes if change.b is None]
    added = [change.b or "" for change in changes if change.a is None]
    for verb, texts in (("moved", moved), ("removed", removed), ("added", added)):
        if texts:
            yield f"{counted(len(texts), role)} {verb}: {listed(texts, _NAMED)}"


def _layouts(role: str, changes: tuple[BufferChange, ...]) -> Iterator[str]:
    major = [change for change in changes if change.weight == "major"]
    for change in major[:_NAMED]:
        yield f"{buffer_words(change)}: {buffer_facts_words(change)}"
    if len(major) > _NAMED:
        yield f"{len(major) - _NAMED} more {role}s have another layout"


def _nodes(nodes: tuple[NodeChange, ...]) -> Iterator[str]:
    for kind, template in _NODE_CHANGES.items():
        changed = [_node(node) for node in nodes if node.kind == kind]
        if changed:
            yield f"{fill(template, {'n': len(changed)})}: {listed(changed, _NAMED)}"
    removed = sum(node.kind == "removed" for node in nodes)
    added = sum(node.kind == "added" for node in nodes)
    if removed or added:
        parts = [f"{removed} only in A"] if removed else []
        parts += [f"{added} only in B"] if added else []
        yield f"unmatched nodes: {', '.join(parts)}"


def _node(node: NodeChange) -> str:
    """`op1 (mul(load, 2.0) -> mul(load, 3.0))` where one statement is the only difference."""
    name = names_words(node.a, node.b)
    if node.kind in ("loops", "indexes") or node.operations or not node.first_a or not node.first_b:
        return name
    return f"{name} ({statement_words(node.first_a)} -> {statement_words(node.first_b)})"


def _kernels(diff: GraphDiff) -> Iterator[str]:
    relations = Counter(match.relation for match in diff.kernels if match.relation != "same")
    if not relations:
        return
    count = next((count for count in diff.counts if count.name == "kernels"), None)
    if count and count.a and not count.changed and set(relations) == {"changed"}:
        changed = f"{relations['changed']} of {counted(count.a, 'kernel')} changed"
        yield f"{changed}{_minor_change(diff.kernels)}"
    else:
        yield f"{_count_of(diff, 'kernels')}: {_relations(relations)}"
    for fact, kernels in shared_facts(diff.kernels):
        if fact.weight == "major" and not is_of_environment(diff, fact):
            where = kernels[0] if len(kernels) == 1 else f"{len(kernels)} kernels"
            yield f"{fact_words(fact)} in {where}"


def decision_lines(changes: tuple[DecisionChange, ...]) -> Iterator[str]:
    """Yield which decisions fell otherwise and why on both sides, equal changes in one sentence."""
    groups: dict[str, list[str]] = {}
    for change in changes:
        about = "_".join(name for group in change.decision.subjects for name in group) or "the graph"
        a, b = decision_words(change.a), decision_words(change.b)
        groups.setdefault(f"{a} -> {b}", []).append(about)
    for text, names in list(groups.items())[:_NAMED]:
        yield f"{listed(names, _NAMED)}: {text}"
    if len(groups) > _NAMED:
        rest = sum(map(len, list(groups.values())[_NAMED:]))
        yield f"{counted(rest, 'more decision')} fell otherwise"


def decision_words(decision: Decision | None) -> str:
    """`scalar (inner range 3 < 16/4 with 2 operations)`."""
    if decision is None:
        return NOT_DECIDED
    return f"{decision.outcome} ({short_cause(decision)})"


def is_of_environment(diff: GraphDiff, fact: FactChange) -> bool:
    """Whether a fact of a kernel is true of the whole graph: the backend."""
    return any((other.name, other.a, other.b) == (fact.name, fact.a, fact.b) for other in diff.environment)


def _minor_change(kernels: tuple[KernelMatch, ...]) -> str:
    """Return what changed in kernels where no major fact did: minor facts, or the code alone."""
    changed = [match for match in kernels if match.relation == "changed"]
    facts = [fact for match in changed for fact in match.facts if fact.weight != "cosmetic"]
    if any(fact.weight == "major" for fact in facts):
        return ""
    if facts:
        return f": {listed(list(dict.fromkeys(map(fact_words, facts))), _NAMED)}"
    removed = sum(match.code.removed for match in changed if match.code)
    added = sum(match.code.added for match in changed if match.code)
    return f", in their code alone: -{removed} +{added} lines"


def shared_facts(kernels: Iterable[KernelMatch]) -> list[tuple[FactChange, list[str]]]:
    """Return the changed facts with the kernels (of A) that share them, in the order of showing."""
    names: dict[FactChange, list[str]] = {}
    for match in kernels:
        for fact in match.facts:
            if fact.weight != "cosmetic":
                names.setdefault(fact, []).extend(match.a)
    return sorted(names.items(), key=lambda item: item[0].weight != "major")


def _calls(diff: GraphDiff) -> Iterator[str]:
    if diff.calls:
        changed = sum(bool(call.facts) for call in diff.calls)
        parts = [f"{changed} changed"] if changed else []
        for verb, names in (
            ("removed", [call.a or "" for call in diff.calls if call.b is None]),
            ("added", [call.b or "" for call in diff.calls if call.a is None]),
        ):
            parts += [f"{len(names)} {verb} ({listed(names, _NAMED)})"] if names else []
        yield f"{_count_of(diff, 'library_calls')}: {', '.join(parts)}"


def _count_of(diff: GraphDiff, name: str) -> str:
    return next((count_words(count) for count in diff.counts if count.name == name), count_name(name))


def count_words(count: Count) -> str:
    """`13 kernels -> 9`, `bytes allocated: 2 KiB -> 4 KiB`."""
    in_bytes = count.name == "bytes_allocated"
    show = bytes_text if in_bytes else str
    name = count_name(count.name)
    name = _SINGULAR.get(name, name.removesuffix("s")) if count.a == 1 else name
    a, b = ("?" if number is None else show(number) for number in (count.a, count.b))
    if a == b and count.changed:  # too close for rounded numbers
        a, b = f"{count.a:,} B", f"{count.b:,} B"
    if in_bytes:
        return f"{name}: {a} -> {b}"
    return f"{a} {name} -> {b}"


def run_words(diff: RunDiff) -> str:
    """Return the sentence about a run as a whole."""
    total, different = len(diff.graphs), sum(not graph.equal for graph in diff.graphs)
    if not total:
        return "no graph of A has a partner in B"
    if total == 1:
        return "the graphs differ" if different else EQUAL
    if different:
        return f"{different} of {total} pairs of graphs differ"
    return f"all {total} pairs of graphs are equal"


def names_words(a: str | None, b: str | None) -> str:
    """`buf3` when both sides call it so, else `buf3 -> buf4`."""
    return f"{a}" if a == b else f"{a or 'nothing'} -> {b or 'nothing'}"


def fact_words(fact: FactChange) -> str:
    """`stride: [3, 1] -> [1, 2]`."""
    words = _MEMORY if fact.name == "memory" else {}
    a, b = ("none" if value is None else words.get(value, value) for value in (fact.a, fact.b))
    return f"{_FACTS.get(fact.name, fact.name)}: {a} -> {b}"


def proof_words(proof: Proof | None) -> str:
    """` (matched by the same operations)`; empty for what has no partner."""
    return "" if proof is None else f" (matched by {_MATCHED_BY[proof.code]})"


def statement_words(statement: Statement) -> str:
    """`load('arg0_1', 3*z0)`, `extern_kernels.mm`, `ComputedBuffer, generated code`."""
    return f"{statement.text}, generated code" if statement.generated else statement.text


def missing_words(missing: MissingPart) -> str:
    """`not compared: A has no readable FX graph: ...`."""
    return f"not compared: {missing.graph.upper()} has {_PARTS[missing.part]}"


def count_name(name: str) -> str:
    """`library calls`."""
    return name.replace("_", " ")


def cosmetic_words(diff: GraphDiff) -> str:
    """`kernel names (3), strides of dimensions of size 1 (1)`: what is only spelt differently."""
    return ", ".join(f"{_COSMETIC.get(name, count_name(name))} ({number})" for name, number in diff.cosmetic)


def buffer_words(change: BufferChange) -> str:
    """`output 0 buf3 [4, 3, 256]`."""
    layout = change.layout_a or change.layout_b
    size = f" {dims_text(layout.size)}" if layout and layout.size is not None else ""
    position = change.position_a if change.position_a is not None else change.position_b
    role = f"{change.role} {position} " if position is not None else ""
    return f"{role}{names_words(change.a, change.b) if change.a and change.b else change.a or change.b}{size}"


def buffer_facts_words(change: BufferChange) -> str:
    """`was channels_last, is contiguous; stride [...] -> [...]`."""
    return "; ".join(
        f"was {fact.a}, is {fact.b}" if fact.name == "format" else fact_words(fact) for fact in change.facts
    )


def _relations(counts: Mapping[Any, int]) -> str:
    order = ("changed", "merged", "split", "regrouped", "removed", "added")
    return ", ".join(f"{counts[name]} {name}" for name in order if counts.get(name))
