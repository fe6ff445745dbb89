"""Playing the log's fusions again: which nodes come together at which step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inductor_probe.model.fusion import FusionStep
from inductor_probe.model.logs import FusionLog


@dataclass(frozen=True, slots=True)
class Replay:
    """What the log's fusions make of the nodes it starts from.

    Attributes:
        steps: the fusions in order.
        groups: sets of unfused nodes at the end.
        logged: False when this torch lists only what it could fuse (2.2): `groups` are those at the start.
        gaps: fusions of what the steps before do not make: lines are missing from the log.
    """

    steps: tuple[FusionStep, ...]
    groups: frozenset[frozenset[str]]
    logged: bool
    gaps: tuple[FusionStep, ...] = ()


def replay(log: FusionLog, start: list[tuple[str, ...]]) -> Replay:
    """Play the fusions of `log` on the groups of unfused nodes in `start`."""
    groups = {name: frozenset(members) for members in start for name in members}
    steps: list[FusionStep] = []
    gaps: list[FusionStep] = []
    logged = True
    for step in _fusions(log):
        joined: frozenset[str] = frozenset()
        for side in (step.first, step.second):
            members = frozenset(side.split("_"))
            if any(groups.get(name) != members for name in members):
                gaps.append(step)
            for name in members:
                joined |= groups.get(name, frozenset((name,)))
        for name in joined:
            groups[name] = joined
        steps.append(
            FusionStep(
                step.number,
                step.round,
                step.first,
                step.second,
                _in_order(step.first, step.second, joined),
                step.shared,
                step.span,
            )
        )
    if any(attempt.outcome == "possible" for part in log.rounds for attempt in part.attempts):
        logged = False
    return Replay(tuple(steps), frozenset(groups.values()), logged, tuple(gaps))


def step_that_joins(steps: tuple[FusionStep, ...], nodes: frozenset[str]) -> FusionStep | None:
    """Return the first step after which all `nodes` are in one group."""
    return next((step for step in steps if nodes.issubset(step.nodes)), None)


def start_of(log: FusionLog) -> list[tuple[str, ...]]:
    """Return the groups that the first round starts from, where the log lists its candidates."""
    first = next((part for part in log.rounds if part.candidates), None)
    if first is None:
        return []
    return [tuple(member.node for member in candidate.members) for candidate in first.candidates]


def _fusions(log: FusionLog) -> Iterator[FusionStep]:
    number = 0
    for part in log.rounds:
        shared = {(score.first, score.second): score.amount for score in part.shared}
        for attempt in part.attempts:
            if attempt.outcome == "fused":
                number += 1
                amount = shared.get((attempt.first, attempt.second))
                yield FusionStep(number, part.number, attempt.first, attempt.second, (), amount, attempt.span)


def _in_order(first: str, second: str, joined: frozenset[str]) -> tuple[str, ...]:
    named = dict.fromkeys((*first.split("_"), *second.split("_")))
    return (*named, *sorted(joined - named.keys()))
