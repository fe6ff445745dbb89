"""Which node each line of a kernel's text computes for.

What is proved, and how:

* A line that writes through a pointer belongs to the node that writes the buffer which the launch passes.
* A line that computes a value belongs to the first node whose result the value flows into: inductor makes a
  value when a node first asks for it. A node whose result stays inside the kernel writes through no pointer;
  it and the node that its result flows into remain candidates together.
* Candidates are told apart by what they read, by the functions and constants that their loop bodies hold,
  and by order: nodes are generated one after the other, and values are numbered as they are made.

What is left with several candidates is ambiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inductor_probe.analysis.annotation.masks import bits, joined, monotone
from inductor_probe.analysis.annotation.nodes import RunningNodes
from inductor_probe.analysis.annotation.statements import Statement
from inductor_probe.analysis.annotation.stores import writing_nodes
from inductor_probe.model.code import PointerUse


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """What is known of the statement that starts at a line.

    Attributes:
        nodes: the node it belongs to; several when it cannot be told which.
        shared: further nodes that ask for its value.
        uses: what it reads and writes through pointers, with the names of the buffers there.
        calls: functions it calls.
    """

    line: int
    nodes: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    uses: tuple[tuple[PointerUse, tuple[str, ...]], ...] = ()
    calls: frozenset[str] = frozenset()


def line_origins(
    statements: Sequence[Statement],
    uses: Sequence[PointerUse],
    nodes: RunningNodes,
) -> dict[int, LineOrigin]:
    """Return what is known of each statement, by its first line."""
    return _Origins(statements, uses, nodes).lines()


class _Origins:
    def __init__(
        self,
        statements: Sequence[Statement],
        uses: Sequence[PointerUse],
        nodes: RunningNodes,
    ) -> None:
        self._nodes = nodes
        starts = {line: at.line for at in statements for line in range(at.line, at.last + 1)}
        self._uses: dict[int, list[PointerUse]] = {}
        for use in uses:
            self._uses.setdefault(starts.get(use.line, use.line), []).append(use)
        known = {at.line for at in statements}
        bare = (Statement(line, line) for line in self._uses if line not in known)
        self._statements = sorted((*statements, *bare), key=lambda at: at.line)
        self._stores = writing_nodes(nodes, self._uses, {at.line: at for at in self._statements})
        self._vague = joined(mask for mask in self._stores.values() if mask.bit_count() > 1)
        self._stored = joined(mask for mask in self._stores.values() if mask.bit_count() == 1)
        self._inside: dict[int, int] = {}
        self._loaded = {
            value: readers
            for at in self._statements
            for use in self._loads(at)
            if (readers := nodes.reading(use))
            for value in at.defines
        }

    def lines(self) -> dict[int, LineOrigin]:
        """Put together what is known of each line."""
        reached = self._reached()
        candidates = {at.line: self._candidates(at, reached) for at in self._statements}
        self._local_buffers(candidates)
        self._order(candidates)
        self._follow(candidates)
        found = {}
        for at in self._statements:
            mask = candidates[at.line]
            uses = self._uses.get(at.line, ())
            found[at.line] = LineOrigin(
                line=at.line,
                nodes=self._nodes.names(mask),
                shared=self._nodes.names(self._sharing(at, mask, reached)),
                uses=tuple((use, self._nodes.buffer_names(use, mask)) for use in uses),
                calls=at.calls,
            )
        return found

    def _loads(self, at: Statement) -> list[PointerUse]:
        return [use for use in self._uses.get(at.line, ()) if use.kind == "load"]

    def _reached(self) -> dict[int, int]:
        """Return the nodes whose stores each value flows into."""
        reached: dict[int, int] = {}
        changed = True
        while changed:  # once more for each loop that an accumulator goes around
            changed = False
            for at in reversed(self._statements):
                mask = self._stores.get(at.line, 0) | self._flows(at, reached)
                for value in at.uses:
                    if mask & ~reached.get(value, 0):
                        reached[value] = reached.get(value, 0) | mask
                        changed = True
        return reached

    def _flows(self, at: Statement, reached: dict[int, int]) -> int:
        return joined(reached.get(value, 0) for value in at.defines)

    def _candidates(self, at: Statement, reached: dict[int, int]) -> int:
        if at.line in self._stores:
            return self._stores[at.line]
        flows = self._flows(at, reached)
        if not flows:
            return 0
        mask = 0
        for node in bits(flows):
            if node not in self._inside:
                self._inside[node] = self._nodes.inside(node, self._stored)
            mask |= 1 << node | self._inside[node]
            if not self._vague >> node & 1:
                break  # it is certain that this one asks for the value: later ones need not make it
        return self._nodes.by_operation(self._by_reading(mask, at), at)

    def _by_reading(self, mask: int, at: Statement) -> int:
        """Keep the candidates that read what the line loads, and what the values it uses were loaded from.

        The result of a node that only copies is the loaded value itself: then its users need not read that.
        """
        readers = [self._nodes.reading(use) for use in self._loads(at)]
        if not mask & self._nodes.copies:
            readers += [self._loaded[value] for value in at.uses if value in self._loaded]
        for reading in readers:
            mask = mask & reading or mask
        return mask

    def _local_buffers(self, candidates: dict[int, int]) -> None:
        """Whose result a local buffer holds, that node fills it; who reads that result reads it."""
        readers: dict[int, int] = {}
        for at in self._statements:
            if at.fills:
                mask = candidates[at.line] = candidates[at.line] & ~self._stored or candidates[at.line]
                if mask.bit_count() == 1:
                    readers[at.defines[0]] = self._nodes.reading_result(next(bits(mask)))
        for at in self._statements:
            for value in at.uses:
                if value in readers and not at.fills:
                    candidates[at.line] = candidates[at.line] & readers[value] or candidates[at.line]

    def _order(self, candidates: dict[int, int]) -> None:
        """Narrow by order: of two values of a group, the one with the lower number is of no later node."""
        groups: dict[int, list[Statement]] = {}
        for at in self._statements:
            if at.order is not None and candidates[at.line]:
                groups.setdefault(at.group, []).append(at)
        for group in groups.values():
            group.sort(key=lambda at: at.order or 0)
            narrowed = monotone([candidates[at.line] for at in group])
            if narrowed is not None:
                candidates.update(zip((at.line for at in group), narrowed, strict=True))

    def _follow(self, candidates: dict[int, int]) -> None:
        """What flows into no store, a check of bounds, belongs where the last value that it uses was made."""
        made: dict[int, int] = {}
        for at in self._statements:
            if not candidates[at.line]:
                latest_first = (made.get(value, 0) for value in sorted(at.uses, reverse=True))
                candidates[at.line] = next(filter(None, latest_first), 0)
            made.update((value, candidates[at.line] or made.get(value, 0)) for value in at.defines)
        for at in self._statements:  # `auto tmp3 = [&]` stands above what it is made from
            candidates[at.line] = candidates[at.line] or joined(made[value] for value in at.defines)

    def _sharing(self, at: Statement, mask: int, reached: dict[int, int]) -> int:
        """Return the further nodes that ask for the value of a line themselves.

        A node that needs the result of the line's node gets the value along with that, so it does not count,
        unless it loads the same on its own.
        """
        if mask.bit_count() != 1:
            return 0
        reading = joined(self._nodes.reading(use) for use in self._loads(at))
        others = bits(self._flows(at, reached) & ~mask)
        return joined(
            1 << node for node in others if not self._nodes.needs[node] & mask or reading >> node & 1
        )
