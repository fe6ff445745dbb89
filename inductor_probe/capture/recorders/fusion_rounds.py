"""What is seen of the rounds of `Scheduler.fuse_nodes`, until all of them have ended.

A round asks about each two nodes that use a common buffer. The nodes of a round are made of unfused nodes,
whose names (`Rounds.names`) tell a pair of one round from that of the next.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeAlias

from inductor_probe.capture.recorders.base import Operands, Tests
from inductor_probe.capture.recorders.decision_log import place_of, stack
from inductor_probe.capture.recorders.fusion_causes import LazyCause, Reason, leaf_names
from inductor_probe.model.decision import CauseCode, Outcome, TorchFrame

UNKNOWN: Reason = ("other", {"text": ""})

Key: TypeAlias = frozenset[tuple[str, ...]]


@dataclass(slots=True)
class Attempt:
    """A call of torch's that is in progress: what is seen in it of the pair it is about."""

    first: Any
    second: Any
    place: TorchFrame
    cause: LazyCause | None = None
    score: int | None = None
    tests: Tests = ()
    is_epilogue: bool = False


@dataclass(slots=True)
class Answer:
    """The last answer about a pair. `cause` None: it was allowed. `time`: when it was asked, in calls."""

    groups: tuple[tuple[str, ...], tuple[str, ...]]
    outcome: Outcome
    cause: LazyCause | None
    place: TorchFrame
    frames: tuple[TorchFrame, ...]
    round: int
    time: int
    shared: int | None = None
    times: int = 1
    tests: Tests = ()


@dataclass(slots=True)
class Untried:
    """Nodes of the last round of which some pairs were not asked about, and why."""

    groups: tuple[tuple[str, ...], ...]
    cause: Reason
    place: TorchFrame


@dataclass(slots=True)
class Rounds:
    """What is seen while the nodes of one graph are fused.

    `timed` has the times in ms that a benchmark measured of a pair: the first, the second, both fused.
    """

    scheduler: Any
    frames: tuple[TorchFrame, ...]
    round: int = 0
    time: int = 0
    steps: int = 0
    may_reorder: bool = False
    leaves: dict[Any, tuple[str, ...]] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    answers: dict[Key, Answer] = field(default_factory=dict)
    allowed: dict[Key, tuple[Any, Any]] = field(default_factory=dict)
    dropped: dict[Key, Reason] = field(default_factory=dict)
    scores: dict[Key, str] = field(default_factory=dict)
    timing: list[list[float]] = field(default_factory=list)
    timed: dict[Key, Operands] = field(default_factory=dict)
    unfusable: dict[Any, TorchFrame] = field(default_factory=dict)
    candidates: Sequence[Any] = ()
    lists: Sequence[Any] = ()
    asked: set[Key] = field(default_factory=set)
    stacks: dict[tuple[object, int], tuple[TorchFrame, ...]] = field(default_factory=dict)
    causes: dict[object, LazyCause] = field(default_factory=dict)

    def names(self, node: Any) -> tuple[str, ...]:
        """Return the unfused nodes in a node."""
        names = self.leaves.get(node)
        if names is None:
            names = self.leaves[node] = leaf_names(node)
            self.nodes[node.get_name()] = node
        return names

    def key(self, first: Any, second: Any) -> Key:
        """Return what is the same for a pair in both orders."""
        return frozenset((self.names(first), self.names(second)))

    def stack_of(self, frame: FrameType | None) -> tuple[TorchFrame, ...]:
        """Return the stack from a frame of torch's; there are few, so each is read once."""
        if frame is None:
            return ()
        key = frame.f_code, frame.f_lineno
        if key not in self.stacks:
            self.stacks[key] = tuple(stack(frame))
        return self.stacks[key]

    def same(self, code: CauseCode, operands: Operands) -> LazyCause:
        """Return what returns a cause that is known already: one for all pairs that it keeps apart.

        Thousands of pairs have a few hundred causes. Whatever is kept of each pair is walked by Python's
        garbage collector, and makes it run more often.
        """
        key = code, *operands.items()
        cause = self.causes.get(key)
        if cause is None:
            cause = self.causes[key] = same((code, operands))
        return cause

    def untried(self) -> Iterator[Untried]:
        """Yield what says of each pair of the last round that was not asked about why it was not.

        Pairs grow with the square of the nodes, so none has a row of its own: each two of `groups` of which
        no other decision speaks were not tried, as they use no common buffer, or use one far apart.
        """
        nodes = [node for node in self.candidates if node not in self.unfusable]
        place = place_of(type(self.scheduler).get_possible_fusions)
        users: dict[str, list[int]] = {}
        for number, node in enumerate(nodes):
            for buffer in node.used_buffer_names():
                users.setdefault(buffer, []).append(number)
        neighbours = self._asked_bits(nodes)
        limited = [*self._limited(nodes, users, neighbours, place)]
        for numbers in users.values():
            mask = sum(1 << number for number in numbers)
            for number in numbers:
                neighbours[number] |= mask
        everyone = (1 << len(nodes)) - 1
        missing = [everyone & ~mask & ~(1 << number) for number, mask in enumerate(neighbours)]
        if pairs := sum(mask.bit_count() for mask in missing) // 2:
            groups = tuple(self.names(node) for node, mask in zip(nodes, missing, strict=True) if mask)
            yield Untried(groups, ("no-common-buffer", {"pairs": pairs}), place)
        yield from limited

    def _limited(
        self, nodes: Sequence[Any], users: dict[str, list[int]], asked: Sequence[int], place: TorchFrame
    ) -> Iterator[Untried]:
        """Yield for each buffer its users, in the order of which torch pairs one with the next few only."""
        limit = int(sys.modules["torch._inductor.config"].max_fusion_buffer_group_pairwise_attempts)
        for buffer, numbers in users.items():
            bits = (1 << number for number in reversed(numbers))
            after = [*itertools.accumulate(bits, operator.or_)][::-1]  # of each user, itself and those behind
            far = zip(numbers, after[limit + 1 :], strict=False)
            pairs = sum((mask & ~asked[number]).bit_count() for number, mask in far)
            if pairs:
                operands: Operands = {"buffer": buffer, "limit": limit, "pairs": pairs}
                groups = tuple(self.names(nodes[number]) for number in numbers)
                yield Untried(groups, ("pair-limit", operands), place)

    def _asked_bits(self, nodes: Sequence[Any]) -> list[int]:
        """Return for each node those that it was asked about with, as bits."""
        numbers = {self.names(node): number for number, node in enumerate(nodes)}
        bits = [0] * len(nodes)
        for key in self.asked:
            pair = [numbers[names] for names in key if names in numbers]
            for one, other in (pair, pair[::-1]) if len(pair) == 2 else ():
                bits[one] |= 1 << other
        return bits


def same(cause: Reason) -> LazyCause:
    """Return what returns a cause that is known already."""
    return functools.partial(_same, cause)


def _same(cause: Reason) -> Reason:
    return cause


def uncovered(groups: Sequence[tuple[int, int]], bits_of: Callable[[int], Iterable[int]]) -> list[bool]:
    """Say of each pair of node sets whether no later pair has all of its nodes apart; latest first.

    For example ({op0}, {op1}), then ({op0, op2}, {op1}): the second says what kept op0 and op1 apart in the
    end, so of the latest first the answers are [True, False].

    Args:
        groups: two sets a pair, as bits. bits_of: from a set to its bits, one at a time.
    """
    covered: defaultdict[int, int] = defaultdict(int)
    answers = []
    for first, second in groups:
        left = [bit for bit in bits_of(first) if second & ~covered[bit]]
        for bit in left:
            covered[bit] |= second
        if left:
            for bit in bits_of(second):
                covered[bit] |= first
        answers.append(bool(left))
    return answers


def is_last(answers: Sequence[Answer]) -> list[bool]:
    """Say of each answer, latest first, whether it is the last about some two unfused nodes."""
    groups = {group for answer in answers for group in answer.groups}
    bits = {name: 1 << number for number, name in enumerate(dict.fromkeys(itertools.chain(*groups)))}
    members = {group: [bits[name] for name in group] for group in groups}
    masks = {group: sum(members[group]) for group in groups}
    bits_of = {masks[group]: members[group] for group in groups}
    pairs = (answer.groups for answer in answers)
    return uncovered([(masks[first], masks[second]) for first, second in pairs], bits_of.__getitem__)
