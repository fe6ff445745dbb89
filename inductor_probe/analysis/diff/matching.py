"""Matching the scheduler nodes and buffers of two graphs, strongest proof first.

What a node computes is numbered from the inputs on (`ahead`), and what becomes of it from the outputs back
(`behind`), in a table that both graphs share. A node that was changed keeps the numbers of what it reads and
of its users, so that a single change in a deep graph leaves everything else matched. Every step is a lookup.

    A: x -> sin -> mul 2 -> cos       ahead: sin, and with it all before it; mul differs, cos for that reason
    B: x -> sin -> mul 3 -> cos       behind: cos and what comes after it; then mul, between the two
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from inductor_probe.analysis.diff.fx import FxMatch
from inductor_probe.analysis.diff.pairing import pair_equal
from inductor_probe.analysis.diff.side import ComparedGraph, Labels
from inductor_probe.model.proof import Proof, ProofCode, inferred

_ROUNDS = 50

Key = Callable[[str], Hashable]
Accept = Callable[[str, str], bool]


@dataclass(slots=True)
class Matching:
    """Partners, A to B. `proofs` has for each node of A what makes it the same."""

    a: ComparedGraph
    b: ComparedGraph
    nodes: dict[str, str] = field(default_factory=dict)
    buffers: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)

    def partners(self) -> Iterator[tuple[str, str]]:
        """Yield the nodes that hold the same place: partners, and writers of the same buffer."""
        yield from self.nodes.items()
        for buffer, other in self.buffers.items():
            a, b = self.a.producer.get(buffer), self.b.producer.get(other)
            if a is not None and b is not None and self.nodes.get(a) != b:
                yield a, b

    def proved(self, buffer: str) -> bool:
        """Return whether a buffer of A is an input, or holds what the same computation made."""
        node = self.a.producer.get(buffer)
        return node is None or self.a.work[node] == self.b.work.get(self.nodes.get(node, ""))

    def pair_buffers(self, a: str, b: str) -> None:
        """Take two buffers for the same, unless one has a partner already."""
        if a not in self.a.buffer_pairs and b not in self.b.buffer_pairs:
            self.a.buffer_pairs[a] = self.b.buffer_pairs[b] = len(self.buffers)
            self.buffers[a] = b

    def by_key(
        self, key_a: Key, key_b: Key, proof: ProofCode, *, unique: bool = False, accept: Accept | None = None
    ) -> bool:
        """Pair nodes with equal keys and what they write, but for what `accept` refuses: see `pair_equal`.

        Returns whether a pair was found.
        """
        before = len(self.nodes)
        for a, b in pair_equal(self.a.unmatched(), self.b.unmatched(), key_a, key_b, unique=unique):
            if accept is None or accept(a, b):
                self.a.node_pairs[a] = self.b.node_pairs[b] = len(self.nodes)
                self.nodes[a] = b
                self.proofs[a] = inferred(proof)
                for buffer, other in zip(self.a.writes[a], self.b.writes[b], strict=False):
                    self.pair_buffers(buffer, other)
        return len(self.nodes) > before

    def by_neighbours(
        self,
        work_a: Key,
        work_b: Key,
        proof: ProofCode,
        *,
        accept: Accept | None = None,
        alone: Accept | None = None,
    ) -> None:
        """Pair nodes with equal work between matched ones.

        By what they read and who reads them, where `accept` is asked, then by one of both, where `alone` is.
        A chain of changed nodes is matched from its ends, so this is repeated while it helps.
        """

        def key(side: ComparedGraph, work: Key, reading: bool, using: bool) -> Key:
            def key_of(name: str) -> Hashable:
                around = side.around(name, reading, using)
                return None if around is None else (work(name), around)

            return key_of

        for _ in range(_ROUNDS):
            is_paired = False
            for reading, using in ((True, True), (True, False), (False, True)):
                keys = key(self.a, work_a, reading, using), key(self.b, work_b, reading, using)
                check = accept if reading and using else alone
                is_paired |= self.by_key(*keys, proof, unique=True, accept=check)
            if not is_paired:
                return

    def comparable(self, a: str, b: str) -> bool:
        """Return whether one node may be the other, changed: no reduction is a pointwise computation."""
        text_a, text_b = self.a.texts.get(a), self.b.texts.get(b)
        return text_a is None or text_b is None or text_a.reduces == text_b.reduces

    def alike(self, a: str, b: str) -> bool:
        """Return whether two nodes have at least half of their operations in common."""
        text_a, text_b = self.a.texts.get(a), self.b.texts.get(b)
        if text_a is None or text_b is None:
            return self.a.loose[a] == self.b.loose[b]
        common = (text_a.targets & text_b.targets).total()
        most = max(text_a.targets.total(), text_b.targets.total())
        return text_a.reduces == text_b.reduces and 2 * common >= most


def match_nodes(a: ComparedGraph, b: ComparedGraph, fx: FxMatch) -> Matching:
    """Match the nodes of two graphs, and the buffers that they write."""
    # Equal FX values share a label, wherever they are returned; the rest is distinguished by its order.
    shared = {value for value in fx.outputs_a if value is not None} & set(fx.outputs_b)
    a.labels, b.labels = _labels(a, fx.outputs_a, shared), _labels(b, fx.outputs_b, shared)
    matching = Matching(a, b)
    for name, other in fx.inputs.items() or zip(a.inputs, b.inputs, strict=False):
        matching.pair_buffers(name, other)
    table: dict[Hashable, int] = {}
    ahead_a, ahead_b = _ahead(a, table), _ahead(b, table)
    behind_a, behind_b = _behind(a, table), _behind(b, table)
    both_a = {name: (number, behind_a[name]) for name, number in ahead_a.items()}
    both_b = {name: (number, behind_b[name]) for name, number in ahead_b.items()}
    matching.by_key(both_a.get, both_b.get, "same-computation-and-inputs")
    matching.by_key(ahead_a.get, ahead_b.get, "same-computation-and-inputs")
    matching.by_key(behind_a.get, behind_b.get, "same-computation-and-users")
    matching.by_neighbours(a.work.get, b.work.get, "same-computation")
    matching.by_key(a.work.get, b.work.get, "same-computation")
    matching.by_neighbours(a.loose.get, b.loose.get, "same-operations")
    returned_a, returned_b = ({name: _returned_labels(side, name) for name in side.nodes} for side in (a, b))
    matching.by_key(returned_a.get, returned_b.get, "same-returned-value")
    origins_a, origins_b = _origins(a, fx.nodes), _origins(b, None)
    matching.by_key(origins_a.get, origins_b.get, "same-fx-nodes", unique=True)
    matching.by_neighbours(_any, _any, "same-neighbours", accept=matching.comparable, alone=matching.alike)
    return matching


def _any(_name: str) -> str:
    return ""


def _labels(side: ComparedGraph, values: list[int | None], shared: set[int]) -> Labels:
    labels: Labels = {}
    counts: dict[int | None, int] = {}
    known = values if len(values) == len(side.returns) else [None] * len(side.returns)
    for place, (value, (buffer, _)) in enumerate(zip(known, side.returns, strict=True)):
        if buffer is not None:
            label = value if value in shared else None
            counts[label] = counts.get(label, -1) + 1
            labels[place] = (label, counts[label])
    return labels


def _returned_labels(side: ComparedGraph, name: str) -> Hashable:
    """The FX values that a node computes, by what the graphs return; None where it returns none."""
    labels = [label for place in side.returned_places(name) if (label := side.labels[place])[0] is not None]
    return tuple(sorted(labels, key=str)) or None


def _origins(side: ComparedGraph, partners: dict[str, str] | None) -> dict[str, frozenset[str]]:
    """The FX nodes of each node that has some, those of A under the names of their `partners` in B."""
    return {
        name: frozenset(link.fx if partners is None else (partners.get(fx, f"A {fx}") for fx in link.fx))
        for name, link in side.links.nodes.items()
        if link.fx
    }


def _ahead(side: ComparedGraph, table: dict[Hashable, int]) -> dict[str, int]:
    """Number what each node computes, given what its inputs hold."""
    held: dict[str, Hashable] = dict(side.buffer_pairs)
    numbers: dict[str, int] = {}
    for name in side.in_order():
        inputs = [held.get(buffer) for buffer in side.reads[name]]
        if name not in side.texts:
            inputs.sort(key=str)  # the IR sorts what a library call depends on by its name
        mutated = tuple(held.get(old) for buffer in side.nodes[name].outputs for old in buffer.mutations)
        numbers[name] = table.setdefault((side.work[name], tuple(inputs), mutated), len(table))
        held.update((buffer, (numbers[name], place)) for place, buffer in enumerate(side.writes[name]))
    return numbers


def _behind(side: ComparedGraph, table: dict[Hashable, int]) -> dict[str, int]:
    """Number what each node computes, given what becomes of its outputs."""
    numbers: dict[str, int] = {}
    for name in reversed(side.in_order()):
        uses: list[str] = []
        for output, buffer in enumerate(side.writes[name]):
            for reader in side.readers.get(buffer, ()):
                if reader != name:
                    place = side.reads[reader].index(buffer) if reader in side.texts else -1
                    uses.append(f"{output} read by {numbers.get(reader)} at {place}")
            returned = side.returned_at.get(buffer, ())
            uses += [f"{output} returned as {side.labels.get(place)}" for place in returned]
        key = ("behind", side.work[name], *sorted(uses))
        numbers[name] = table.setdefault(key, len(table))
    return numbers
