"""Whether the loops of a C++ nest are divided among threads, which of them, and why not: nothing logs it.

torch/_inductor/codegen/cpp.py: `LoopNest.max_parallel_depth` offers the loops up to the first that is a
reduction where the others are not (or the other way round), or those after it, if they have 300 times the
steps; `CppKernel.decide_parallel_depth` takes loops from the outside until they have enough iterations, or
until less than `cpp.min_chunk_size` elements are left for a thread. For example loops 4 x 2000
and 8 threads: 8000 // 8 >= 512, so the loop of 4 is divided; then 2000 // 8 < 512, so the next one is not,
and 4 threads idle.

Loops inside of a template are not recorded: its own text divides the work.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, hint_of, size_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import DecisionKind, Operand, Outcome, ThreadsCause, TorchFrame

KIND: DecisionKind = "threads"
_RATIO_LIMIT = 300
"""A literal in LoopNest.max_parallel_depth, the same in torch 2.11 to 2.15."""


class _Answer(Struct, frozen=True):
    """One call of `decide_parallel_depth`."""

    place: TorchFrame
    kernel: Any
    allowed: Any
    threads: int
    chosen: Any


class _Recorder:
    def __init__(self, cpp: Any, log: DecisionLog) -> None:
        self._cpp = cpp
        self._log = log
        self._answers: list[_Answer] | None = None
        # Since torch 2.15 a loop that is shorter than its vector is one step, and not none.
        names = inspect.unwrap(cpp.LoopNest.max_parallel_depth).__code__.co_names
        self._rounds_up = "CeilDiv" in names

    def decided(self, place: TorchFrame, result: Any, kernel: Any, allowed: Any, threads: int) -> None:
        """Remember an answer; a fused outer loop asks each of its parts before it has its own."""
        if self._answers is not None:
            self._answers.append(_Answer(place, kernel, allowed, int(threads), result))

    def around_finalize(self, finalize: Callable[..., Any]) -> Callable[..., Any]:
        """Return `KernelGroup.finalize_kernel` so that the last answer is recorded when it has returned."""

        def finalize_and_record(group: Any, kernel: Any, nodes: Sequence[Any]) -> Any:
            before, self._answers = self._answers, []
            try:
                result = finalize(group, kernel, nodes)
                if nodes:
                    self._log.safely(self._record, kernel, nodes, self._answers)
            finally:
                self._answers = before
            return result

        return finalize_and_record

    def _record(self, proxy: Any, nodes: Sequence[Any], answers: list[_Answer]) -> None:
        if not answers:
            raise UnknownPathError("decide_parallel_depth was not asked")
        *parts, last = answers
        part = max(parts, key=lambda answer: int(answer.chosen.parallel_depth), default=last)
        names = tuple(node.get_name() for node in nodes)
        if self._log.is_turned(KIND, names):
            self._record_turned(names, last)
            return
        outcome, cause, operands = self._decision(proxy, part, last)
        self._log.record(KIND, (names,), outcome, cause, last.place, operands=operands, key=names)

    def _record_turned(self, names: tuple[str, ...], last: _Answer) -> None:
        depth = int(last.chosen.parallel_depth)
        operands: dict[str, Operand] = {"threads": last.threads, "depth": depth}
        outcome: Outcome = "parallel" if depth else "one-thread"
        self._log.record(KIND, (names,), outcome, "turned", last.place, operands=operands, key=names)

    def _decision(
        self, proxy: Any, part: _Answer, last: _Answer
    ) -> tuple[Outcome, ThreadsCause, dict[str, Operand]]:
        config = self._cpp.config.cpp
        kernel, loops = part.kernel, proxy.loop_nest.loops or []
        if not kernel.call_ranges:
            return "one-thread", "no-loop-to-divide", {"threads": last.threads}
        depth, start = int(last.chosen.parallel_depth), int(last.chosen.start_depth)
        threads, work = last.threads, size_of(kernel.size_hint())
        counted: dict[str, Operand] = {"threads": threads, "work": work}
        has_little = isinstance(work, int) and work // threads < config.min_chunk_size
        if isinstance(work, int):
            counted |= {"work_per_thread": work // threads, "min_chunk_size": int(config.min_chunk_size)}
        if not depth:
            if threads == 1:
                return "one-thread", "one-thread-set", {**counted, "cpp_threads": int(config.threads)}
            if has_little:
                return "one-thread", "little-work", counted
            raise UnknownPathError("no loop is divided, though there is work for the threads")
        divided = kernel.call_ranges[start : start + depth]
        iterations = math.prod(hint_of(size, 8192) for size in divided)
        operands: dict[str, Operand] = {
            **counted, "depth": depth,
            "loops": tuple(str(variable) for variable in kernel.itervars[start : start + depth]),
            "ranges": tuple(str(size) for size in divided), "iterations": iterations,
            "is_reduction": bool(start < len(loops) and loops[start].is_reduction),
            **_chunks(loops, start, depth),
        }  # fmt: skip
        if config.dynamic_threads and depth == 1 and (threads == 1 or has_little):
            return "parallel", "dynamic-threads", operands
        if start:
            operands |= {
                **self._ratio(loops, start),
                **(_starts(loops, start) if not self._rounds_up else {}),
            }
            rounded = operands.get("rounded_loops")
            return "parallel", "outer-loops-rounded" if rounded else "inner-loop-longer", operands
        # max_parallel_depth compares at the first loop that it does not offer, however many are taken.
        offered = int(last.allowed.parallel_depth)
        ratio = self._ratio(loops, offered) if offered < len(loops) else {}
        if _is_longer(ratio):
            return "parallel", "reduction-under-vector-loop", {**operands, **ratio}
        steps = operands.get("steps")
        if iterations >= threads:
            is_few = isinstance(steps, int) and steps < threads
            return "parallel", "few-vector-steps" if is_few else "loops-divided", operands
        if depth < offered:
            left = int(work / iterations) // threads if isinstance(work, int) else work
            return "parallel", "little-work-per-iteration", {**operands, "work_of_next_loop": left}
        if offered < len(loops):
            next_loop = str(loops[offered].var)
            return "parallel", "reduction-boundary", {**operands, "next_loop": next_loop, **ratio}
        return "parallel", "loops-divided", operands

    def _ratio(self, loops: Sequence[Any], start: int) -> dict[str, Operand]:
        """Return what the rule of 300 compares: steps of the loops before `start`, and of the loop there.

        Nothing where a size is symbolic.
        """
        if not _are_numbers(loops[: start + 1]):
            return {}
        outer = (_begun(loop) if self._rounds_up else _whole(loop) for loop in loops[:start])
        steps = {"outer_steps": math.prod(outer), "inner_steps": _whole(loops[start])}
        return {**steps, "ratio_limit": _RATIO_LIMIT}


def _are_numbers(loops: Sequence[Any]) -> bool:
    return all(loop.size.is_number and loop.steps.is_number for loop in loops)


def _whole(loop: Any) -> int:
    return int(loop.size) // int(loop.steps)


def _begun(loop: Any) -> int:
    return -(-int(loop.size) // int(loop.steps))


def _starts(loops: Sequence[Any], start: int) -> dict[str, Operand]:
    """Return how often the threads share out the loop at `start`: once for each step of those around it.

    `FloorDiv` counts no step of a loop that is shorter than its vector (torch before 2.15): `rounded_loops`
    are such, where torch would not have divided the inner loop if it had counted them.
    """
    outer = loops[:start]
    if not _are_numbers(loops[: start + 1]):
        return {}
    starts = math.prod(map(_begun, outer))
    short = tuple(f"{loop.var} ({loop.size})" for loop in outer if int(loop.size) < int(loop.steps))
    is_rounded = bool(short) and starts * _RATIO_LIMIT >= _whole(loops[start])
    return {"starts": starts, **({"rounded_loops": short} if is_rounded else {})}


def _is_longer(ratio: dict[str, Operand]) -> bool:
    """Return whether the loop after the outer ones has so many more steps that it would be divided."""
    outer, inner = ratio.get("outer_steps"), ratio.get("inner_steps")
    return isinstance(outer, int) and isinstance(inner, int) and outer * _RATIO_LIMIT < inner


def _chunks(loops: Sequence[Any], start: int, depth: int) -> dict[str, Operand]:
    """Return how many steps there are to hand out: a vectorised loop of 256 has 16; torch counts 256."""
    divided = loops[start : start + depth]
    if len(divided) < depth or not _are_numbers(divided):
        return {}
    return {"steps": math.prod(map(_begun, divided))}


def _hook(cpp: Any, log: DecisionLog) -> None:
    recorder = _Recorder(cpp, log)
    wrap(cpp, "CppKernel.decide_parallel_depth", log.observed(recorder.decided))
    wrap(cpp, "OuterLoopFusedKernel.decide_parallel_depth", log.observed(recorder.decided))
    wrap(cpp, "KernelGroup.finalize_kernel", recorder.around_finalize)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
