"""Which nodes were fused, and what kept every other pair apart, as `Scheduler.fuse_nodes` decided it.

torch/_inductor/scheduler.py fuses in rounds. A round (`fuse_nodes_once`) asks `can_fuse` of each two nodes
that use a common buffer, sorts those it may fuse by score, asks once more, and fuses. The next round asks the
same of the nodes that came of it, under other names: (op0, op1), later (op0_op2, op1). Here an answer is kept
for each pair of sets of unfused nodes, the last one, with the number of times that it was asked; what a
later answer covers in full is marked as speculative. So op0 and op1 are kept apart by the last decision that
has one in its first group and the other in its second.

Half of the refusals are logged (`WhyNoFuse`); the C++ backend returns False without a word, and pairs
without a common buffer are never asked about. Both are recorded from what torch has at hand.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, place_of, stack
from inductor_probe.capture.recorders.fusion_causes import (
    Cause,
    LazyCause,
    common_buffers,
    cpp_cause,
    leaf_names,
    logged_cause,
    uncovered,
    undone_cause,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "fusion"

_PAIR_LIMIT = 64  # a literal before torch 2.12, since then max_fusion_buffer_group_pairwise_attempts
_MOST_NAMES = 200_000
"""Names that pairs without a common buffer may take in the file: a graph of some 600 nodes."""

_UNKNOWN: Cause = ("other", {"text": ""})
_Key = frozenset[tuple[str, ...]]


@dataclass(slots=True)
class _Attempt:
    """A call of torch's that is in progress: what is seen in it of the pair it is about."""

    first: Any
    second: Any
    place: TorchFrame
    cause: LazyCause | None = None
    score: int | None = None
    reordered: bool = False


@dataclass(slots=True)
class _Answer:
    """The last answer about a pair. `cause` None: it was allowed. `time`: when it was asked, in calls."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    outcome: Outcome
    cause: LazyCause | None
    place: TorchFrame
    frames: tuple[TorchFrame, ...]
    round: int
    time: int
    shared: int | None = None
    times: int = 1


@dataclass(slots=True)
class _Rounds:
    """What is seen while the nodes of one graph are fused."""

    scheduler: Any
    frames: tuple[TorchFrame, ...]
    round: int = 0
    time: int = 0
    steps: int = 0
    leaves: dict[Any, tuple[str, ...]] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    attempts: list[_Attempt] = field(default_factory=list)
    answers: dict[_Key, _Answer] = field(default_factory=dict)
    allowed: dict[_Key, tuple[Any, Any]] = field(default_factory=dict)
    dropped: dict[_Key, Cause] = field(default_factory=dict)
    scores: dict[_Key, str] = field(default_factory=dict)
    timed: dict[_Key, list[float]] = field(default_factory=dict)
    unfusable: dict[Any, TorchFrame] = field(default_factory=dict)
    candidates: Sequence[Any] = ()
    asked: set[_Key] = field(default_factory=set)
    stacks: dict[tuple[object, int], tuple[TorchFrame, ...]] = field(default_factory=dict)

    def names(self, node: Any) -> tuple[str, ...]:
        """Return the unfused nodes in a node."""
        names = self.leaves.get(node)
        if names is None:
            names = self.leaves[node] = leaf_names(node)
            self.nodes[node.get_name()] = node
        return names

    def key(self, first: Any, second: Any) -> _Key:
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


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._open: list[_Rounds] = []

    def _rounds(self, scheduler: Any) -> _Rounds | None:
        rounds = self._open[-1] if self._open else None
        return rounds if rounds is not None and rounds.scheduler is scheduler else None

    def around_fusion(self, fuse_nodes: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fuse_nodes` so that what all its rounds decided is recorded when it has returned."""

        def fuse_and_record(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            self._open.append(_Rounds(scheduler, tuple(stack(sys._getframe(1)))))
            try:
                result = fuse_nodes(scheduler, *args, **kwargs)
                self._log.safely(self._record, self._open[-1])
            finally:
                self._open.pop()
            return result

        return fuse_and_record

    def around_round(self, fuse_once: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fuse_nodes_once` so that it is known what of the allowed pairs was not fused in it."""

        def fuse_once_and_see(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            rounds = self._rounds(scheduler)
            if rounds is not None:
                rounds.round += 1
                for table in (rounds.allowed, rounds.dropped, rounds.timed):
                    table.clear()
            result = fuse_once(scheduler, *args, **kwargs)
            if rounds is not None:
                self._log.safely(self._postpone, rounds)
            return result

        return fuse_once_and_see

    def around_candidates(self, get_possible: Callable[..., Any]) -> Callable[..., Any]:
        """Return `get_possible_fusions` so that it is known which nodes it was to pair."""

        def get_and_see(scheduler: Any, nodes: Any, *args: Any, **kwargs: Any) -> Any:
            rounds = self._rounds(scheduler)
            if rounds is not None:
                rounds.candidates = list(nodes)
                rounds.asked = set()
            return get_possible(scheduler, nodes, *args, **kwargs)

        return get_and_see

    def around_question(self, ask: Callable[..., Any], *, refused: bool) -> Callable[..., Any]:
        """Return `can_fuse` or `will_fusion_create_cycle`, with its answer kept.

        Args:
            refused: the answer that keeps the pair apart.
        """
        place = place_of(ask)

        def ask_and_see(scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            rounds = self._rounds(scheduler)
            if rounds is None or first is second:
                return ask(scheduler, first, second, *args, **kwargs)
            rounds.attempts.append(_Attempt(first, second, place))
            try:
                result = ask(scheduler, first, second, *args, **kwargs)
            finally:
                attempt = rounds.attempts.pop()
            is_refused = bool(result) is refused
            if refused and not is_refused:
                return result  # no cycle: what can_fuse answered is the answer
            self._log.safely(self._answered, rounds, attempt, is_refused, sys._getframe(1))
            return result

        return ask_and_see

    def _answered(self, rounds: _Rounds, attempt: _Attempt, is_refused: bool, frame: FrameType) -> None:
        if rounds.attempts:  # a foreach node asks of its members: what refuses one of them refuses it
            rounds.attempts[-1].cause = attempt.cause if is_refused else rounds.attempts[-1].cause
            return
        key = rounds.key(attempt.first, attempt.second)
        first, second = rounds.names(attempt.first), rounds.names(attempt.second)
        before = rounds.answers.get(key)
        rounds.time += 1
        is_reverse = before is not None and before.round == rounds.round and before.first == second
        if before is not None and is_reverse and is_refused:
            before.times += 1  # of a template or a foreach node both orders are asked, the natural one first
            return
        rounds.asked.add(key)
        cause = attempt.cause or functools.partial(_same, _UNKNOWN)
        rounds.answers[key] = _Answer(
            first, second, "refused", cause if is_refused else None, attempt.place, rounds.stack_of(frame),
            rounds.round, rounds.time, attempt.score, before.times + 1 if before else 1,
        )  # fmt: skip
        if is_refused:
            rounds.allowed.pop(key, None)
        else:
            rounds.allowed[key] = attempt.first, attempt.second

    def around_reason(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `WhyNoFuse.__call__` so that its form and its operands are kept, and what refused."""

        def call_and_see(why: Any, form: str, *args: Any) -> None:
            call(why, form, *args)
            if self._open:
                self._log.safely(self._refused, self._open[-1], why, form, args, sys._getframe(1))

        return call_and_see

    def _refused(self, rounds: _Rounds, why: Any, form: str, args: tuple[Any, ...], frame: FrameType) -> None:
        attempt = rounds.attempts[-1] if rounds.attempts else None
        pair = (attempt.first, attempt.second) if attempt else None
        place = next(stack(frame))
        cause = logged_cause(form, args, pair, frame.f_locals)
        if attempt is not None:
            attempt.cause, attempt.place = cause, place
            return
        nodes = rounds.nodes.get(why.name1), rounds.nodes.get(why.name2)  # when a benchmark has ended
        answer = rounds.answers.get(rounds.key(*nodes)) if all(nodes) else None
        if answer is not None:
            answer.cause, answer.place = cause, place

    def scored(self, _: TorchFrame, result: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """Keep the bytes that torch counted as shared: the last count, after loops were reordered."""
        rounds = self._rounds(scheduler)
        if rounds is None or not rounds.attempts or not isinstance(result, int):
            return  # the order of pairs is scored, too, with a tuple
        if len(args) < 3 and kwargs.get("count_bytes", True):
            rounds.attempts[-1].score = int(result)

    def ranked(self, _: TorchFrame, result: Any, scheduler: Any, nodes: Any) -> None:
        """Keep the score by which the pairs of a round are sorted."""
        rounds = self._rounds(scheduler)
        if rounds is not None:
            rounds.scores[rounds.key(*nodes)] = str(result)

    def preferred(self, _: TorchFrame, result: Any, scheduler: Any, possible: Any) -> None:
        """Keep the pairs that wait until nothing of a higher priority is left."""
        rounds = self._rounds(scheduler)
        if rounds is None or len(result) == len(possible):
            return
        kept = {rounds.key(*pair) for pair in result}
        operands: dict[str, Operand] = {"candidates": len(possible), "kept": len(result)}
        for pair in possible:
            if (key := rounds.key(*pair)) not in kept:
                rounds.dropped[key] = "lower-priority", operands

    def unfusable(self, place: TorchFrame, result: Any, scheduler: Any, node: Any) -> None:
        """Keep the nodes that are in no pair."""
        rounds = self._rounds(scheduler)
        if rounds is not None and result:
            rounds.unfusable[node] = place

    def around_benchmark(self, speedup: Callable[..., Any]) -> Callable[..., Any]:
        """Return `speedup_by_fusion` so that the times of the kernels that it runs are known as a pair's."""

        def time_and_see(scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            result = speedup(scheduler, first, second, *args, **kwargs)
            rounds = self._rounds(scheduler)
            if rounds is not None and getattr(result, "callable_fn", None) is not None:
                rounds.timed[rounds.key(first, second)] = []
            return result

        return time_and_see

    def timed(self, _: TorchFrame, result: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """Keep a time in ms: the first kernel, the second, and the fused one, of the pair that is waiting."""
        rounds = self._rounds(scheduler)
        if rounds is None:
            return
        waiting = next((times for times in rounds.timed.values() if len(times) < 3), None)
        if waiting is not None:
            waiting.append(float(result[0]))

    def fused(
        self, place: TorchFrame, result: Any, scheduler: Any, first: Any, second: Any, *args: Any
    ) -> None:
        """Keep a step: two nodes became one."""
        rounds = self._rounds(scheduler)
        if rounds is None:
            return
        key = rounds.key(first, second)
        before = rounds.answers.get(key)
        rounds.time += 1
        rounds.steps += 1
        depth = getattr(result, "outer_loop_fusion_depth", None)
        operands: dict[str, Operand] = {"round": rounds.round, "step": rounds.steps}
        if before is not None and before.shared is not None:
            operands["shared_bytes"] = before.shared
        if key in rounds.scores:
            operands["score"] = rounds.scores[key]
        operands["buffers"] = common_buffers(first, second)
        if depth is not None:
            operands["depth"] = int(depth)
            cause: Cause = "outer-loops", operands
        elif set(first.get_operation_names()) & set(second.ancestors):
            cause = "producer-and-consumer", operands
        else:
            cause = "common-buffer", operands
        rounds.answers[key] = _Answer(
            rounds.names(first), rounds.names(second), "fused", lambda: cause, place,
            rounds.stack_of(sys._getframe(3)), rounds.round, rounds.time, None, before.times if before else 1,
        )  # fmt: skip
        rounds.allowed.pop(key, None)

    def fused_by_backend(
        self, place: TorchFrame, result: Any, scheduling: Any, first: Any, second: Any
    ) -> None:
        """Keep a step where torch has no `fuse_two_nodes`."""
        self.fused(place, result, scheduling.scheduler, first, second)

    def _postpone(self, rounds: _Rounds) -> None:
        """Say of each pair that was allowed in a round why it was not fused in it."""
        for key, pair in rounds.allowed.items():
            answer = rounds.answers[key]
            if answer.cause is not None:
                continue  # a benchmark refused it
            answer.outcome = "postponed"
            if key in rounds.dropped:
                cause = rounds.dropped[key]
            elif len(times := rounds.timed.get(key, [])) == 3:
                answer.outcome = "refused"
                first, second, fused = times
                text = f"(benchmark) cause {fused / (first + second):.3f}x slowdown"
                ms: dict[str, Operand] = {"first_ms": first, "second_ms": second, "fused_ms": fused}
                cause = "other", {"text": text, **ms}
            else:
                nodes = rounds.scheduler.name_to_fused_node
                groups = [rounds.names(nodes[rounds.names(node)[0]]) for node in pair]
                others = [group for group in groups if group not in (answer.first, answer.second)]
                cause = ("fused-with-another", {"group": others[0]}) if others else _UNKNOWN
            answer.cause = functools.partial(_same, cause)

    def _record(self, rounds: _Rounds) -> None:
        answers = sorted(rounds.answers.values(), key=lambda answer: answer.time)
        untried = list(self._untried(rounds))
        latest = [*untried, *reversed(answers)]
        bits = {name: 1 << number for number, name in enumerate(dict.fromkeys(_all_names(latest)))}
        masks = [(_mask(answer.first, bits), _mask(answer.second, bits)) for answer in latest]
        news = dict(zip(map(id, latest), uncovered(masks, _bits), strict=True))
        for node, place in rounds.unfusable.items():
            self._record_unfusable(rounds, node, place)
        for answer in (*answers, *untried):
            code, operands = answer.cause() if answer.cause else _UNKNOWN
            if answer.outcome != "fused" and answer.shared:  # of no bytes the cause speaks
                operands = {"shared_bytes": answer.shared, **operands}
            subjects = (answer.first, answer.second)
            self._log.record(
                KIND, subjects, answer.outcome, code, answer.place, operands=operands,
                key=frozenset(subjects), frames=answer.frames, times=answer.times,
                speculative=answer.outcome != "fused" and not news[id(answer)],
            )  # fmt: skip

    def _record_unfusable(self, rounds: _Rounds, node: Any, place: TorchFrame) -> None:
        kernel = getattr(node.node, "python_kernel_name", None) or type(node.node).__name__
        is_nop = type(node).__name__ == "NopKernelSchedulerNode"
        self._log.record(
            KIND, (rounds.names(node),), "not-tried", "no-kernel" if is_nop else "extern-kernel", place,
            operands={"kernel": str(kernel)}, key=rounds.names(node), frames=rounds.frames,
        )  # fmt: skip

    def _untried(self, rounds: _Rounds) -> Iterator[_Answer]:
        """Yield the pairs of the last round that were not asked about: limited, or without a common buffer.

        The second kind is folded: a row a node, with all later nodes that use none of its buffers.
        """
        nodes = [node for node in rounds.candidates if node not in rounds.unfusable]
        place = place_of(type(rounds.scheduler).get_possible_fusions)
        users: dict[str, list[int]] = {}
        for number, node in enumerate(nodes):
            for buffer in node.used_buffer_names():
                users.setdefault(buffer, []).append(number)
        neighbours = [0] * len(nodes)
        limit = getattr(
            sys.modules["torch._inductor.config"], "max_fusion_buffer_group_pairwise_attempts", _PAIR_LIMIT
        )
        for buffer, numbers in users.items():
            mask = sum(1 << number for number in numbers)
            for position, number in enumerate(numbers):
                neighbours[number] |= mask
                for far in range(position + 1 + limit, len(numbers)):
                    pair = nodes[number], nodes[numbers[far]]
                    if rounds.key(*pair) not in rounds.asked:
                        operands: dict[str, Operand] = {
                            "buffer": buffer, "distance": far - position, "limit": limit
                        }  # fmt: skip
                        first, second = map(rounds.names, pair)
                        yield _not_tried(rounds, first, second, ("pair-limit", operands), place)
        count = 0
        for number, node in enumerate(nodes[:-1]):
            later = ((1 << len(nodes)) - 1) >> (number + 1) << (number + 1)
            alone = [
                nodes[other]
                for other in _positions(later & ~neighbours[number])
                if rounds.key(node, nodes[other]) not in rounds.asked
            ]
            names = tuple(name for other in alone for name in rounds.names(other))
            count += len(names)
            if names and count < _MOST_NAMES:
                yield _not_tried(rounds, rounds.names(node), names, ("no-common-buffer", {}), place)

    # C++

    def around_backend(self, can_fuse: Callable[..., Any], *, vertical: bool) -> Callable[..., Any]:
        """Return `CppScheduling.can_fuse_*` so that the predicate that was false is known: it logs none."""
        place = place_of(can_fuse)

        def ask_and_see(scheduling: Any, first: Any, second: Any) -> Any:
            result = can_fuse(scheduling, first, second)
            rounds = self._rounds(scheduling.scheduler)
            if not result and rounds is not None and rounds.attempts:
                self._log.safely(self._refused_by_cpp, rounds.attempts[-1], place, first, second, vertical)
            return result

        return ask_and_see

    def _refused_by_cpp(
        self, attempt: _Attempt, place: TorchFrame, first: Any, second: Any, vertical: bool
    ) -> None:
        limit = sys.modules["torch._inductor.config"].cpp.max_horizontal_fusion_size
        cause = cpp_cause(first, second, limit, vertical=vertical)
        attempt.cause, attempt.place = functools.partial(_same, cause), place

    def checked(self, place: TorchFrame, result: Any, node: Any, proxies: Any, depth: Any) -> None:
        """Record an outer loop fusion that is undone when its code is generated."""
        if result:
            return
        code, operands = undone_cause(proxies, depth)
        subjects = tuple(leaf_names(nest) for nest in node.get_outer_nodes())
        self._log.record(
            KIND, subjects, "undone", code, place, operands=operands, key=("undone", subjects)
        )  # fmt: skip


def _not_tried(
    rounds: _Rounds, first: tuple[str, ...], second: tuple[str, ...], cause: Cause, place: TorchFrame
) -> _Answer:
    rounds.time += 1
    return _Answer(
        first, second, "not-tried", functools.partial(_same, cause), place, rounds.frames, rounds.round,
        rounds.time,
    )  # fmt: skip


def _same(cause: Cause) -> Cause:
    return cause


def _all_names(answers: Sequence[_Answer]) -> Iterator[str]:
    for answer in answers:
        yield from (*answer.first, *answer.second)


def _mask(names: tuple[str, ...], bits: dict[str, int]) -> int:
    return sum(bits[name] for name in names)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield mask & -mask
        mask &= mask - 1


def _positions(mask: int) -> Iterator[int]:
    return (bit.bit_length() - 1 for bit in _bits(mask))


@functools.cache
def _recorder(log: DecisionLog) -> _Recorder:
    """Return the one recorder of a log: the scheduler and the backends are hooked when each is imported."""
    return _Recorder(log)


def _hook_scheduler(module: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    wrap(module, "Scheduler.fuse_nodes", recorder.around_fusion)
    wrap(module, "Scheduler.fuse_nodes_once", recorder.around_round)
    wrap(module, "Scheduler.get_possible_fusions", recorder.around_candidates)
    wrap(module, "Scheduler.can_fuse", functools.partial(recorder.around_question, refused=False))
    wrap(
        module,
        "Scheduler.will_fusion_create_cycle",
        functools.partial(recorder.around_question, refused=True),
    )
    wrap(module, "WhyNoFuse.__call__", recorder.around_reason)
    wrap(module, "Scheduler.score_fusion_memory", log.observed(recorder.scored))
    wrap(module, "Scheduler.score_fusion_key", log.observed(recorder.ranked))
    wrap(
        module,
        "Scheduler.get_possible_fusions_with_highest_priority",
        log.observed(recorder.preferred),
    )
    wrap(module, "Scheduler.unfusable_node", log.observed(recorder.unfusable))
    wrap(module, "Scheduler.speedup_by_fusion", recorder.around_benchmark)
    wrap(module, "Scheduler.benchmark_codegened_module", log.observed(recorder.timed))
    if hasattr(module.Scheduler, "fuse_two_nodes"):
        wrap(module, "Scheduler.fuse_two_nodes", log.observed(recorder.fused))
    else:  # a function inside of fuse_nodes_once, in some releases
        wrap(module, "BaseScheduling.fuse", log.observed(recorder.fused_by_backend))


def _hook_cpp(module: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    if not hasattr(sys.modules["torch._inductor.scheduler"].Scheduler, "fuse_two_nodes"):
        wrap(module, "CppScheduling.fuse", log.observed(recorder.fused_by_backend))
    places = {"CppScheduling.can_fuse_horizontal": False, "CppScheduling.can_fuse_vertical": True}
    for name, vertical in places.items():
        wrap(module, name, functools.partial(recorder.around_backend, vertical=vertical))
    wrap(
        module,
        "OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr",
        log.observed(recorder.checked),
    )


HOOKS = {"torch._inductor.scheduler": _hook_scheduler, "torch._inductor.codegen.cpp": _hook_cpp}
