"""Where the bodies of matched nodes differ first, and in what: operations, indices, or loops."""

from __future__ import annotations

from itertools import zip_longest
from typing import Literal

from inductor_probe.analysis.diff.body import BodyText, statement
from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.model.diff import Count, FactChange, NodeChange, Statement
from inductor_probe.model.proof import Proof


def node_changes(found: Matching) -> tuple[NodeChange, ...]:
    """Return the matched nodes that differ, in the order of A, then those without a partner."""
    a, b = found.a.side, found.b.side
    changed = [
        _change(a, b, mine, other, found.proofs[mine])
        for mine, other in found.nodes.items()
        if a.work[mine] != b.work[other]
    ]
    place = {name: at for at, name in enumerate(a.nodes)}
    changed.sort(key=lambda change: place[change.a or ""])
    removed = [NodeChange(name, None, "removed") for name in found.a.left()]
    added = [NodeChange(None, name, "added") for name in found.b.left()]
    return (*changed, *removed, *added)


def _change(a: ComparedGraph, b: ComparedGraph, mine: str, other: str, proof: Proof) -> NodeChange:
    text_a, text_b = a.texts.get(mine), b.texts.get(other)
    if text_a is None or text_b is None:
        first_a, first_b = (_described(side, name) for side, name in ((a, mine), (b, other)))
        return NodeChange(mine, other, "calls", proof, None, first_a, first_b)
    loops = None
    if text_a.loops != text_b.loops:
        loops = FactChange("loops", _trips(a, mine), _trips(b, other), "major")
    if text_a.bare != text_b.bare:
        at = _first(text_a.bare, text_b.bare)
        kept = {
            name: (text_a.targets[name], text_b.targets[name]) for name in text_a.targets | text_b.targets
        }
        operations = tuple(Count(name, *counts) for name, counts in kept.items() if counts[0] != counts[1])
    else:
        at = _first(text_a.full, text_b.full)
        operations = ()
    kind: Literal["computes", "loops", "indexes"] = "loops" if loops else "indexes"
    return NodeChange(
        mine,
        other,
        "computes" if text_a.bare != text_b.bare else kind,
        proof,
        loops,
        _statement(a, mine, text_a, at),
        _statement(b, other, text_b, at),
        operations,
    )


def _first(a: list[str], b: list[str]) -> int:
    pairs = enumerate(zip_longest(a, b))
    return next((at for at, (mine, other) in pairs if mine != other), len(a))


def _statement(side: ComparedGraph, name: str, text: BodyText, at: int) -> Statement | None:
    body = side.nodes[name].body
    if body is None or at >= len(text.ops):
        return None
    op, block = text.ops[at]
    return statement(body, op, block)


def _described(side: ComparedGraph, name: str) -> Statement:
    node = side.nodes[name]
    return Statement(node.kernel or node.ir, node.span, generated=node.kernel is None)


def _trips(side: ComparedGraph, name: str) -> str:
    body = side.nodes[name].body
    return f"[{', '.join(str(dim) for _, dim in body.var_ranges)}]" if body else "[]"
