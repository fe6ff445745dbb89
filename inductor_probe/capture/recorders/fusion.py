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
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from inductor_probe.capture.branches import CallPath, calls
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    path_of,
    path_of_name,
    place_of,
    stack,
    tests_of,
)
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.capture.recorders.fusion_causes import (
    Cause,
    Tests,
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
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "fusion"
_EPILOGUE = "template epilogue not satisfied"
_LEGAL = ("Scheduler._can_fuse", "Scheduler.can_fuse")
"""What says whether a pair is legal to fuse, by the release of torch."""
_OUTER_LOOPS = "OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr"


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._open: list[Rounds] = []
        self._is_checked = False
        self._is_watched = False
        self._steps: WeakKeyDictionary[Any, list[tuple[int | None, frozenset[str]]]] = WeakKeyDictionary()

    def _rounds(self, scheduler: Any) -> Rounds | None:
        rounds = self._open[-1] if self._open else None
        return rounds if rounds is not None and rounds.scheduler is scheduler else None

    def around_fusion(self, fuse_nodes: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fuse_nodes` so that what all its rounds decided is recorded when it has returned."""

        def fuse_and_record(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            self._open.append(Rounds(scheduler, tuple(stack(sys._getframe(1)))))
            if any(node.is_template() for node in scheduler.nodes):
                self._watch()
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
                rounds.may_reorder = bool(kwargs.get("is_reorder_round", args[1] if len(args) > 1 else False))
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
                if rounds.round == 1:
                    rounds.lists = [node for node in nodes if _is_list(node)]
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
            rounds.attempts.append(Attempt(first, second, place))
            watching: AbstractContextManager[list[CallPath]]
            watching = calls() if self._is_watched else nullcontext([])
            try:
                with watching as made:
                    result = ask(scheduler, first, second, *args, **kwargs)
            finally:
                attempt = rounds.attempts.pop()
            is_refused = bool(result) is refused
            if is_refused and (attempt.cause is None or attempt.is_epilogue):
                self._log.safely(self._see, attempt, made)
            if refused and not is_refused:
                return result  # no cycle: what can_fuse answered is the answer
            self._log.safely(self._answered, rounds, attempt, is_refused, sys._getframe(1))
            return result

        return ask_and_see

    def _see(self, attempt: Attempt, made: list[CallPath]) -> None:
        """Say which test refused an epilogue, or a pair without a word.

        What asks of each pair is watched where there are templates, else from the first such refusal on.
        """
        path = next((path for name in _LEGAL if (path := path_of_name(name, made)) is not None), None)
        is_epilogue = attempt.is_epilogue
        cause: Cause = epilogue_cause(path, attempt.first) if is_epilogue else ("unlisted-test", {})
        attempt.cause, attempt.tests = same(cause), tests_of(path)
        self._watch()

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            scheduler = sys.modules["torch._inductor.scheduler"]
            is_split = hasattr(scheduler.Scheduler, "_can_fuse")
            self._log.watch(scheduler, _LEGAL[0 if is_split else 1])

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

    def around_reason(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `WhyNoFuse.__call__` so that its form and its operands are kept, and what refused."""

        def call_and_see(why: Any, form: str, *args: Any) -> None:
            call(why, form, *args)
            if self._open:
                self._log.safely(self._refused, self._open[-1], why, form, args, sys._getframe(1))

        return call_and_see

    def _refused(self, rounds: Rounds, why: Any, form: str, args: tuple[Any, ...], frame: FrameType) -> None:
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

    def around_score(self, score: Callable[..., Any]) -> Callable[..., Any]:
        """Return `score_fusion_memory` so that the bytes that torch counted as shared are kept.

        The last count is kept, after loops were reordered. The order of pairs is scored, too, with a tuple.
        """

        def score_and_see(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            result = score(scheduler, *args, **kwargs)
            rounds = self._open[-1] if self._open else None
            if (
                rounds is not None and rounds.attempts and rounds.scheduler is scheduler
                and isinstance(result, int) and len(args) < 3 and kwargs.get("count_bytes", True)
            ):  # fmt: skip
                rounds.attempts[-1].score = int(result)
            return result

        return score_and_see

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
        """Return `speedup_by_fusion` so that it is known what it said of a pair, and what it measured.

        It answers at once, or with a function that measures when the kernels are compiled.
        """
        place = place_of(speedup)

        def time_and_see(scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            result = speedup(scheduler, first, second, *args, **kwargs)
            rounds = self._rounds(scheduler)
            if rounds is None:
                return result
            if callable(result):  # a bool or a function, before torch had FusionResult
                return self._seen(rounds, place, result, (first, second))
            if measure := getattr(result, "callable_fn", None):
                result.callable_fn = self._seen(rounds, place, measure, (first, second))
            elif not getattr(result, "should_fuse", result):
                self._log.safely(self._slower, rounds, place, (first, second), {})
            return result

        return time_and_see

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
            self._log.safely(self._timed, rounds, pair, measure, times)
            if not is_faster:
                self._log.safely(self._slower, rounds, place, pair, rounds.timed.get(rounds.key(*pair), {}))
            return is_faster

        return measure_and_see

    def _timed(
        self, rounds: Rounds, pair: tuple[Any, Any], measure: Callable[[], bool], times: list[float]
    ) -> None:
        measured = times_of(measure, times)
        is_tie = self._log.simulated and len({*measured.values()}) == 1  # which was not measured
        rounds.timed[rounds.key(*pair)] = {} if is_tie else measured

    def _slower(
        self, rounds: Rounds, place: TorchFrame, pair: tuple[Any, Any], times: dict[str, Operand]
    ) -> None:
        """Say that a pair which may be fused is not worth it, unless torch said why in its own words."""
        answer = rounds.answers.get(rounds.key(*pair))
        if answer is not None and answer.cause is None:
            answer.cause, answer.place = same(("slower-when-timed", times) if times else UNKNOWN), place

    def measured(self, _: TorchFrame, result: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """Keep a time in ms of the kernel that was run for the pair that is measured now."""
        rounds = self._rounds(scheduler)
        if rounds is not None and rounds.timing:
            rounds.timing[-1].append(float(result[0]))

    def around_step(self, fuse: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fuse_two_nodes` so that a step is kept: two nodes became one."""
        place = place_of(fuse)

        def fuse_and_see(scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            rounds = self._rounds(scheduler)
            if rounds is None:
                return fuse(scheduler, first, second, *args, **kwargs)
            # FusedMixOrderReductions.fuse_with asks can_fuse of its parts: that is no question about a pair
            rounds.attempts.append(Attempt(first, second, place))
            try:
                result = fuse(scheduler, first, second, *args, **kwargs)
            finally:
                rounds.attempts.pop()
            self._log.safely(self._fused, rounds, place, result, (first, second), sys._getframe(1))
            return result

        return fuse_and_see

    def _fused(
        self, rounds: Rounds, place: TorchFrame, result: Any, pair: tuple[Any, Any], frame: FrameType
    ) -> None:
        first, second = pair
        key = rounds.key(first, second)
        before = rounds.answers.get(key)
        rounds.time += 1
        rounds.steps += 1
        code, more = way_of(first, second, result)
        operands: dict[str, Operand] = {"round": rounds.round, "step": rounds.steps}
        # Of reductions in two orders the score is the number of their elements.
        if before is not None and before.shared is not None and code != "mix-order-reductions":
            operands["shared_bytes"] = before.shared
        if key in rounds.scores:
            operands["score"] = rounds.scores[key]
        operands["buffers"] = common_buffers(first, second)
        if rounds.may_reorder:
            more["reordered"] = True
        cause: Cause = code, {**operands, **more, **rounds.timed.get(key, {})}
        rounds.answers[key] = Answer(
            (rounds.names(first), rounds.names(second)), "fused", same(cause), place,
            rounds.stack_of(frame), rounds.round, rounds.time, None, before.times if before else 1,
        )  # fmt: skip
        rounds.allowed.pop(key, None)

    def fused_by_backend(
        self, place: TorchFrame, result: Any, scheduling: Any, first: Any, second: Any
    ) -> None:
        """Keep a step where torch has no `fuse_two_nodes`."""
        rounds = self._rounds(scheduling.scheduler)
        if rounds is not None:
            self._fused(rounds, place, result, (first, second), sys._getframe(3))

    def combined(self, place: TorchFrame, _: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """Record which independent nodes were put into one kernel, after all fusion."""
        for node in scheduler.nodes:
            if _is_list(node) and node.use_custom_partition_algo:
                self._record_parts(node, "combo-kernel", place, tuple(stack(sys._getframe(3))))

    def _record_parts(
        self, node: Any, code: CauseCode, place: TorchFrame, frames: tuple[TorchFrame, ...]
    ) -> None:
        parts = tuple(leaf_names(part) for part in node.snodes)
        operands: dict[str, Operand] = {"parts": len(parts)}
        self._log.record(
            KIND, parts, "fused", code, place, operands=operands, key=(code, parts), frames=frames
        )

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
            code, operands = untried.cause
            self._log.record(
                KIND, untried.groups, "not-tried", code, untried.place, operands=operands,
                key=(code, operands.get("buffer"), untried.groups), frames=rounds.frames,
            )  # fmt: skip
        steps = self._steps.setdefault(rounds.scheduler, [])
        causes: dict[tuple[int, str, int | None], tuple[CauseCode, tuple[tuple[str, Operand], ...]]] = {}
        for (key, answer), is_kept in zip(answers, reversed(last), strict=True):
            alike = id(answer.cause), answer.outcome, answer.shared
            if alike not in causes:
                causes[alike] = _cause_of(answer)
            code, row = causes[alike]
            number = self._log.record(
                KIND, answer.groups, answer.outcome, code, answer.place, operands=row,
                key=key, frames=answer.frames, times=answer.times,
                speculative=answer.outcome != "fused" and not is_kept, tests=answer.tests,
            )  # fmt: skip
            if answer.outcome == "fused":
                steps.append((number, frozenset(itertools.chain(*answer.groups))))

    def _record_unfusable(self, rounds: Rounds, node: Any, place: TorchFrame) -> None:
        is_result = type(node.node).__name__ == "MultiOutput"
        is_nop = type(node).__name__ == "NopKernelSchedulerNode"
        self._log.record(
            KIND, (rounds.names(node),), "not-tried", "no-kernel" if is_nop else "extern-kernel", place,
            operands={"result_of" if is_result else "kernel": kernel_name(node.node)}, key=rounds.names(node),
            frames=rounds.frames,
        )  # fmt: skip

    # C++

    def around_backend(self, can_fuse: Callable[..., Any], *, vertical: bool) -> Callable[..., Any]:
        """Return `CppScheduling.can_fuse_*` so that the test that decided is known: it logs none."""
        place = place_of(can_fuse)

        def ask_and_see(scheduling: Any, first: Any, second: Any) -> Any:
            with calls() as made:
                result = can_fuse(scheduling, first, second)
            rounds = self._rounds(scheduling.scheduler)
            if not result and rounds is not None and rounds.attempts:
                attempt, path = rounds.attempts[-1], path_of(can_fuse, made)
                attempt.place = place
                refused = functools.partial(cpp_cause, path, first, second, vertical=vertical)
                self._log.safely(self._refused_by_cpp, rounds, attempt, refused)
            return result

        return ask_and_see

    def _refused_by_cpp(
        self, rounds: Rounds, attempt: Attempt, cause_of: Callable[[], tuple[Cause, Tests]]
    ) -> None:
        cause, attempt.tests = cause_of()
        attempt.cause = rounds.same(*cause)

    def around_outer_loops(self, codegen: Callable[..., Any]) -> Callable[..., Any]:
        """Return `codegen_outer_loop_node` so that it is seen where it undoes a fusion without a check.

        Since torch 2.14 it does where a common loop has vectors and a buffer of the nests would be local.
        """
        place = place_of(codegen)

        def codegen_and_see(scheduling: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
            self._is_checked = False
            result = codegen(scheduling, node, *args, **kwargs)
            if not self._is_checked:
                self._log.safely(self._undone, place, node, UNKNOWN, ())
            return result

        return codegen_and_see

    def checked(
        self, place: TorchFrame, path: CallPath | None, result: Any, node: Any, proxies: Any, _: Any
    ) -> None:
        """Record an outer loop fusion that is undone when its code is generated."""
        self._is_checked = True
        if not result:
            self._undone(place, node, *undone_cause(path, node, proxies))

    def _undone(self, place: TorchFrame, node: Any, cause: Cause, tests: Tests) -> None:
        """Record that a fused node is taken apart; the steps that made it were tries."""
        nests = [leaf_names(nest) for nest in node.get_outer_nodes()]
        everyone = {name for nest in nests for name in nest}
        for number, names in self._steps.get(node.scheduler, ()):
            if names <= everyone and not any(names <= {*nest} for nest in nests):
                self._log.revise(number, speculative=True)
        code, operands = cause
        self._log.record(
            KIND, tuple(nests), "undone", code, place, operands=operands, key=("undone", tuple(nests)),
            tests=tests,
        )  # fmt: skip


def _cause_of(answer: Answer) -> tuple[CauseCode, tuple[tuple[str, Operand], ...]]:
    code, operands = answer.cause() if answer.cause else UNKNOWN
    if answer.outcome != "fused" and answer.shared:  # of no bytes the cause speaks
        operands = {"shared_bytes": answer.shared, **operands}
    return code, tuple(operands.items())


def _is_list(node: Any) -> bool:
    return type(node).__name__ == "ForeachKernelSchedulerNode"


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
    wrap(module, "Scheduler.score_fusion_memory", recorder.around_score)
    wrap(module, "Scheduler.score_fusion_key", log.observed(recorder.ranked))
    wrap(
        module,
        "Scheduler.get_possible_fusions_with_highest_priority",
        log.observed(recorder.preferred),
    )
    wrap(module, "Scheduler.unfusable_node", log.observed(recorder.unfusable))
    wrap(module, "Scheduler.speedup_by_fusion", recorder.around_benchmark)
    wrap(module, "Scheduler.create_combo_kernel_nodes", log.observed(recorder.combined))
    wrap(module, "Scheduler.benchmark_codegened_module", log.observed(recorder.measured))
    if hasattr(module.Scheduler, "fuse_two_nodes"):
        wrap(module, "Scheduler.fuse_two_nodes", recorder.around_step)
    else:  # a function inside of fuse_nodes_once, in some releases
        wrap(module, "BaseScheduling.fuse", log.observed(recorder.fused_by_backend))


def _hook_cpp(module: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    if not hasattr(sys.modules["torch._inductor.scheduler"].Scheduler, "fuse_two_nodes"):
        wrap(module, "CppScheduling.fuse", log.observed(recorder.fused_by_backend))
    for name in WATCHED:
        log.watch(module, f"CppScheduling.{name}")
    log.watch(module, _OUTER_LOOPS, "_inner")
    places = {"CppScheduling.can_fuse_horizontal": False, "CppScheduling.can_fuse_vertical": True}
    for name, vertical in places.items():
        wrap(module, name, functools.partial(recorder.around_backend, vertical=vertical))
    wrap(module, _OUTER_LOOPS, log.followed(recorder.checked))
    wrap(module, "CppScheduling.codegen_outer_loop_node", recorder.around_outer_loops)


HOOKS = {"torch._inductor.scheduler": _hook_scheduler, "torch._inductor.codegen.cpp": _hook_cpp}
