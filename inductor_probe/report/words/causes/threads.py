"""Words for threads of C++ loop nests: torch/_inductor/codegen/cpp.py, `CppKernel.decide_parallel_depth`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

_STEPS = (
    "{inner_steps:# step} of the loop inside {inner_steps:?is/are} more than {ratio_limit} times the "
    "{outer_steps} of those around it"
)


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


WORDS = KindWords(
    outcomes={
        "parallel": "{subject} {n:?has/have} {threads:# thread} along {loops}",
        "one-thread": "{subject} {n:?has/have} one thread",
        ("parallel", "outer-loops-rounded"): "{subject} {n:?shares/share} {loops} among {threads:# thread} "
        "{starts:# time} in a call",
        ("parallel", "few-vector-steps"): "{subject} {n:?has/have} work for {steps:# thread} along {loops}",
    },
    causes={
        "loops-divided": CauseWords(
            "{iterations:# iteration} to divide[, in {vector_steps:# step} of the vectorised loops]",
            "{iterations} iterations for {threads:# thread}",
        ),
        "few-vector-steps": CauseWords(
            "there are {iterations:# iteration} for {threads:# thread}, but these are {steps:# step} of the "
            "vectorised loops, which is what threads share; torch counts iterations",
            "{steps:# step} for {threads:# thread}",
        ),
        "inner-loop-longer": CauseWords(
            f"[{_STEPS}, so that it is divided][, once for each of {{starts:# step}} around it]",
            "inner loop {inner_steps} > {ratio_limit} x {outer_steps}[, {starts:# start}]",
        ),
        "outer-loops-rounded": CauseWords(
            "torch divides the loop inside where it has more than {ratio_limit} times the steps of those "
            "around it, and counts {outer_steps} of these, as {rounded_loops} {rounded_n:?is/are} shorter "
            "than a vector; there are {starts:,}, at each of which {at_each}",
            "{starts:# start} of {threads:# thread}, counted as {outer_steps}",
        ),
        "reduction-boundary": CauseWords(
            "only the {iterations:# iteration} around the reduction {next_loop} can be divided, fewer than "
            "{threads:# thread}[; the reduction would be divided from {ratio_limit} times the {outer_steps} "
            "steps around it, and has {inner_steps}]",
            "{iterations} iterations around a reduction",
        ),
        "reduction-under-vector-loop": CauseWords(
            "the reduction inside has {inner_steps:# step}, more than {ratio_limit} times the {outer_steps} "
            "around it, but the vectorised loop around it has a scalar tail, and torch divides no reduction "
            "there",
            "scalar tail keeps the reduction whole",
        ),
        "little-work-per-iteration": CauseWords(
            "{iterations:# iteration} for {threads:# thread}; the next loop is not divided, as a thread "
            "would have {work_of_next_loop} elements, fewer than {min_chunk_size}",
            "{iterations} iterations, {work_of_next_loop} < {min_chunk_size}",
        ),
        "dynamic-threads": CauseWords(
            "cpp.dynamic_threads asks for one parallel loop in any case", "cpp.dynamic_threads"
        ),
        "little-work": CauseWords(
            "{work:# element} for {threads:# thread} are {work_per_thread} each, fewer than {min_chunk_size}",
            "{work_per_thread} < {min_chunk_size} elements a thread",
        ),
        "one-thread-set": CauseWords(
            "[cpp.threads is {by_setting}][torch.get_num_threads() was {by_torch}]", "one thread is set"
        ),
        "no-loop-to-divide": CauseWords("a single element is computed", "no loop"),
    },
    changes={
        "cpp.min_chunk_size": "divides less work among threads; time it: starting them costs microseconds",
        "cpp.threads": "lets torch.get_num_threads() say how many",
        "set-num-threads": "call torch.set_num_threads with more before the compile",
        "whole-vector": "let an innermost dimension that fills a vector be vectorised: then the loops around "
        "it are divided",
        "two-step-reduction": "reduce in two steps, the first of which has at least {threads} results",
        "cpp.enable_loop_tail_vec": "makes the tail a masked vector, below which a reduction may be divided",
        "cpp.dynamic_threads": "lets the amount of work decide",
    },
    derived=_vector_steps,
)
