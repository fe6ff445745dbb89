"""Partners among the nodes and buffers of two graphs, and how further ones are found beside them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.model.proof import Proof

_ROUNDS = 50

Key = Callable[[str], Hashable]
Accept = Callable[[str, str], bool]
Labels = dict[int, tuple[int | None, int]]
"""Positions of what a graph returns, each with a label that its partner on the other side has as well: the FX
value that both return, None for others, and how many of the same stand before it."""


@dataclass(slots=True)
class Half:
    """One side of a matching: the number of the pair that each of its nodes and buffers belongs to."""

    side: ComparedGraph
    nodes: dict[str, int] = field(default_factory=dict)
    buffers: dict[str, int] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)

    def left(self) -> list[str]:
        """Return the nodes without a partner, in order."""
        return [name for name in self.side.nodes if name not in self.nodes]

    def around(self, name: str, reading: bool, using: bool) -> Hashable | None:
        """Return what stands before and after a node, as far as it is matched.

        None when nothing of what is asked for is.
        """
        reads = self._reads(name) if reading else ()
        uses = self._uses(name) if using else ()
        known = (any(part is not None for part in parts) for parts in (reads, uses) if parts)
        return (reads, uses) if (reads or uses) and all(known) else None

    def _reads(self, name: str) -> tuple[int | None, ...]:
        numbers = [self.buffers.get(buffer) for buffer in self.side.reads[name]]
        return tuple(sorted(numbers, key=lambda number: -1 if number is None else number))

    def _uses(self, name: str) -> tuple[Hashable | None, ...]:
        written = self.side.writes[name]
        readers = dict.fromkeys(reader for buffer in written for reader in self.side.readers.get(buffer, ()))
        numbers = [self.nodes.get(reader) for reader in readers if reader != name]
        numbers.sort(key=lambda number: -1 if number is None else number)
        places = [place for buffer in written for place in self.side.returned_at.get(buffer, ())]
        return (*numbers, *sorted(f"returned {self.labels.get(place)}" for place in places))


@dataclass(slots=True)
class Matching:
    """Partners found so far, A to B. `proofs` has for each node of A what makes it the same."""

    a: Half
    b: Half
    nodes: dict[str, str] = field(default_factory=dict)
    buffers: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)

    def partners(self) -> Iterator[tuple[str, str]]:
        """Yield the nodes that hold the same place: partners, and writers of the same buffer."""
        yield from self.nodes.items()
        for mine, other in self.buffers.items():
            a, b = self.a.side.producer.get(mine), self.b.side.producer.get(other)
            if a is not None and b is not None and self.nodes.get(a) != b:
                yield a, b

    def proved(self, buffer: str) -> bool:
        """Tell whether a buffer of A is an input, or holds what the same computation made."""
        node = self.a.side.producer.get(buffer)
        return node is None or self.a.side.work[node] == self.b.side.work.get(self.nodes.get(node, ""))

    def pair_buffers(self, a: str, b: str) -> None:
        """Take two buffers for the same, unless one has a partner already."""
        if a not in self.a.buffers and b not in self.b.buffers:
            self.a.buffers[a] = self.b.buffers[b] = len(self.buffers)
            self.buffers[a] = b

    def pair(self, a: str, b: str, proof: Proof) -> None:
        """Take two nodes, and what they write, for the same."""
        self.a.nodes[a] = self.b.nodes[b] = len(self.nodes)
        self.nodes[a] = b
        self.proofs[a] = proof
        for mine, other in zip(self.a.side.writes[a], self.b.side.writes[b], strict=False):
            self.pair_buffers(mine, other)

    def comparable(self, a: str, b: str) -> bool:
        """Tell whether one node may be the other, changed: no reduction is a pointwise computation."""
        mine, other = self.a.side.texts.get(a), self.b.side.texts.get(b)
        return mine is None or other is None or mine.reduces == other.reduces

    def alike(self, a: str, b: str) -> bool:
        """Tell whether two nodes have at least half of their operations in common."""
        mine, other = self.a.side.texts.get(a), self.b.side.texts.get(b)
        if mine is None or other is None:
            return self.a.side.loose[a] == self.b.side.loose[b]
        common = (mine.targets & other.targets).total()
        most = max(mine.targets.total(), other.targets.total())
        return mine.reduces == other.reduces and 2 * common >= most

    def by_key(
        self, key_a: Key, key_b: Key, proof: Proof, *, only: bool = False, accept: Accept | None = None
    ) -> bool:
        """Pair nodes with equal keys, in order; with `only`, where each side has a single one.

        None is no key, and what `accept` refuses is no pair. Tells whether a pair was found.
        """
        waiting_a, waiting_b = _buckets(self.a.left(), key_a), _buckets(self.b.left(), key_b)
        before = len(self.nodes)
        for key, names in waiting_a.items():
            others = waiting_b.get(key, [])
            if not only or len(names) == len(others) == 1:
                for mine, other in zip(names, others, strict=False):
                    if accept is None or accept(mine, other):
                        self.pair(mine, other, proof)
        return len(self.nodes) > before

    def by_neighbours(
        self,
        work_a: Key,
        work_b: Key,
        proof: Proof,
        *,
        accept: Accept | None = None,
        alone: Accept | None = None,
    ) -> None:
        """Pair nodes with equal work between matched ones.

        By what they read and who reads them, where `accept` is asked, then by one of both, where `alone` is.
        A chain of changed nodes is matched from its ends, so this is repeated while it helps.
        """

        def keys(reading: bool, using: bool) -> tuple[Key, Key]:
            def key(half: Half, work: Key, name: str) -> Hashable:
                around = half.around(name, reading, using)
                return None if around is None else (work(name), around)

            return (lambda name: key(self.a, work_a, name)), (lambda name: key(self.b, work_b, name))

        for _ in range(_ROUNDS):
            found = self.by_key(*keys(True, True), proof, only=True, accept=accept)
            for reading in (True, False):
                found |= self.by_key(*keys(reading, not reading), proof, only=True, accept=alone)
            if not found:
                return


def _buckets(names: Iterable[str], key: Key) -> dict[Hashable, list[str]]:
    buckets: dict[Hashable, list[str]] = {}
    for name in names:
        value = key(name)
        if value is not None:
            buckets.setdefault(value, []).append(name)
    return buckets
