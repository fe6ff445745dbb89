"""What the log says of a pair: each mention in order, the score and its outcome joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inductor_probe.analysis.fusion.refusals import explain
from inductor_probe.model.fusion import PairAttempt
from inductor_probe.model.logs import FusionAttempt, FusionBenchmark, FusionLog, FusionRound, SharedData

BENCHMARK = "(benchmark)"
"""How the reason of a pair begins that was refused because it was timed."""


def mentions(
    log: FusionLog, first: frozenset[str], second: frozenset[str], producers: Mapping[str, str]
) -> tuple[PairAttempt, ...]:
    """Return what the log says of pairs that have a node of `first` and one of `second` on their sides."""
    members: dict[str, frozenset[str]] = {}

    def about(one: str, other: str) -> bool:
        sides = [members.setdefault(name, frozenset(name.split("_"))) for name in (one, other)]
        if any(not first.isdisjoint(side) and not second.isdisjoint(side) for side in sides):
            return False
        return any(
            not first.isdisjoint(side) and not second.isdisjoint(against)
            for side, against in (sides, reversed(sides))
        )

    return tuple(
        attempt
        for part in log.rounds
        for attempt in round_attempts(part, producers)
        if about(attempt.first, attempt.second)
    )


def round_attempts(part: FusionRound, producers: Mapping[str, str]) -> Iterator[PairAttempt]:
    """Yield every pair of a round in the order of the log.

    What a pair shares is logged before it is refused or fused, in another log: both are one entry. Where each
    log has a file of its own, lines of one millisecond have no order, so that only names and rounds are used.
    `producers` names the node that writes each buffer: a pair that was timed is named by its buffers.
    """
    shared = {(score.first, score.second): score for score in part.shared}
    decided = {(attempt.first, attempt.second) for attempt in part.attempts}
    entries: list[tuple[int, PairAttempt]] = [
        (attempt.order, _attempt(part, attempt, shared.get((attempt.first, attempt.second))))
        for attempt in part.attempts
    ]
    present = {candidate.name for candidate in part.candidates}
    for pair, score in shared.items():
        if pair in decided or (part.found == 0 and present and not present.issuperset(pair)):
            continue  # the latter is a late line of the round before
        entry = PairAttempt(
            part.number, *pair, "scored", None, score.amount, without_reason=part.found == 0, span=score.span
        )
        entries.append((score.order, entry))
    entries.extend((timed.order, _timed(part, timed, producers)) for timed in part.benchmarks)
    entries.sort(key=lambda item: item[0])
    for _, attempt in entries:
        yield attempt


def _timed(part: FusionRound, timed: FusionBenchmark, producers: Mapping[str, str]) -> PairAttempt:
    first, second = (
        "_".join(producers.get(buffer, buffer) for buffer in side) for side in (timed.first, timed.second)
    )
    change = "speedup" if timed.faster else "slowdown"
    return PairAttempt(
        round=part.number,
        first=first,
        second=second,
        what="possible" if timed.faster else "refused",
        refusal=None if timed.faster else explain(f"{BENCHMARK} cause {timed.factor:g}x {change}"),
        applying=True,
        span=timed.span,
    )


def _attempt(part: FusionRound, entry: FusionAttempt, score: SharedData | None) -> PairAttempt:
    return PairAttempt(
        round=part.number,
        first=entry.first,
        second=entry.second,
        what=entry.outcome,
        refusal=explain(entry.reason) if entry.reason is not None else None,
        shared=score.amount if score else None,
        applying=entry.applying,
        span=entry.span,
    )
