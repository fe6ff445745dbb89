"""Whether the loops of a C++ nest are divided among threads, which of them, and why not: nothing logs it.

torch/_inductor/codegen/cpp.py: `LoopNest.max_parallel_depth` offers the loops up to the first that is a
reduction where the others are not (or the other way round), or those after it, if they have 300 times the
steps; `CppKernel.decide_parallel_depth` takes loops from the outside until they have enough iterations, or
until less than `cpp.min_chunk_size` elements are left for a thread. For example loops 4 x 2000
and 8 threads: 8000 // 8 >= 512, so the loop of 4 is divided; then 2000 // 8 < 512, so the next one is not,
and 4 threads idle. Both are watched: which test ended the search, and the 300, are torch's own.

Loops inside of a template are not recorded: its own text divides the work.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from inductor_probe.capture.branches import CallPath, SeenTest, calls, holes, matches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    UnknownPathError,
    hint_of,
    size_of,
    test_at,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "threads"
_RATIO = "num_steps * ? < ?"
_ENOUGH, _IS_EACH = "par >= ?", "par == threads"
_LITTLE = "seq // threads < ?"
_LONGEST = "LoopNest.max_parallel_depth"
_BY_STEPS = (
    "inner-loop-longer", "outer-loops-rounded", "reduction-boundary", "reduction-under-vector-loop",
)  # fmt: skip
"""Causes that are decided where steps are compared; the others where the search for loops ends."""


class _Answer(Struct, frozen=True):
    """One call of `decide_parallel_depth`, and which way it went."""

    path: CallPath | None
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

    def decided(self, place: TorchFrame, path: CallPath | None, result: Any, *arguments: Any) -> None:
        """Remember an answer; a fused outer loop asks each of its parts before it has its own."""
        if self._answers is not None:
            kernel, allowed, threads = arguments
            self._answers.append(_Answer(path, place, kernel, allowed, int(threads), result))

    def around_finalize(self, finalize: Callable[..., Any]) -> Callable[..., Any]:
        """Return `KernelGroup.finalize_kernel` so that the last answer is recorded when it has returned."""

        def finalize_and_record(group: Any, kernel: Any, nodes: Sequence[Any]) -> Any:
            before, self._answers = self._answers, []
            try:
                with calls() as made:
                    result = finalize(group, kernel, nodes)
                if nodes:
                    offered = [path for path in made if path.sites.function == _LONGEST]
                    self._log.safely(self._record, kernel, nodes, self._answers, offered)
            finally:
                self._answers = before
            return result

        return finalize_and_record

    def _record(
        self, proxy: Any, nodes: Sequence[Any], answers: list[_Answer], offered: list[CallPath]
    ) -> None:
        if not answers:
            raise UnknownPathError("decide_parallel_depth was not asked")
        *parts, last = answers
        part = max(parts, key=lambda answer: int(answer.chosen.parallel_depth), default=last)
        names = tuple(node.get_name() for node in nodes)
        if self._log.is_turned(KIND, names):
            self._record_turned(names, last)
            return
        ratio = offered[-1].tested(_RATIO) if offered else None
        outcome, cause, operands = self._decision(proxy, part, last, ratio)
        path, test = (offered[-1], ratio) if cause in _BY_STEPS and ratio else (part.path, _ended(part.path))
        tests = (test_at(path, test),) if path is not None and test is not None else ()
        self._log.record(
            KIND, (names,), outcome, cause, last.place, operands=operands, key=names, tests=tests
        )

    def _record_turned(self, names: tuple[str, ...], last: _Answer) -> None:
        depth = int(last.chosen.parallel_depth)
        operands: dict[str, Operand] = {"threads": last.threads, "depth": depth}
        outcome: Outcome = "parallel" if depth else "one-thread"
        self._log.record(KIND, (names,), outcome, "turned", last.place, operands=operands, key=names)

    def _decision(
        self, proxy: Any, part: _Answer, last: _Answer, compared: SeenTest | None
    ) -> tuple[Outcome, CauseCode, dict[str, Operand]]:
        config = self._cpp.config.cpp
        kernel, loops = part.kernel, proxy.loop_nest.loops or []
        if not kernel.call_ranges:
            return "one-thread", "no-loop-to-divide", {"threads": last.threads}
        depth, start = int(last.chosen.parallel_depth), int(last.chosen.start_depth)
        threads, work = last.threads, size_of(kernel.size_hint())
        counted: dict[str, Operand] = {"threads": threads, "work": work}
        ended = _ended(part.path)
        has_little = ended is not None and matches(ended.text, _LITTLE)
        if isinstance(work, int):
            counted |= {"work_per_thread": work // threads, "min_chunk_size": int(config.min_chunk_size)}
        if not depth:
            if has_little:
                return "one-thread", "little-work", counted
            if ended is None:
                return "one-thread", "unlisted-test", counted
            return "one-thread", "one-thread-set", {**counted, "cpp_threads": int(config.threads)}
        divided = kernel.call_ranges[start : start + depth]
        iterations = math.prod(hint_of(size, 1) for size in divided)
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
                **self._ratio(loops, start, compared),
                **(_starts(loops, start, compared) if not self._rounds_up else {}),
            }
            rounded = operands.get("rounded_loops")
            return "parallel", "outer-loops-rounded" if rounded else "inner-loop-longer", operands
        # max_parallel_depth compares at the first loop that it does not offer, however many are taken.
        offered = int(last.allowed.parallel_depth)
        ratio = self._ratio(loops, offered, compared) if offered < len(loops) else {}
        if compared is not None and compared.truth:
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

    def _ratio(self, loops: Sequence[Any], start: int, compared: SeenTest | None) -> dict[str, Operand]:
        """Return what the rule of 300 compares: steps of the loops before `start`, and of the loop there.

        Nothing where it was not compared, as a size is symbolic.
        """
        limit = _limit(compared)
        if limit is None or not _are_numbers(loops[: start + 1]):
            return {}
        outer = (_begun(loop) if self._rounds_up else _whole(loop) for loop in loops[:start])
        steps = {"outer_steps": math.prod(outer), "inner_steps": _whole(loops[start])}
        return {**steps, "ratio_limit": limit}


def _ended(path: CallPath | None) -> SeenTest | None:
    """Return the test by which `decide_parallel_depth` took no further loop; None: it took all."""
    made = [path.tested(text) for text in (_ENOUGH, _IS_EACH, _LITTLE)] if path is not None else []
    return next((test for test in made if test is not None and test.truth), None)


def _limit(compared: SeenTest | None) -> int | None:
    """Return the literal in torch's comparison of steps."""
    found = holes(compared.text, _RATIO) if compared is not None else None
    return int(found[0]) if found is not None and found[0].isdecimal() else None


def _are_numbers(loops: Sequence[Any]) -> bool:
    return all(loop.size.is_number and loop.steps.is_number for loop in loops)


def _whole(loop: Any) -> int:
    return int(loop.size) // int(loop.steps)


def _begun(loop: Any) -> int:
    return -(-int(loop.size) // int(loop.steps))


def _starts(loops: Sequence[Any], start: int, compared: SeenTest | None) -> dict[str, Operand]:
    """Return how often the threads share out the loop at `start`: once for each step of those around it.

    `FloorDiv` counts no step of a loop that is shorter than its vector (torch before 2.15): `rounded_loops`
    are such, where torch would not have divided the inner loop if it had counted them.
    """
    outer = loops[:start]
    if not _are_numbers(loops[: start + 1]):
        return {}
    starts = math.prod(map(_begun, outer))
    short = tuple(f"{loop.var} ({loop.size})" for loop in outer if int(loop.size) < int(loop.steps))
    limit = _limit(compared)
    is_rounded = bool(short) and limit is not None and starts * limit >= _whole(loops[start])
    return {"starts": starts, **({"rounded_loops": short} if is_rounded else {})}


def _chunks(loops: Sequence[Any], start: int, depth: int) -> dict[str, Operand]:
    """Return how many steps there are to hand out: a vectorised loop of 256 has 16; torch counts 256."""
    divided = loops[start : start + depth]
    if len(divided) < depth or not _are_numbers(divided):
        return {}
    return {"steps": math.prod(map(_begun, divided))}


def _hook(cpp: Any, log: DecisionLog) -> None:
    recorder = _Recorder(cpp, log)
    log.watch(cpp, "LoopNest.max_parallel_depth")
    log.watch(cpp, "CppKernel.decide_parallel_depth")
    wrap(cpp, "CppKernel.decide_parallel_depth", log.followed(recorder.decided))
    wrap(cpp, "OuterLoopFusedKernel.decide_parallel_depth", log.followed(recorder.decided))
    wrap(cpp, "KernelGroup.finalize_kernel", recorder.around_finalize)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
