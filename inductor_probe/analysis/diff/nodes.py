"""Matching the scheduler nodes of two graphs, strongest proof first.

What a node computes is numbered from the inputs on (`ahead`), and what becomes of it from the outputs back
(`behind`), in a table that both graphs share. A node that was changed keeps the numbers of what it reads and
of its users, so that a single change in a deep graph leaves everything else matched. Every step is a lookup.
"""

from __future__ import annotations

from collections.abc import Hashable

from inductor_probe.analysis.diff.fx import FxMatch
from inductor_probe.analysis.diff.matching import Half, Labels, Matching
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.model.proof import inferred

Table = dict[Hashable, int]


def match_nodes(a: ComparedGraph, b: ComparedGraph, fx: FxMatch) -> Matching:
    """Match the nodes of two graphs, and the buffers that they write."""
    labels_a, labels_b = _output_labels(a, b, fx)
    found = Matching(Half(a, labels=labels_a), Half(b, labels=labels_b))
    for mine, other in fx.inputs.items() or zip(_inputs(a), _inputs(b), strict=False):
        found.pair_buffers(mine, other)
    _by_value(found)
    found.by_neighbours(a.work.get, b.work.get, inferred("same-computation"))
    found.by_key(a.work.get, b.work.get, inferred("same-computation"))
    found.by_neighbours(a.loose.get, b.loose.get, inferred("same-operations"))
    _by_returned_value(found)
    _by_origin(found, fx)
    found.by_neighbours(_any, _any, inferred("same-neighbours"), accept=found.comparable, alone=found.alike)
    return found


def _any(_name: str) -> str:
    return ""


def _inputs(side: ComparedGraph) -> tuple[str, ...]:
    return side.graph.code.inputs if side.graph.code else ()


def _output_labels(a: ComparedGraph, b: ComparedGraph, fx: FxMatch) -> tuple[Labels, Labels]:
    """Equal FX values share a label, wherever they are returned; the rest is told apart by its order."""
    values_a, values_b = fx.output_values(a.graph.fx, b.graph.fx)
    shared = {value for value in values_a if value is not None} & set(values_b)
    return _labels(a, values_a, shared), _labels(b, values_b, shared)


def _labels(side: ComparedGraph, values: list[int | None], shared: set[int]) -> Labels:
    labels: Labels = {}
    seen: dict[int | None, int] = {}
    known = values if len(values) == len(side.returns) else [None] * len(side.returns)
    for at, value in enumerate(known):
        if side.returns[at].buffer is not None:
            name = value if value in shared else None
            seen[name] = seen.get(name, -1) + 1
            labels[at] = (name, seen[name])
    return labels


def _by_value(found: Matching) -> None:
    table: Table = {}
    ahead_a, ahead_b = _ahead(found.a, table), _ahead(found.b, table)
    behind_a, behind_b = _behind(found.a, table), _behind(found.b, table)
    both_a = {name: (ahead_a[name], behind_a[name]) for name in ahead_a}
    both_b = {name: (ahead_b[name], behind_b[name]) for name in ahead_b}
    found.by_key(both_a.get, both_b.get, inferred("same-computation-and-inputs"))
    found.by_key(ahead_a.get, ahead_b.get, inferred("same-computation-and-inputs"))
    found.by_key(behind_a.get, behind_b.get, inferred("same-computation-and-users"))


def _ahead(half: Half, table: Table) -> dict[str, int]:
    """Number what each node computes, given what its inputs hold."""
    side = half.side
    held: dict[str, Hashable] = dict(half.buffers)
    numbers: dict[str, int] = {}
    for name in side.in_order():
        inputs = [held.get(buffer) for buffer in side.reads[name]]
        if name not in side.texts:
            inputs.sort(key=str)  # the IR sorts what a library call depends on by its name
        mutated = tuple(held.get(old) for buffer in side.nodes[name].outputs for old in buffer.mutations)
        numbers[name] = table.setdefault((side.work[name], tuple(inputs), mutated), len(table))
        for at, buffer in enumerate(side.writes[name]):
            held[buffer] = (numbers[name], at)
    return numbers


def _behind(half: Half, table: Table) -> dict[str, int]:
    """Number what each node computes, given what becomes of its outputs."""
    side = half.side
    numbers: dict[str, int] = {}
    for name in reversed(side.in_order()):
        uses: list[str] = []
        for at, buffer in enumerate(side.writes[name]):
            for reader in side.readers.get(buffer, ()):
                if reader != name:
                    place = side.reads[reader].index(buffer) if reader in side.texts else -1
                    uses.append(f"{at} read by {numbers.get(reader)} at {place}")
            returned = side.returned_at.get(buffer, ())
            uses += [f"{at} returned as {half.labels.get(place)}" for place in returned]
        key = ("behind", side.work[name], *sorted(uses))
        numbers[name] = table.setdefault(key, len(table))
    return numbers


def _by_returned_value(found: Matching) -> None:
    """Pair nodes that compute the same FX values, by what the graphs return."""

    def values(half: Half, name: str) -> Hashable:
        places = [at for buffer in half.side.writes[name] for at in half.side.returned_at.get(buffer, ())]
        labels = [label for at in places if (label := half.labels[at])[0] is not None]
        return tuple(sorted(labels, key=str)) or None

    found.by_key(
        lambda name: values(found.a, name),
        lambda name: values(found.b, name),
        inferred("same-returned-value"),
    )


def _by_origin(found: Matching, fx: FxMatch) -> None:
    """Pair nodes that compute the same FX nodes."""

    def key_a(name: str) -> Hashable:
        link = found.a.side.links.nodes.get(name)
        return frozenset(fx.nodes.get(node, f"A {node}") for node in link.fx) or None if link else None

    def key_b(name: str) -> Hashable:
        link = found.b.side.links.nodes.get(name)
        return frozenset(link.fx) or None if link else None

    found.by_key(key_a, key_b, inferred("same-fx-nodes"), only=True)
