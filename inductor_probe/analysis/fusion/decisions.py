"""Decisions of fusion where none were recorded: read in torch's log, or inferred from the IR.

They have the codes and operands of those that `capture/recorders/fusion.py` records. The log has torch's
words alone, so what torch compared is taken from the IR: the accesses of a pair, its loops, what is between.
Where the log is silent, and the IR shows loops that the backend does not fuse, that is inferred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec.structs import replace

from inductor_probe.analysis.fusion.facts import (
    Fit,
    Operands,
    fit_loops,
    is_reduction,
    kind_of,
    lead_of,
    path_between,
    shared_buffers,
)
from inductor_probe.analysis.graph import index_of, without_subgraphs
from inductor_probe.analysis.index import known_sum, merged_loops, parse_index
from inductor_probe.analysis.links import links
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import CauseCode, Decision, Outcome
from inductor_probe.model.fusion import SharedBuffer
from inductor_probe.model.fusion_reasons import REASONS, Reason
from inductor_probe.model.ir import Dep, Dim, MemoryDep, SchedulerNode
from inductor_probe.model.logs import FusionLog, FusionRound
from inductor_probe.model.span import Span
from inductor_probe.reader.logs.fusion_reasons import explain

_OTHER: tuple[CauseCode, Operands] = ("other", {"text": ""})
_NUMEL_CODES = ("tiling-not-of-reduction", "ranges-do-not-split", "numel-of-neither")
_Cause = tuple[CauseCode, Operands]


class _Mention(NamedTuple):
    """A pair in the log. `silent`: scored in a round that could fuse nothing: refused without a reason."""

    first: str
    second: str
    what: Literal["fused", "refused", "possible", "scored", "silent"]
    reason: str
    shared: int | bool | None
    span: Span | None


def logged_decisions(graph: CompiledGraph, log: FusionLog | None) -> tuple[Decision, ...]:
    """Return what a graph's part of torch's log says of each pair: its last answer.

    Of pairs of the same two nodes after fusion the last one counts, the others are tries (`speculative`).
    """
    graph = without_subgraphs(graph)
    answers: dict[frozenset[str], tuple[_Mention, int, Operands]] = {}
    steps = 0
    for number, row in enumerate(log.rounds if log else (), 1):
        for mention in _mentions(row, index_of(graph).before.producer):
            key = frozenset((mention.first, mention.second))
            before, times, operands = answers.pop(key, (mention, 0, {}))
            if mention.what == "fused":
                steps += 1
                operands = {"round": number, "step": steps}
                operands |= {"reordered": True} if row.number is None else {}
            is_known = mention.what == "scored" and before.reason.startswith("(benchmark)")
            answers[key] = before if is_known else mention, times + 1, operands  # torch times a pair once
    rows: list[tuple[frozenset[str], Decision]] = []
    for number, (mention, times, operands) in enumerate(answers.values(), 1):
        pair = _Pair(graph, mention.first.split("_"), mention.second.split("_"))
        decision = replace(pair.decision(mention, operands), number=number, times=times, span=mention.span)
        rows.append((pair.tops, decision))
    last = {tops: one.number for tops, one in rows if one.outcome != "fused" and len(tops) > 1}
    return tuple(
        replace(one, speculative=one.outcome != "fused" and last.get(tops) != one.number)
        for tops, one in rows
    )


def decision_of_ir(
    graph: CompiledGraph, first: Collection[str], second: Collection[str], *, logged: bool
) -> Decision | None:
    """Return what became of two nodes that no decision is about, as far as the IR shows; None: it does not.

    Args:
        graph: with both. first, second: names of unfused nodes, in any order.
        logged: whether torch logged what it refused: then it was the backend, or the pair was not tried.
    """
    index = index_of(graph)
    one, other = (
        sorted(names, key=lambda name: index.before.place.get(name, 0)) for names in (first, second)
    )
    needs_other = any(path_between(index, other, one))
    in_order = index.before.place.get(one[0], 0) < index.before.place.get(other[0], 0)
    is_swapped = needs_other or not (in_order or any(path_between(index, one, other)))
    pair = _Pair(graph, *((other, one) if is_swapped else (one, other)))
    if pair.is_fused:
        return pair.made("fused", pair.way())
    for side in pair.sides:
        if {kind_of(leaf) for leaf in side} <= {"extern", "nop"}:
            call = links(graph).nodes.get(side[0].name)
            code: CauseCode = "no-kernel" if kind_of(side[0]) == "nop" else "extern-kernel"
            operands: Operands = {"kernel": call.kernel} if call and call.kernel else {}
            alone = pair.made("not-tried", (code, operands))
            return replace(alone, subjects=(tuple(leaf.name for leaf in side),))
    one_top, other_top = map(pair.fused_with, pair.sides)
    if not shared_buffers(one_top, other_top, {}):
        return pair.made("not-tried", ("no-common-buffer", {}))
    if not pair.shared:  # what they were fused with uses common ones, and was to be fused with them
        place = index.before.place
        tops = (
            sorted((leaf.name for leaf in top), key=lambda name: place.get(name, 0))
            for top in (one_top, other_top)
        )
        pair = _Pair(graph, *tops)
    backend = pair.backend()
    if not logged:
        devices = [side[0].device for side in pair.sides]
        if devices[0] != devices[1]:
            operands = {"first_device": str(devices[0]), "second_device": str(devices[1])}
            return pair.made("refused", ("devices-differ", operands), "inferred")
        if between := pair.between():
            return pair.made("refused", ("intermediate-node", between), "inferred")
        if not any(row.matches for row in pair.shared) and (unshared := pair.unshared()) != _OTHER:
            return pair.made("refused", unshared, "inferred")
    return pair.made("refused", backend, "inferred") if backend else None


class _Pair:
    """Two groups of unfused nodes, and what the IR shows of them."""

    def __init__(self, graph: CompiledGraph, first: Collection[str], second: Collection[str]) -> None:
        self.graph, self.index = graph, index_of(graph)
        self.names = tuple(first), tuple(second)
        self.sides = [self.index.before.named(names) for names in self.names]
        tops = (self.index.post.top.get(name) for names in self.names for name in names)
        self.tops = frozenset(top.name for top in tops if top is not None)
        self.is_fused = len(self.tops) == 1
        self._direct, self._path = path_between(self.index, *self.names) if all(self.sides) else (False, ())

    @property
    def shared(self) -> tuple[SharedBuffer, ...]:
        """The buffers that both use."""
        return shared_buffers(self.sides[0], self.sides[1], self.index.before.layouts)

    def fused_with(self, side: list[SchedulerNode]) -> list[SchedulerNode]:
        """Return the nodes of a side, and those that they were fused with."""
        index = self.index
        tops = (index.post.top.get(leaf.name) for leaf in side)
        fused = (name for top in tops if top for name in index.post.members[top.name])
        return index.before.named(dict.fromkeys((*(leaf.name for leaf in side), *fused)))

    def made(
        self, outcome: Outcome, cause: _Cause, knowledge: Literal["read", "inferred"] = "read"
    ) -> Decision:
        """Return a decision about both."""
        code, operands = cause
        row = tuple(operands.items())
        return Decision(0, "fusion", "node", self.names, outcome, code, row, None, knowledge=knowledge)

    def decision(self, mention: _Mention, operands: Operands) -> Decision:
        """Return what the log says of the pair in the end; `operands` are those of a step."""
        shared = mention.shared
        if shared is None:
            shared = known_sum(row.bytes for row in self.shared if row.matches)
        if isinstance(shared, int) and not isinstance(shared, bool) and (shared or operands):
            operands = {**operands, "shared_bytes": shared}
        match mention.what:
            case "fused":
                code, more = self.way()
                return self.made("fused", (code, {**operands, **more}))
            case "refused":
                code, more = self.refusal(mention.reason)
                return self.made("refused", (code, {**operands, **more}))
            case "possible" if self.is_fused:
                return self.made("fused", self.way())
        code, more = self.backend() or _OTHER
        if mention.what == "silent" or (mention.what == "scored" and code != "other"):
            knowledge: Literal["read", "inferred"] = "read" if code == "other" else "inferred"
            return self.made("refused", (code, {**operands, **more}), knowledge)
        sides = [tuple(leaf.name for leaf in self.fused_with(side)) for side in self.sides]
        others = [side for side, own in zip(sides, self.names, strict=True) if len(side) > len(own)]
        taken: _Cause = ("fused-with-another", {"group": others[0]}) if others else _OTHER
        return self.made("postponed", taken, "inferred")

    def way(self) -> _Cause:
        """Return how the two became one."""
        operands: Operands = {}
        if shared := self.shared:
            counted = [row.buffer for row in shared if row.matches]
            operands["buffers"] = tuple(counted or [row.buffer for row in shared])
        kinds = [{kind_of(leaf) for leaf in side} for side in self.sides]
        top = self.index.post.node.get(next(iter(self.tops))) if self.is_fused else None
        fit = self._fit()
        if "template" in kinds[0] ^ kinds[1] and kinds[0] | kinds[1] != {"template"}:
            return ("template-epilogue" if "template" in kinds[0] else "template-prologue"), operands
        if top is not None and top.kind == "OuterLoopFusedSchedulerNode" and fit.depth:
            return "outer-loops", {**operands, "depth": fit.depth}
        if top is not None and top.kind == "FusedMixOrderReductions" and fit.fits is False:
            return "mix-order-reductions", operands
        return ("producer-and-consumer" if self._direct or self._path else "common-buffer"), operands

    def _fit(self) -> Fit:
        dependent = self._direct or bool(self._path)
        return fit_loops(self.graph, *self.names, dependent=dependent) if all(self.sides) else Fit(None)

    def backend(self) -> _Cause | None:
        """Return why the backend refuses their loops; None where it does not, or that is not known."""
        fit = self._fit()
        return (fit.code, fit.operands) if fit.fits is False else None

    def between(self) -> Operands:
        """Return what has to run between them; nothing where the IR shows none."""
        return {"node": self._path[-3], "buffer": self._path[-2]} if self._path else {}

    def refusal(self, reason: str) -> _Cause:
        """Return the cause that a reason is, with what torch compared; in torch's words where it has no code.

        So it is where the IR does not show what the sentence of a code needs.
        """
        form, numbers = explain(reason)
        code = REASONS.get(form, Reason()).code
        operands: Operands = {**dict(numbers)}
        words: _Cause = "other", {"text": reason}
        match code:
            case "accesses-differ":
                unshared = self.unshared()
                return words if unshared == _OTHER else unshared
            case "dependency-differs":
                return code, self._access(self._unequal("first_writes"))
            case "intermediate-node":
                return (code, between) if (between := self.between()) else words
            case "fusion-size-limit":
                operands["nodes"] = sum(map(len, self.names))
            case "epilogue-fusion-off":
                return ("epilogue-reduces", {}) if any(map(is_reduction, self.sides[1])) else words
            case "other":
                return words
        if code in _NUMEL_CODES:
            for which, side in zip(("first", "second"), self.sides, strict=True):
                numel, rnumel = lead_of(side).iteration or (None, None)
                operands |= {f"{which}_numel": str(numel), f"{which}_rnumel": str(rnumel)}
        return code, operands

    def unshared(self) -> _Cause:
        """Return why torch counts no bytes as shared: an access of each to a buffer that both use."""
        if not self.shared:
            return "no-common-data", {}
        row = self._unequal("")
        code, operands = _equal_but_for(row), self._access(row)
        if not operands:
            return _OTHER
        operands["buffers"] = tuple(one.buffer for one in self.shared)
        if code is None:
            return "accesses-differ", operands
        on_cpu = any(leaf.device == "cpu" for side in self.sides for leaf in side)
        reduce = [any(map(is_reduction, side)) for side in self.sides]
        return code, {**operands, "cpu": on_cpu, "both_reduce": all(reduce)}

    def _unequal(self, relation: str) -> SharedBuffer | None:
        """Return the buffer to name: used by both in other ways; first what would be equal in other loops."""
        rows = [row for row in self.shared if not row.matches and row.relation.startswith(relation)]
        rows = [row for row in rows if "waits" not in row.relation and row.relation != "order_only"]
        return max(
            rows, key=lambda row: (_equal_but_for(row) is not None, row.relation != "both_read"), default=None
        )

    def _access(self, row: SharedBuffer | None) -> Operands:
        if row is None:
            return {}
        first, second = row.relation.split("_")[1::2] if row.relation != "both_read" else ("reads", "reads")
        if row.relation.startswith("second"):
            first, second = second, first
        operands: Operands = {"buffer": row.buffer, "first_does": first, "second_does": second}
        for which, dep in (("first", row.first[0]), ("second", row.second[0])):
            operands[f"{which}_index"] = dep.index if isinstance(dep, MemoryDep) else "all"
            if isinstance(dep, MemoryDep):
                operands[f"{which}_ranges"] = ", ".join(f"{name}: {size}" for name, size in dep.ranges)
        return operands


def _equal_but_for(row: SharedBuffer | None) -> CauseCode | None:
    """Return how two accesses of the same elements differ in their loops; None where they are others."""
    one, other = (_runs(row.first[0]), _runs(row.second[0])) if row else (None, None)
    if one is None or other is None:
        return None
    if (one[0], merged_loops(one[1])) == (other[0], merged_loops(other[1])):
        return "loop-sizes-differ"
    ordered = [(start, merged_loops(sorted(runs, reverse=True))) for start, runs in (one, other)]
    return "loop-order-differs" if ordered[0] == ordered[1] else None


def _runs(dep: Dep) -> tuple[Dim, list[tuple[int, int]]] | None:
    """Return where an access begins, and the strides of its loops with their sizes; None: it has none."""
    if not isinstance(dep, MemoryDep):
        return None
    try:
        index = parse_index(dep.index)
    except ValueError:
        return None
    runs = [(index.stride(name), size) for name, size in dep.ranges if size != 1]
    known = [(a, b) for a, b in runs if isinstance(a, int) and isinstance(b, int)]
    if len(known) < len(runs) or not index.names <= dict(dep.ranges).keys():
        return None
    return dict(index.terms).get((), 0), known


def _mentions(row: FusionRound, producers: Mapping[str, str]) -> Iterator[_Mention]:
    """Yield every pair of a round in the order of the log.

    What a pair shares is logged before it is refused or fused, in another log: both are one entry. Where each
    log has a file of its own, lines of one millisecond have no order, so that only names and rounds are used.
    `producers` names the node that writes each buffer: a pair that was timed is named by its buffers.
    """
    shared = {(score.first, score.second): score for score in row.shared}
    decided = {(attempt.first, attempt.second) for attempt in row.attempts}
    present = {candidate.name for candidate in row.candidates}
    entries: list[tuple[int, _Mention]] = []
    for one in row.attempts:
        score = shared.get((one.first, one.second))
        amount = score.amount if score else None
        mention = _Mention(one.first, one.second, one.outcome, one.reason or "", amount, one.span)
        entries.append((one.order, mention))
    for pair, score in shared.items():
        if pair in decided or (row.possible == 0 and present and not present.issuperset(pair)):
            continue  # the latter is a late line of the round before
        what: Literal["silent", "scored"] = "silent" if row.possible == 0 else "scored"
        entries.append((score.order, _Mention(*pair, what, "", score.amount, score.span)))
    for timed in row.benchmarks:
        first, second = (
            "_".join(producers.get(name, name) for name in side) for side in (timed.first, timed.second)
        )
        if timed.faster:
            entries.append((timed.order, _Mention(first, second, "possible", "", None, timed.span)))
        else:
            reason = f"(benchmark) cause {timed.factor:g}x slowdown"
            entries.append((timed.order, _Mention(first, second, "refused", reason, None, timed.span)))
    entries.sort(key=lambda entry: entry[0])
    yield from (mention for _, mention in entries)
