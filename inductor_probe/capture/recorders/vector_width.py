"""How many elements a vectorised C++ loop computes at once: `TilingSelect.select_tiling` decides.

One number, the factor, for all dtypes of a nest. With AVX-512 it is 16, as float32 has; a nest of bfloat16 or
float16 gets 32, and 16 again if a vectorised loop is shorter than 32. The elements of a dtype fill
factor * itemsize * 8 / bit width vectors: of 16 lanes, int64 needs 2, uint8 fills a quarter of one.
"""

from __future__ import annotations

from typing import Any

from inductor_probe.capture.recorders.cpp_nest import Nest, observe, record_nest
from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome

KIND: DecisionKind = "vector-width"


def _hook(cpp: Any, log: DecisionLog) -> None:
    def record(nest: Nest) -> None:
        if not nest.tiled or nest.tiling_place is None:
            return
        factor, isa = int(nest.answer[0][0]), nest.proxy.picked_vec_isa
        float_factor = int(isa.nelements())
        dtypes = sorted(cpp._get_dtype_from_loopbodies([body for _, body in nest.bodies]), key=str)
        operands: dict[str, Operand] = {
            "factor": factor,
            "bit_width": int(isa.bit_width()),
            "isa": str(isa),
            "dtypes": tuple(str(dtype).removeprefix("torch.") for dtype in dtypes),
            "vectors": tuple(f"{factor * dtype.itemsize * 8 / isa.bit_width():g}" for dtype in dtypes),
        }
        outcome: Outcome = "full-width"
        cause: CauseCode
        if nest.factor == float_factor == factor:
            cause = "float-lanes"
        elif nest.factor == factor:
            cause = "low-precision-lanes"
        elif nest.factor == 2 * factor:
            outcome, cause = "half-width", "short-low-precision-range"
            ranges = tuple(str(nest.size(loop)) for loop in nest.tiled)
            operands |= {"ranges": ranges, "range_limit": nest.factor}
        else:
            raise UnknownPathError(f"factor {factor} where {nest.factor} lanes were offered")
        record_nest(log, KIND, nest, (outcome, cause, operands), nest.tiling_place)

    observe(cpp, log, record)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
