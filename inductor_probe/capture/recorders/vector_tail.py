"""How many lanes of a vectorised C++ loop are filled; whether masked vectors or a scalar loop do the rest.

`CppKernelProxy.codegen_functions` divides a loop of 100 by the factor 16 into 6 full vectors and a tail of 4,
for which it generates a vector kernel with a mask, or the scalar one (`_tail_vec_worthwhile`, from torch
2.12, and `cpp.enable_loop_tail_vec`). A loop of 3 has no full vector: 3 of 16 lanes are filled.
"""

from __future__ import annotations

from typing import Any

from inductor_probe.capture.recorders.cpp_nest import (
    Answer,
    Nest,
    observe,
    record_nest,
)
from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, size_of
from inductor_probe.model.decision import DecisionKind, Operand

KIND: DecisionKind = "vector-tail"


def _hook(cpp: Any, log: DecisionLog) -> None:
    def record(nest: Nest) -> None:
        if not nest.tiled:
            return
        record_nest(log, KIND, nest, _tail(nest), nest.place)

    observe(cpp, log, record)


def _tail(nest: Nest) -> Answer:
    factor = int(nest.answer[0][0])
    loops = [nest.proxy.loop_nest.loops[loop] for loop in nest.tiled]
    tails = [loop.size - loop.tiled_size for loop in loops]
    operands: dict[str, Operand] = {
        "loops": tuple(str(loop.var) for loop in loops),
        "ranges": tuple(str(loop.size) for loop in loops),
        "factor": factor,
        "full_vectors": tuple(str(loop.tiled_size / factor) for loop in loops),
        "tails": tuple(str(tail) for tail in tails),
    }
    if all(tail == 0 for tail in tails):
        return "no-tail", "whole-vectors", operands
    if isinstance(
        nest.proxy.kernels[1], nest.cpp.CppTile2DKernel if len(loops) == 2 else nest.cpp.CppVecKernel
    ):
        is_short = any(loop.tiled_size == 0 for loop in loops)
        return "masked-tail", "range-below-vector" if is_short else "partial-vector", operands
    if not nest.cpp.config.cpp.enable_loop_tail_vec:
        return "scalar-tail", "tail-vectorisation-off", operands
    if len(nest.answer) < 3:
        raise UnknownPathError("a tail is scalar, though tails are to be vectorised")
    stats, tail = nest.answer[2], tails[-1]
    overhead = stats.mask_op_count + sum(stats.non_contig_indexing_op_counter.values())
    operations = sum(stats.op_counter.values())
    limit = stats.OVERHEAD_RATIO_THRESHOLD
    if not operations or overhead / operations <= limit or (tail.is_number and 2 * tail > factor):
        raise UnknownPathError("a tail is scalar, though vectors are worth while by torch's own rule")
    return "scalar-tail", "tail-not-worthwhile", {
        **operands, "masks": stats.mask_op_count, "non_contiguous": overhead - stats.mask_op_count,
        "operations": operations, "share": round(overhead / operations, 4), "share_limit": limit,
        "tail": size_of(tail), "tail_limit": factor / 2,
    }  # fmt: skip


HOOKS = {"torch._inductor.codegen.cpp": _hook}
