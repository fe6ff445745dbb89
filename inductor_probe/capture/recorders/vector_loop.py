"""Along which loop a C++ nest would be vectorised: `TilingSelect._select_tiling_indices`, which logs nothing.

It counts for each loop how many accesses are contiguous along it. For example y = x + x.t() reads 64*d0 + d1
and d0 + 64*d1 and writes 64*d0 + d1: both loops are contiguous somewhere and strided by a constant elsewhere,
and the inner one of the two is the innermost, so both are vectorised, in tiles with a transposition.
"""

from __future__ import annotations

from typing import Any

from inductor_probe.capture.recorders.cpp_nest import LoopUses, Nest, observe, record_nest
from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError
from inductor_probe.model.decision import DecisionKind, Operand, Outcome, VectorLoopCause

KIND: DecisionKind = "vector-loop"


def choice(uses: dict[int, LoopUses], loops: int) -> tuple[VectorLoopCause, set[int]]:
    """Return why `_select_tiling_indices` chooses, and the loops among which it then takes the last one.

    Args:
        uses: of each loop that an access depends on. loops: how many the nest has.
    """
    contiguous = {loop for loop, use in uses.items() if use.contiguous}
    if not contiguous:
        return "no-contiguous-loop", {loops - 1}
    only = {loop for loop in contiguous if not (uses[loop].constant_stride or uses[loop].other_stride)}
    if only:
        return "contiguous-only-loop", {max(only)}
    inner = max(contiguous)
    if len(contiguous) == 2 and inner == loops - 1 and not uses[inner].other_stride:
        return "two-contiguous-loops", contiguous
    most = max(uses[loop].contiguous for loop in contiguous)
    return "most-contiguous-loop", {max(loop for loop in contiguous if uses[loop].contiguous == most)}


def _hook(cpp: Any, log: DecisionLog) -> None:
    def record(nest: Nest) -> None:
        if nest.loop_place is None:
            return  # select_tiling asks for no loop where a dtype has no vectors
        loops = len(nest.proxy.itervars)
        cause, chosen = choice(nest.uses, loops)
        if chosen != set(nest.candidates):
            raise UnknownPathError(f"torch chose the loops {nest.candidates}, this recorder {sorted(chosen)}")
        outcome: Outcome = "two-loops" if len(chosen) == 2 else "outer-loop"
        if chosen == {loops - 1}:
            outcome = "innermost-loop"
        all_uses = [nest.uses.get(loop, LoopUses()) for loop in range(loops)]
        operands: dict[str, Operand] = {
            "chosen": tuple(nest.loop_name(loop) for loop in nest.candidates),
            "loops": tuple(nest.loop_name(loop) for loop in range(loops)),
            "ranges": tuple(str(nest.size(loop)) for loop in range(loops)),
            "contiguous": tuple(str(use.contiguous) for use in all_uses),
            "constant_stride": tuple(str(use.constant_stride).lower() for use in all_uses),
            "other_stride": tuple(str(use.other_stride).lower() for use in all_uses),
        }
        record_nest(log, KIND, nest, (outcome, cause, operands), nest.loop_place)

    observe(cpp, log, record)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
