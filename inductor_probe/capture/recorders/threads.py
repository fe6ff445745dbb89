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
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from inductor_probe.capture.branches import CallPath, SeenTest, holes, matches
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import DecisionLog, hint_of, names_of, size_of, test_at

_CPP = "torch._inductor.codegen.cpp"
_RATIO = "num_steps * ? < ?"
_ENOUGH, _IS_EACH = "par >= ?", "par == threads"
_LITTLE = "seq // threads < ?"
_LONGEST = "LoopNest.max_parallel_depth"
_BY_STEPS = (
    "inner-loop-longer", "outer-loops-rounded", "reduction-boundary", "reduction-under-vector-loop",
)  # fmt: skip
"""Causes that are decided where steps are compared; the others where the search for loops ends."""


class _Answer(NamedTuple):
    """One call of `decide_parallel_depth`: of which kernel, with what offered, for how many threads."""

    call: Call
    kernel: Any
    allowed: Any
    threads: int

    @property
    def depth(self) -> int:
        return int(self.call.result.parallel_depth)


@watches(_CPP, _LONGEST)
class Threads(Recorder):
    """Records the last answer about a nest; a fused outer loop asks each of its parts before its own."""

    KIND = "threads"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._answers: list[_Answer] | None = None

    @sees(_CPP, "CppKernel.decide_parallel_depth", "OuterLoopFusedKernel.decide_parallel_depth", watches=True)
    def decided(self, call: Call, kernel: Any, allowed: Any, threads: Any) -> None:
        """Remember an answer."""
        if self._answers is not None:
            self._answers.append(_Answer(call, kernel, allowed, int(threads)))

    @sees(_CPP, "KernelGroup.finalize_kernel", follows=True)
    def finalized(self, call: Call, _: Any, kernel: Any, nodes: Sequence[Any]) -> Iterator[None]:
        """Record which loops of a nest are divided, if any."""
        answers: list[_Answer] = []
        before, self._answers = self._answers, answers
        try:
            yield
        finally:
            self._answers = before
        names = names_of(nodes)
        if not answers or not names:
            return
        *parts, last = answers
        outcome: Any = "parallel" if last.depth else "one-thread"
        if self.log.is_turned(self.KIND, names):
            cause = Cause("turned", {"threads": last.threads, "depth": last.depth})
        else:
            part = max(parts, key=lambda answer: answer.depth, default=last)
            offered = call.path_of(_LONGEST)
            ratio = offered.tested(_RATIO) if offered is not None else None
            code, operands = _decision(kernel, part, last, ratio)
            by_steps = code in _BY_STEPS and ratio is not None
            path, test = (offered, ratio) if by_steps else (part.call.path, _ended(part.call.path))
            tests = (test_at(path, test),) if path is not None and test is not None else ()
            cause = Cause(code, operands, tests)
        self.record(outcome, cause, last.call.place, names, key=names)


def _decision(proxy: Any, part: _Answer, last: _Answer, compared: SeenTest | None) -> tuple[str, Operands]:
    config: Any = sys.modules["torch._inductor.config"].cpp
    kernel, loops = part.kernel, proxy.loop_nest.loops or []
    if not kernel.call_ranges:
        return "no-loop-to-divide", {"threads": last.threads}
    depth, start = last.depth, int(last.call.result.start_depth)
    threads, work = last.threads, size_of(kernel.size_hint())
    counted: Operands = {"threads": threads, "work": work}
    ended = _ended(part.call.path)
    has_little = ended is not None and matches(ended.text, _LITTLE)
    if isinstance(work, int):
        counted |= {"work_per_thread": work // threads, "min_chunk_size": int(config.min_chunk_size)}
    if not depth:
        if has_little:
            return "little-work", counted
        if ended is None:
            return "unlisted-test", counted
        return "one-thread-set", {**counted, "cpp_threads": int(config.threads)}
    divided = kernel.call_ranges[start : start + depth]
    iterations = math.prod(hint_of(size, 1) for size in divided)
    operands: Operands = {
        **counted, "depth": depth,
        "loops": tuple(str(variable) for variable in kernel.itervars[start : start + depth]),
        "ranges": tuple(str(size) for size in divided), "iterations": iterations,
        "is_reduction": bool(start < len(loops) and loops[start].is_reduction),
        **_chunks(loops, start, depth),
    }  # fmt: skip
    if config.dynamic_threads and depth == 1 and (threads == 1 or has_little):
        return "dynamic-threads", operands
    if start:
        operands |= _ratio(loops, start, compared)
        if not _rounds_up():
            operands |= _starts(loops, start, compared)
        return "outer-loops-rounded" if operands.get("rounded_loops") else "inner-loop-longer", operands
    # max_parallel_depth compares at the first loop that it does not offer, however many are taken.
    offered = int(last.allowed.parallel_depth)
    ratio = _ratio(loops, offered, compared) if offered < len(loops) else {}
    if compared is not None and compared.truth:
        return "reduction-under-vector-loop", {**operands, **ratio}
    steps = operands.get("steps")
    if iterations >= threads:
        is_few = isinstance(steps, int) and steps < threads
        return "few-vector-steps" if is_few else "loops-divided", operands
    if depth < offered:
        left = int(work / iterations) // threads if isinstance(work, int) else work
        return "little-work-per-iteration", {**operands, "work_of_next_loop": left}
    if offered < len(loops):
        return "reduction-boundary", {**operands, "next_loop": str(loops[offered].var), **ratio}
    return "loops-divided", operands


def _rounds_up() -> bool:
    """Whether a loop that is shorter than its vector is one step, and not none: since torch 2.15."""
    function: Any = inspect.unwrap(sys.modules[_CPP].LoopNest.max_parallel_depth)
    return "CeilDiv" in function.__code__.co_names


def _ratio(loops: Sequence[Any], start: int, compared: SeenTest | None) -> Operands:
    """Return what the rule of 300 compares: steps of the loops before `start`, and of the loop there.

    Nothing where it was not compared, as a size is symbolic.
    """
    limit = _limit(compared)
    if limit is None or not _are_numbers(loops[: start + 1]):
        return {}
    outer = map(_begun if _rounds_up() else _whole, loops[:start])
    return {"outer_steps": math.prod(outer), "inner_steps": _whole(loops[start]), "ratio_limit": limit}


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


def _starts(loops: Sequence[Any], start: int, compared: SeenTest | None) -> Operands:
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


def _chunks(loops: Sequence[Any], start: int, depth: int) -> Operands:
    """Return how many steps there are to hand out: a vectorised loop of 256 has 16; torch counts 256."""
    divided = loops[start : start + depth]
    if len(divided) < depth or not _are_numbers(divided):
        return {}
    return {"steps": math.prod(map(_begun, divided))}
