"""Whether each C++ loop nest is vectorised, and why: `TilingSelect.select_tiling` decides, and logs nothing.

For example channels-last uint8 hflip, loops `x0: 4096, x1: 3`, is asked for the loop x1 (its accesses have
stride 1), and refused there: 3 < 16 / 4 and 2 operations < 10. Which loop is asked for is a decision of its
own (`vector_loop.py`), and so is how many lanes of the vectors are filled (`vector_tail.py`).
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

from inductor_probe.capture.recorders.cpp_nest import (
    Access,
    Nest,
    observe,
    record_nest,
)
from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, size_of
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome

KIND: DecisionKind = "vectorisation"

# Literals in TilingSelect.select_tiling, the same in torch 2.11 and 2.13; `_has_literals` looks for them.
_COUNT_LIMIT = 35
_SHARE_LIMIT = 0.12
_OPERATIONS_LIMIT = 10
_RANGE_DIVISOR = 4
MOST_ACCESSES = 8
"""Accesses that are named in a decision; all are counted."""

_Cause = tuple[CauseCode, dict[str, Operand]]


class _Recorder:
    def __init__(self, cpp: Any, log: DecisionLog) -> None:
        self._log = log
        self._literals_known = _has_literals(cpp.TilingSelect.select_tiling)

    def record(self, nest: Nest) -> None:
        """Record what was decided about a nest."""
        cause, operands = self._cause(nest)
        outcome: Outcome = "vectorised" if cause in ("one-dimension", "two-dimensions") else "scalar"
        place = nest.tiling_place or nest.place
        record_nest(self._log, KIND, nest, (outcome, cause, operands), place)

    def _cause(self, nest: Nest) -> _Cause:
        proxy = nest.proxy
        if not proxy.itervars:
            return "no-loops", {}
        if not proxy.picked_vec_isa:
            return "no-vector-isa", {"simdlen": str(nest.cpp.config.cpp.simdlen)}
        if not nest.answer:
            raise UnknownPathError("there are vectors and loops, and select_tiling was not asked")
        others = _other_dtypes(nest)
        if others:
            return "dtype-not-vectorisable", {
                "dtypes": tuple(sorted({dtype for *_, dtype in others})),
                "nodes": tuple(node for node, _, _ in others),
                "node_operations": tuple(operation for _, operation, _ in others),
            }
        return self._vectorised(nest) if nest.tiled else self._refused(nest)

    def _vectorised(self, nest: Nest) -> _Cause:
        factors, loops = nest.answer[:2]
        isa: dict[str, Operand] = {"factor": int(factors[0]), "isa": str(nest.proxy.picked_vec_isa)}
        names = tuple(nest.loop_name(loop) for loop in loops)
        if len(loops) == 2:
            ranges = tuple(str(nest.size(loop)) for loop in loops)
            return "two-dimensions", {"loops": names, "ranges": ranges, **isa}
        if len(loops) != 1:
            raise UnknownPathError(f"{len(loops)} loops are vectorised")
        counts = self._counts(nest) if nest.cpp.config.cpp.enable_tiling_heuristics else {}
        return "one-dimension", {"loop": names[0], "range": size_of(nest.size(loops[0])), **isa, **counts}

    def _refused(self, nest: Nest) -> _Cause:
        if not nest.cpp.config.cpp.enable_tiling_heuristics or not nest.candidates:
            raise UnknownPathError("select_tiling returned no loop, and its heuristics are off")
        if not self._literals_known:
            raise UnknownPathError("select_tiling compares with other thresholds than this recorder knows")
        loop = nest.candidates[0]
        counts = self._counts(nest)
        operations, refused = nest.operations, [access for access in nest.accesses if not access.contiguous]
        share = len(refused) / operations if operations else 0.0
        limits: dict[str, Operand] = {"share_limit": _SHARE_LIMIT, "count_limit": _COUNT_LIMIT}
        inner: dict[str, Operand] = {"loop": nest.loop_name(loop), "range": size_of(nest.size(loop))}
        if len(refused) >= _COUNT_LIMIT or (operations and share >= _SHARE_LIMIT):
            clean = tuple(name for name in nest.nodes if name not in {access.node for access in refused})
            return "non-contiguous-accesses", {
                **inner, **counts, "share": round(share, 4), **limits, **_kinds(refused), **_named(refused),
                "contiguous_nodes": clean,
            }  # fmt: skip
        size = nest.size(loop)
        if (
            len(nest.proxy.call_ranges) == nest.proxy.reduction_depth
            and len(nest.candidates) == 1
            and size.is_number
            and size < nest.factor / _RANGE_DIVISOR
            and operations < _OPERATIONS_LIMIT
        ):
            return "short-inner-range", {
                **inner, "range_limit": nest.factor / _RANGE_DIVISOR, "factor": nest.factor,
                "operations": operations, "operations_limit": _OPERATIONS_LIMIT,
            }  # fmt: skip
        raise UnknownPathError("select_tiling returned no loop, and none of its known conditions holds")

    def _counts(self, nest: Nest) -> dict[str, Operand]:
        """Return how many operations, and how many non-contiguous ones, checked by torch's numbers."""
        refused = sum(not access.contiguous for access in nest.accesses)
        if len(nest.answer) > 2:
            stats = nest.answer[2]
            counted = (
                sum(stats.op_counter.values()),
                sum(stats.non_contig_indexing_op_counter.values()),
            )
            if counted != (nest.operations, refused):
                raise UnknownPathError(f"torch counted {counted}, this recorder {nest.operations, refused}")
        return {"operations": nest.operations, "non_contiguous": refused}


def _kinds(accesses: list[Access]) -> dict[str, Operand]:
    """Return how many accesses there are of each operation: `{"loads": 2, "stores": 1}`."""
    kinds = sorted({access.operation for access in accesses})
    return {f"{kind}s": sum(access.operation == kind for access in accesses) for kind in kinds}


def _named(accesses: list[Access]) -> dict[str, Operand]:
    """Return the first accesses, in tuples of equal lengths."""
    first = accesses[:MOST_ACCESSES]
    return {
        "nodes": tuple(access.node for access in first),
        "node_operations": tuple(access.operation for access in first),
        "buffers": tuple(access.buffer for access in first),
        "indices": tuple(access.index for access in first),
        "strides": tuple(access.stride for access in first),
    }


def _other_dtypes(nest: Nest) -> list[tuple[str, str, str]]:
    """Return node, operation and dtype of the first operations whose dtype has no vectors."""
    vectorisable = set(nest.cpp.VECTORIZABLE_DTYPES)
    others: dict[tuple[str, str, str], None] = {}
    for name, body in nest.bodies:
        for block in (body.root_block, *body.subblocks.values()):
            for node in block.graph.nodes:
                # as torch/_inductor/codegen/cpp_utils.py, _get_dtype_from_loopbodies
                if node.op == "call_method":
                    dtype = node.meta[nest.cpp.OptimizationContext.key].dtype
                    if dtype not in vectorisable:
                        others[name, str(node.target), str(dtype).removeprefix("torch.")] = None
    return list(others)[:MOST_ACCESSES]


def _has_literals(select_tiling: Callable[..., Any]) -> bool:
    """Return whether a function compares with the thresholds above."""
    code: CodeType = inspect.unwrap(select_tiling).__code__
    literals = {instruction.argval for instruction in dis.get_instructions(code) if _is_number(instruction)}
    return {_COUNT_LIMIT, _OPERATIONS_LIMIT, _RANGE_DIVISOR} <= literals


def _is_number(instruction: dis.Instruction) -> bool:
    return isinstance(instruction.argval, int | float) and instruction.opname.startswith("LOAD")


def _hook(cpp: Any, log: DecisionLog) -> None:
    observe(cpp, log, _Recorder(cpp, log).record)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
