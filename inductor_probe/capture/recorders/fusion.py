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
import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, Tests, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    inductor_caller,
    place_of,
    stack,
    tests_of,
)
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.capture.recorders.fusion_causes import (
    Reason,
    common_buffers,
    epilogue_cause,
    leaf_names,
    logged_cause,
    times_of,
    way_of,
)
from inductor_probe.capture.recorders.fusion_cpp import WATCHED, cpp_cause, undone_cause
from inductor_probe.capture.recorders.fusion_mix_order import mix_order_limit
from inductor_probe.capture.recorders.fusion_rounds import (
    UNKNOWN,
    Answer,
    Attempt,
    Key,
    Rounds,
    is_last,
    same,
)
from inductor_probe.model.decision import CauseCode, Operand, TorchFrame

_SCHEDULER, _CPP = "torch._inductor.scheduler", "torch._inductor.codegen.cpp"
_EPILOGUE = "template epilogue not satisfied"
_LEGAL = ("Scheduler._can_fuse", "Scheduler.can_fuse")
"""What says whether a pair is legal to fuse, by the release of torch."""
_CYCLE = "Scheduler.will_fusion_create_cycle"


@watches(_CPP, *(f"CppScheduling.{name}" for name in WATCHED))
class Fusion(Recorder):
    """Keeps what is asked in all rounds of a graph, and records it when they have ended."""

    KIND = "fusion"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._open: list[Rounds] = []
        self._is_checked = False
        self._is_watched = False
        self._steps: WeakKeyDictionary[Any, list[tuple[int | None, frozenset[str]]]] = WeakKeyDictionary()

    def _rounds(self, scheduler: Any) -> Rounds | None:
        rounds = self._open[-1] if self._open else None
        return rounds if rounds is not None and rounds.scheduler is scheduler else None

    @sees(_SCHEDULER, "Scheduler.fuse_nodes")
    def fused_all(self, _: Call, scheduler: Any, *__: Any, **___: Any) -> Iterator[None]:
        """Record what all rounds decided."""
        self._open.append(Rounds(scheduler, tuple(stack(sys._getframe(1)))))
        if any(node.is_template() for node in scheduler.nodes):
            self._watch()
        try:
            yield
            self._record(self._open[-1])
        finally:
            self._open.pop()

    @sees(_SCHEDULER, "Scheduler.fuse_nodes_once")
    def fused_once(self, _: Call, scheduler: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
        """See what of the allowed pairs was not fused in a round."""
        rounds = self._rounds(scheduler)
        if rounds is None:
            return
        rounds.round += 1
        rounds.may_reorder = bool(kwargs.get("is_reorder_round", args[1] if len(args) > 1 else False))
        for table in (rounds.allowed, rounds.dropped, rounds.timed):
            table.clear()
        yield
        self._postpone(rounds)

    @sees(_SCHEDULER, "Scheduler.get_possible_fusions")
    def paired(self, _: Call, scheduler: Any, nodes: Any, *__: Any, **___: Any) -> Iterator[None]:
        """See which nodes torch is to pair."""
        if rounds := self._rounds(scheduler):
            rounds.candidates = list(nodes)
            if rounds.round == 1:
                rounds.lists = [node for node in nodes if _is_list(node)]
            rounds.asked = set()
        yield

    @sees(_SCHEDULER, "Scheduler.can_fuse", "Scheduler.will_fusion_create_cycle", follows=True)
    def asked(
        self, call: Call, scheduler: Any, first: Any, second: Any, *_: Any, **__: Any
    ) -> Iterator[None]:
        """Keep the answer to a question about a pair."""
        rounds = self._rounds(scheduler)
        if rounds is None or first is second:
            return
        rounds.attempts.append(Attempt(first, second, call.place))
        try:
            yield
        finally:
            attempt = rounds.attempts.pop()
        is_of_cycle = call.function == _CYCLE
        is_refused = bool(call.result) is is_of_cycle
        if is_refused and (attempt.cause is None or attempt.is_epilogue):
            self._see(attempt, call)
        if is_refused or not is_of_cycle:  # no cycle: what can_fuse answered is the answer
            self._answered(rounds, attempt, is_refused, inductor_caller())

    def _see(self, attempt: Attempt, call: Call) -> None:
        """Say which test refused an epilogue, or a pair without a word.

        What asks of each pair is watched where there are templates, else from the first such refusal on.
        """
        path = next(filter(None, map(call.path_of, _LEGAL)), None)
        is_epilogue = attempt.is_epilogue
        cause: Reason = epilogue_cause(path, attempt.first) if is_epilogue else ("unlisted-test", {})
        attempt.cause, attempt.tests = same(cause), tests_of(path)
        self._watch()

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            scheduler = sys.modules[_SCHEDULER]
            is_split = hasattr(scheduler.Scheduler, "_can_fuse")
            self.log.watch(scheduler, _LEGAL[0 if is_split else 1])

    def _answered(self, rounds: Rounds, attempt: Attempt, is_refused: bool, frame: FrameType) -> None:
        if rounds.attempts:  # a foreach node asks of its members: what refuses one of them refuses it
            if is_refused:
                rounds.attempts[-1].cause, rounds.attempts[-1].tests = attempt.cause, attempt.tests
            return
        groups = rounds.names(attempt.first), rounds.names(attempt.second)
        key: Key = frozenset(groups)
        before = rounds.answers.get(key)
        rounds.time += 1
        is_reverse = before is not None and before.round == rounds.round and before.groups == groups[::-1]
        if before is not None and is_reverse and is_refused:
            before.times += 1  # of a template or a foreach node both orders are asked, the natural one first
            return
        rounds.asked.add(key)
        cause = attempt.cause or same(UNKNOWN)
        rounds.answers[key] = Answer(
            groups, "refused", cause if is_refused else None, attempt.place, rounds.stack_of(frame),
            rounds.round, rounds.time, attempt.score, before.times + 1 if before else 1, attempt.tests,
        )  # fmt: skip
        if is_refused:
            rounds.allowed.pop(key, None)
        else:
            rounds.allowed[key] = attempt.first, attempt.second

    @sees(_SCHEDULER, "WhyNoFuse.__call__")
    def refused(self, _: Call, why: Any, form: str, *args: Any) -> None:
        """Keep a reason that torch logs, as a form with operands, and what refused."""
        if not self._open:
            return
        rounds, frame = self._open[-1], inductor_caller()
        attempt = rounds.attempts[-1] if rounds.attempts else None
        pair = (attempt.first, attempt.second) if attempt else None
        place = rounds.stack_of(frame)[0]
        seen: Any = logged_cause(form, args, pair, frame)
        tests: Tests = ()
        if pair is not None and (limit := mix_order_limit(form, *pair)):
            seen, tests, place = limit
        cause = seen if callable(seen) else rounds.same(*seen)
        if attempt is not None:
            attempt.cause, attempt.place, attempt.tests = cause, place, tests
            attempt.is_epilogue = form == _EPILOGUE
            return
        nodes = rounds.nodes.get(why.name1), rounds.nodes.get(why.name2)  # when a benchmark has ended
        answer = rounds.answers.get(rounds.key(*nodes)) if all(nodes) else None
        if answer is not None:
            answer.cause, answer.place = cause, place

    @sees(_SCHEDULER, "Scheduler.score_fusion_memory")
    def scored(self, call: Call, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """Keep the bytes that torch counted as shared, after loops were reordered.

        The order of pairs is scored, too, with a tuple.
        """
        rounds = self._rounds(scheduler)
        is_count = isinstance(call.result, int) and len(args) < 3 and kwargs.get("count_bytes", True)
        if rounds is not None and rounds.attempts and is_count:
            rounds.attempts[-1].score = int(call.result)

    @sees(_SCHEDULER, "Scheduler.score_fusion_key")
    def ranked(self, call: Call, scheduler: Any, nodes: Any) -> None:
        """Keep the score by which the pairs of a round are sorted."""
        if rounds := self._rounds(scheduler):
            rounds.scores[rounds.key(*nodes)] = str(call.result)

    @sees(_SCHEDULER, "Scheduler.get_possible_fusions_with_highest_priority")
    def preferred(self, call: Call, scheduler: Any, possible: Any) -> None:
        """Keep the pairs that wait until nothing of a higher priority is left."""
        rounds = self._rounds(scheduler)
        if rounds is None or len(call.result) == len(possible):
            return
        kept = {rounds.key(*pair) for pair in call.result}
        operands: Operands = {"candidates": len(possible), "kept": len(call.result)}
        for pair in possible:
            if (key := rounds.key(*pair)) not in kept:
                rounds.dropped[key] = "lower-priority", operands

    @sees(_SCHEDULER, "Scheduler.unfusable_node")
    def unfusable(self, call: Call, scheduler: Any, node: Any) -> None:
        """Keep the nodes that are in no pair."""
        rounds = self._rounds(scheduler)
        if rounds is not None and call.result:
            rounds.unfusable[node] = call.place

    @sees(_SCHEDULER, "Scheduler.speedup_by_fusion")
    def benchmarked(self, call: Call, scheduler: Any, first: Any, second: Any, *_: Any, **__: Any) -> None:
        """See what torch says of a pair that it times, and what it measures.

        It answers at once, or with a function that measures when the kernels are compiled.
        """
        rounds, result, pair = self._rounds(scheduler), call.result, (first, second)
        if rounds is None:
            return
        if callable(result):  # a bool or a function, before torch had FusionResult
            call.result = self._seen(rounds, call.place, result, pair)
        elif measure := getattr(result, "callable_fn", None):
            result.callable_fn = self._seen(rounds, call.place, measure, pair)
        elif not getattr(result, "should_fuse", result):
            self._slower(rounds, call.place, pair, {})

    def _seen(
        self, rounds: Rounds, place: TorchFrame, measure: Callable[[], bool], pair: tuple[Any, Any]
    ) -> Callable[[], bool]:
        """Return the function that says whether fusing a pair is faster, so that its answer is kept."""

        @functools.wraps(measure)
        def measure_and_see() -> bool:
            rounds.timing.append([])
            try:
                is_faster = measure()
            finally:
                times = rounds.timing.pop()
            self.log.safely(self._timed, rounds, pair, measure, times)
            if not is_faster:
                self.log.safely(self._slower, rounds, place, pair, rounds.timed.get(rounds.key(*pair), {}))
            return is_faster

        return measure_and_see

    def _timed(
        self, rounds: Rounds, pair: tuple[Any, Any], measure: Callable[[], bool], times: list[float]
    ) -> None:
        measured = times_of(measure, times)
        is_tie = self.log.simulated and len({*measured.values()}) == 1  # which was not measured
        rounds.timed[rounds.key(*pair)] = {} if is_tie else measured

    def _slower(self, rounds: Rounds, place: TorchFrame, pair: tuple[Any, Any], times: Operands) -> None:
        """Say that a pair which may be fused is not worth it, unless torch said why in its own words."""
        answer = rounds.answers.get(rounds.key(*pair))
        if answer is not None and answer.cause is None:
            answer.cause, answer.place = same(("slower-when-timed", times) if times else UNKNOWN), place

    @sees(_SCHEDULER, "Scheduler.benchmark_codegened_module")
    def measured(self, call: Call, scheduler: Any, *_: Any, **__: Any) -> None:
        """Keep a time in ms of the kernel that was run for the pair that is measured now."""
        rounds = self._rounds(scheduler)
        if rounds is not None and rounds.timing:
            rounds.timing[-1].append(float(call.result[0]))

    @sees(_SCHEDULER, "Scheduler.fuse_two_nodes", may_lack=True)
    def stepped(
        self, call: Call, scheduler: Any, first: Any, second: Any, *_: Any, **__: Any
    ) -> Iterator[None]:
        """Keep a step: two nodes became one."""
        rounds = self._rounds(scheduler)
        if rounds is None:
            return
        # FusedMixOrderReductions.fuse_with asks can_fuse of its parts: that is no question about a pair
        rounds.attempts.append(Attempt(first, second, call.place))
        try:
            yield
        finally:
            rounds.attempts.pop()
        self._fused(rounds, call.place, call.result, (first, second), inductor_caller())

    @sees(_SCHEDULER, "BaseScheduling.fuse")
    @sees(_CPP, "CppScheduling.fuse")
    def fused_by_backend(self, call: Call, scheduling: Any, first: Any, second: Any) -> None:
        """Keep a step where torch has no `fuse_two_nodes`: it is a function in `fuse_nodes_once` then."""
        if hasattr(sys.modules[_SCHEDULER].Scheduler, "fuse_two_nodes"):
            return
        if rounds := self._rounds(scheduling.scheduler):
            self._fused(rounds, call.place, call.result, (first, second), inductor_caller())

    def _fused(
        self, rounds: Rounds, place: TorchFrame, result: Any, pair: tuple[Any, Any], frame: FrameType
    ) -> None:
        first, second = pair
        key = rounds.key(first, second)
        before = rounds.answers.get(key)
        rounds.time += 1
        rounds.steps += 1
        code, more = way_of(first, second, result)
        operands: Operands = {"round": rounds.round, "step": rounds.steps}
        # Of reductions in two orders the score is the number of their elements.
        if before is not None and before.shared is not None and code != "mix-order-reductions":
            operands["shared_bytes"] = before.shared
        if key in rounds.scores:
            operands["score"] = rounds.scores[key]
        operands["buffers"] = common_buffers(first, second)
        if rounds.may_reorder:
            more["reordered"] = True
        cause: Reason = code, {**operands, **more, **rounds.timed.get(key, {})}
        rounds.answers[key] = Answer(
            (rounds.names(first), rounds.names(second)), "fused", same(cause), place,
            rounds.stack_of(frame), rounds.round, rounds.time, None, before.times if before else 1,
        )  # fmt: skip
        rounds.allowed.pop(key, None)

    @sees(_SCHEDULER, "Scheduler.create_combo_kernel_nodes")
    def combined(self, call: Call, scheduler: Any, *_: Any, **__: Any) -> None:
        """Record which independent nodes were put into one kernel, after all fusion."""
        for node in scheduler.nodes:
            if _is_list(node) and node.use_custom_partition_algo:
                self._record_parts(node, "combo-kernel", call.place, tuple(stack(sys._getframe(1))))

    def _record_parts(
        self, node: Any, code: CauseCode, place: TorchFrame, frames: tuple[TorchFrame, ...]
    ) -> None:
        parts = tuple(leaf_names(part) for part in node.snodes)
        cause = Cause(code, {"parts": len(parts)})
        self.record("fused", cause, place, *parts, key=(code, parts), frames=frames)

    def _postpone(self, rounds: Rounds) -> None:
        """Say of each pair that was allowed in a round why it was not fused in it."""
        for key, pair in rounds.allowed.items():
            answer = rounds.answers[key]
            if answer.cause is not None:
                continue  # `speedup_by_fusion` refused it
            answer.outcome = "postponed"
            if key in rounds.dropped:
                cause = rounds.dropped[key]
            else:
                nodes = rounds.scheduler.name_to_fused_node
                groups = [rounds.names(nodes[rounds.names(node)[0]]) for node in pair]
                others = [group for group in groups if group not in answer.groups]
                cause = ("fused-with-another", {"group": others[0]}) if others else UNKNOWN
            answer.cause = same(cause)

    def _record(self, rounds: Rounds) -> None:
        answers = sorted(rounds.answers.items(), key=lambda row: row[1].time)
        last = is_last([answer for _, answer in reversed(answers)])
        for node, place in rounds.unfusable.items():
            self._record_unfusable(rounds, node, place)
        for node in rounds.lists:
            place = place_of(type(rounds.scheduler).create_foreach_nodes)
            self._record_parts(node, "foreach-list", place, rounds.frames)
        for untried in rounds.untried():
            cause = Cause(*untried.cause)
            about = cause.code, cause.operands.get("buffer"), untried.groups
            self.record("not-tried", cause, untried.place, *untried.groups, key=about, frames=rounds.frames)
        steps = self._steps.setdefault(rounds.scheduler, [])
        causes: dict[tuple[int, str, int | None], tuple[CauseCode, tuple[tuple[str, Operand], ...]]] = {}
        for (key, answer), is_kept in zip(answers, reversed(last), strict=True):
            alike = id(answer.cause), answer.outcome, answer.shared
            if alike not in causes:
                causes[alike] = _cause_of(answer)
            code, row = causes[alike]
            number = self.log.record(
                self.KIND, answer.groups, answer.outcome, code, answer.place, operands=row,
                key=key, frames=answer.frames, times=answer.times,
                speculative=answer.outcome != "fused" and not is_kept, tests=answer.tests,
            )  # fmt: skip
            if answer.outcome == "fused":
                steps.append((number, frozenset(itertools.chain(*answer.groups))))

    def _record_unfusable(self, rounds: Rounds, node: Any, place: TorchFrame) -> None:
        is_result = type(node.node).__name__ == "MultiOutput"
        is_nop = type(node).__name__ == "NopKernelSchedulerNode"
        called: Operands = {"result_of" if is_result else "kernel": kernel_name(node.node)}
        cause, names = Cause("no-kernel" if is_nop else "extern-kernel", called), rounds.names(node)
        self.record("not-tried", cause, place, names, key=names, frames=rounds.frames)

    # C++

    @sees(_CPP, "CppScheduling.can_fuse_horizontal", "CppScheduling.can_fuse_vertical", follows=True)
    def asked_cpp(self, call: Call, scheduling: Any, first: Any, second: Any) -> None:
        """See which test decided: the C++ backend logs none."""
        rounds = self._rounds(scheduling.scheduler)
        if not call.result and rounds is not None and rounds.attempts:
            attempt, vertical = rounds.attempts[-1], call.function.endswith("vertical")
            attempt.place = call.place
            cause, attempt.tests = cpp_cause(call.path, first, second, vertical=vertical)
            attempt.cause = rounds.same(*cause)

    @sees(_CPP, "CppScheduling.codegen_outer_loop_node")
    def outer_loops(self, call: Call, _: Any, node: Any, *__: Any, **___: Any) -> Iterator[None]:
        """See where it undoes a fusion without a check.

        Since torch 2.14 it does where a common loop has vectors and a buffer of the nests would be local.
        """
        self._is_checked = False
        yield
        if not self._is_checked:
            self._undone(call.place, node, UNKNOWN, ())

    @sees(
        _CPP,
        "OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr",
        watches=True,
        nested=("_inner",),
    )
    def checked(self, call: Call, node: Any, proxies: Any, _: Any) -> None:
        """Record an outer loop fusion that is undone when its code is generated."""
        self._is_checked = True
        if not call.result:
            self._undone(call.place, node, *undone_cause(call.path, node, proxies))

    def _undone(self, place: TorchFrame, node: Any, cause: Reason, tests: Tests) -> None:
        """Record that a fused node is taken apart; the steps that made it were tries."""
        nests = [leaf_names(nest) for nest in node.get_outer_nodes()]
        everyone = {name for nest in nests for name in nest}
        for number, names in self._steps.get(node.scheduler, ()):
            if names <= everyone and not any(names <= {*nest} for nest in nests):
                self.log.revise(number, speculative=True)
        self.record("undone", Cause(*cause, tests), place, *nests, key=("undone", tuple(nests)))


def _cause_of(answer: Answer) -> tuple[CauseCode, tuple[tuple[str, Operand], ...]]:
    code, operands = answer.cause() if answer.cause else UNKNOWN
    if answer.outcome != "fused" and answer.shared:  # of no bytes the cause speaks
        operands = {"shared_bytes": answer.shared, **operands}
    return code, tuple(operands.items())


def _is_list(node: Any) -> bool:
    return type(node).__name__ == "ForeachKernelSchedulerNode"
