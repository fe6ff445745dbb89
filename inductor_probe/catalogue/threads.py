"""Threads of C++ loop nests: torch/_inductor/codegen/cpp.py, `CppKernel.decide_parallel_depth`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, Turn
from inductor_probe.catalogue.shared import number, unless, where

_STEPS = (
    "{inner_steps:# step} of the loop inside {inner_steps:?is/are} more than {ratio_limit} times the "
    "{outer_steps} of those around it"
)
_LESS_WORK = "divides less work among threads; time it: starting them costs microseconds"


def _vector_steps(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the steps of vectorised loops: of 256 iterations 16; and what threads do at each start."""
    steps, rounded = operands.get("steps"), operands.get("rounded_loops", ())
    is_same = steps is None or steps == operands.get("iterations")
    source = "by_setting" if operands.get("cpp_threads") == 1 else "by_torch"
    # CppKernel.codegen_loops_impl: a reduction has a parallel region of its own, others share one.
    at_each = (
        "a team of threads starts and ends" if operands.get("is_reduction") else "the threads wait for all"
    )
    return {
        "rounded_n": len(rounded),
        "at_each": at_each,
        source: 1,
        **({} if is_same else {"vector_steps": steps}),
    }


_DECIDE_PARALLEL_DEPTH = "codegen/cpp.py:CppKernel.decide_parallel_depth"
_MAX_PARALLEL_DEPTH = "codegen/cpp.py:LoopNest.max_parallel_depth"

OPERANDS = (
    Operand("threads", "int", "that share the loops", "threads"),
    Operand("work", "size", "iterations of all loops", "iterations"),
    Operand("work_per_thread", "size", "iterations", "iterations"),
    Operand("min_chunk_size", "int", "`cpp.min_chunk_size`", "iterations"),
    Operand("loops", "names", "that are divided"),
    Operand("ranges", "names", "their sizes"),
    Operand("depth", "int", "how many loops are collapsed into one", "loops"),
    Operand("iterations", "size", "of the loops that are divided", "iterations"),
    Operand("is_reduction", "flag", "whether the first loop that is divided is reduced"),
    Operand("steps", "size", "iterations that can be handed out: of a vectorised loop, vectors", "steps"),
    Operand("outer_steps", "size", "of the loops around, as torch counts them", "steps"),
    Operand("inner_steps", "size", "of the loop inside", "steps"),
    Operand("ratio_limit", "number",
        "from this ratio of its steps to those around it, the loop inside is divided"),
    Operand("starts", "size", "how often in a call the work is shared out"),
    Operand("rounded_loops", "names",
        "that are shorter than their vectors, so that torch counts no step of them"),
    Operand("next_loop", "text", "the reduction inside"),
    Operand("work_of_next_loop", "size", "that a thread would have of it", "iterations"),
    Operand("cpp_threads", "int", "the setting `cpp.threads`"),
)  # fmt: skip

OUTCOMES = (
    Outcome("parallel", "{subject} {n:?has/have} {threads:# thread} along {loops}", "passed"),
    Outcome("one-thread", "{subject} {n:?has/have} one thread"),
)  # fmt: skip

CAUSES = (
    Cause("loops-divided", "parallel", _DECIDE_PARALLEL_DEPTH, "",
        "{iterations:# iteration} to divide[, in {vector_steps:# step} of the vectorised loops]",
        "{iterations} iterations for {threads:# thread}", example="values + 1, with cpp.threads = 4"),
    Cause("few-vector-steps", "parallel", _DECIDE_PARALLEL_DEPTH, "",
        "there are {iterations:# iteration} for {threads:# thread}, but these are {steps:# step} of the "
        "vectorised loops, which is what threads share; torch counts iterations",
        "{steps:# step} for {threads:# thread}", remark="missed",
        outcome_words={"parallel": "{subject} {n:?has/have} work for {steps:# thread} along {loops}"},
        example="values + others.t(), with cpp.threads = 4"),
    Cause("inner-loop-longer", "parallel", _MAX_PARALLEL_DEPTH,
        "outer_steps inner_steps ratio_limit starts",
        f"[{_STEPS}, so that it is divided][, once for each of {{starts:# step}} around it]",
        "inner loop {inner_steps} > {ratio_limit} x {outer_steps}[, {starts:# start}]",
        example="values.sum(1), values: float32 (2, 65536), with cpp.threads = 4"),
    Cause("outer-loops-rounded", "parallel", _MAX_PARALLEL_DEPTH,
        "outer_steps inner_steps ratio_limit starts rounded_loops",
        "torch divides the loop inside where it has more than {ratio_limit} times the steps of those "
        "around it, and counts {outer_steps} of these, as {rounded_loops} {rounded_n:?is/are} shorter "
        "than a vector; there are {starts:,}, at each of which {at_each}",
        "{starts:# start} of {threads:# thread}, counted as {outer_steps}", remark="missed",
        outcome_words={"parallel":
        "{subject} {n:?shares/share} {loops} among {threads:# thread} {starts:# time} in a call"},
        changes=(Source("whole-vector",
        "let an innermost dimension that fills a vector be vectorised: then the loops around it are "
        "divided"), Turn("scalar")), example="values.sum(1), with cpp.threads = 4"),
    Cause("reduction-boundary", "parallel", _MAX_PARALLEL_DEPTH,
        "outer_steps inner_steps ratio_limit next_loop",
        "only the {iterations:# iteration} around the reduction {next_loop} can be divided, fewer than "
        "{threads:# thread}[; the reduction would be divided from {ratio_limit} times the {outer_steps} "
        "steps around it, and has {inner_steps}]", "{iterations} iterations around a reduction",
        remark="missed", changes=(Source("two-step-reduction",
        "reduce in two steps, the first of which has at least {threads} results"),),
        example="values.sum(1), values: float32 (2, 4096), with cpp.threads = 4"),
    Cause("reduction-under-vector-loop", "parallel", _MAX_PARALLEL_DEPTH,
        "outer_steps inner_steps ratio_limit",
        "the reduction inside has {inner_steps:# step}, more than {ratio_limit} times the {outer_steps} "
        "around it, but the vectorised loop around it has a scalar tail, and torch divides no reduction "
        "there", "scalar tail keeps the reduction whole", remark="missed",
        changes=(By("cpp.enable_loop_tail_vec", "True",
        "makes the tail a masked vector, below which a reduction may be divided", is_default=True),),
        example="values.sum(0), with cpp.threads = 4, cpp.enable_loop_tail_vec = False"),
    Cause("little-work-per-iteration", "parallel", _DECIDE_PARALLEL_DEPTH, "work_of_next_loop",
        "{iterations:# iteration} for {threads:# thread}; the next loop is not divided, as a thread would "
        "have {work_of_next_loop} elements, fewer than {min_chunk_size}",
        "{iterations} iterations, {work_of_next_loop} < {min_chunk_size}", remark="missed",
        changes=(By("cpp.min_chunk_size", number("work_of_next_loop"), _LESS_WORK,
        present="min_chunk_size", applies=unless("work_of_next_loop", 0)),),
        example="rows[:, None] * columns, with cpp.threads = 8"),
    Cause("dynamic-threads", "parallel", _DECIDE_PARALLEL_DEPTH, "",
        "cpp.dynamic_threads asks for one parallel loop in any case", "cpp.dynamic_threads",
        changes=(By("cpp.dynamic_threads", "False", "lets the amount of work decide", is_default=True),),
        example="values + 1, values: float32 (256,), with cpp.threads = 4, cpp.dynamic_threads = True"),
    Cause("little-work", "one-thread", _DECIDE_PARALLEL_DEPTH, "",
        "{work:# element} for {threads:# thread} are {work_per_thread} each, fewer than {min_chunk_size}",
        "{work_per_thread} < {min_chunk_size} elements a thread", changes=(By("cpp.min_chunk_size",
        number("work_per_thread"), _LESS_WORK,
        present="min_chunk_size", applies=unless("work_per_thread", 0)),),
        example="values + 1, values: float32 (256,), with cpp.threads = 4"),
    Cause("one-thread-set", "one-thread", _DECIDE_PARALLEL_DEPTH, "cpp_threads",
        "[cpp.threads is {by_setting}][torch.get_num_threads() was {by_torch}]", "one thread is set",
        remark="missed", changes=(By("cpp.threads", "-1", "lets torch.get_num_threads() say how many",
        present="cpp_threads", is_default=True, applies=where("cpp_threads", 1)), Source("set-num-threads",
        "call torch.set_num_threads with more before the compile", applies=unless("cpp_threads", 1))),
        example="values + 1, values: float32 (65536,), with cpp.threads = 1"),
    Cause("no-loop-to-divide", "one-thread", _DECIDE_PARALLEL_DEPTH, "", "a single element is computed",
        "no loop", example="values + 1, values: float32 (), with cpp.threads = 4"),
)  # fmt: skip

KIND = Kind(
    "threads", "among how many threads the loops of a C++ kernel are divided, and which",
    OUTCOMES, OPERANDS, CAUSES,
    common="threads work work_per_thread min_chunk_size loops ranges depth iterations is_reduction steps",
    derived=_vector_steps, derives="rounded_n at_each by_setting by_torch vector_steps",
)  # fmt: skip
