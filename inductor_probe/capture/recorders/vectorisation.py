"""Whether each C++ loop nest is vectorised, along which loop, how wide, and what becomes of the tail.

torch/_inductor/codegen/cpp.py; nothing of it is logged. In the order in which torch decides:

- `TilingSelect._select_tiling_indices` counts for each loop how many accesses are contiguous along it. For
  example y = x + x.t() reads 64*d0 + d1 and d0 + 64*d1 and writes 64*d0 + d1: both loops are contiguous
  somewhere and strided by a constant elsewhere, and the inner one of the two is the innermost, so both are
  candidates, in tiles with a transposition.
- `TilingSelect.select_tiling` refuses, or takes them. Channels-last uint8 hflip, loops `x0: 4096, x1: 3`, has
  the candidate x1 (its accesses have stride 1), and is refused: 3 < 16 / 4 and 2 operations < 10.
- It chooses one number of elements for all dtypes of a nest, the factor. With AVX-512 it is 16, as float32
  has; a nest of bfloat16 or float16 gets 32, and 16 again if a vectorised loop is shorter than 32.
- `CppKernelProxy.codegen_functions` divides a loop of 100 into 6 full vectors and a tail of 4, for which it
  generates a vector kernel with a mask, or the scalar one (`_tail_vec_worthwhile`, from torch 2.12, and
  `cpp.enable_loop_tail_vec`). A loop of 3 has no full vector: 3 of 16 lanes are filled.

What is as it should be has no decision of its own: full vectors of the full width are operands of
`vectorised`, and so are the accesses that are contiguous (`vector_access.py`).
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

from inductor_probe.capture.recorders import cpp_nest
from inductor_probe.capture.recorders.cpp_nest import Access, Answer, LoopUses, Nest, record_nest
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    UnknownPathError,
    printed,
    size_of,
)
from inductor_probe.model.decision import Operand, Outcome, TorchFrame, VectorisationCause

KIND = cpp_nest.KIND

# Literals in TilingSelect.select_tiling, the same in torch 2.11 and 2.13; `_has_literals` looks for them.
_COUNT_LIMIT = 35
_SHARE_LIMIT = 0.12
_OPERATIONS_LIMIT = 10
_RANGE_DIVISOR = 4
MOST_ACCESSES = 8
"""Accesses that are named in a decision; all are counted."""


class _Recorder:
    def __init__(self, cpp: Any, log: DecisionLog) -> None:
        self._log = log
        self._literals_known = _has_literals(cpp.TilingSelect.select_tiling)

    def record(self, nest: Nest) -> None:
        """Record whether a nest is vectorised, and why."""
        answer, place = self._answer(nest)
        record_nest(self._log, nest, "vectorised", answer, place or nest.place)

    def record_width(self, nest: Nest) -> None:
        """Record that a nest has half of the elements that fit, where it has."""
        record_nest(self._log, nest, "width", _half_width(nest), nest.tiling_place or nest.place)

    def record_tail(self, nest: Nest) -> None:
        """Record how the tail of a nest that has full vectors is computed, where there is one."""
        answer = _tail(nest) if _vector_kernels(nest, full=True) else None
        record_nest(self._log, nest, "tail", answer, nest.place)

    def _answer(self, nest: Nest) -> tuple[Answer, TorchFrame | None]:
        if not nest.proxy.itervars:
            return ("scalar", "no-loops", {}), None
        if not nest.proxy.picked_vec_isa:
            return ("scalar", "no-vector-isa", {"simdlen": str(nest.cpp.config.cpp.simdlen)}), None
        if not nest.answer:
            raise UnknownPathError("there are vectors and loops, and select_tiling was not asked")
        others = _other_dtypes(nest)
        if others:
            operands: dict[str, Operand] = {
                "dtypes": tuple(sorted({dtype for *_, dtype in others})),
                "nodes": tuple(node for node, _, _ in others),
                "node_operations": tuple(operation for _, operation, _ in others),
            }
            return ("scalar", "dtype-not-vectorisable", operands), nest.tiling_place
        if self._log.is_turned(KIND, nest.nodes):
            return self._turned(nest), nest.tiling_place
        if not nest.tiled:
            return self._refused(nest), nest.tiling_place
        if not _vector_kernels(nest, full=True):
            return self._only_tail(nest), nest.place
        return ("vectorised", _loop_cause(nest), self._vectors(nest)), nest.loop_place

    def _turned(self, nest: Nest) -> Answer:
        """Return what a flip made of a nest: torch compared nothing for it."""
        if not nest.tiled or not _vector_kernels(nest, full=False):
            return "scalar", "turned", {}
        outcome: Outcome = "vectorised" if _vector_kernels(nest, full=True) else "underfilled"
        return outcome, "turned", self._vectors(nest, counted=False)

    def _vectors(self, nest: Nest, *, counted: bool = True) -> dict[str, Operand]:
        """Return what is true of all vectorised nests."""
        isa, factor = nest.proxy.picked_vec_isa, int(nest.answer[0][0])
        dtypes = sorted(nest.cpp._get_dtype_from_loopbodies([body for _, body in nest.bodies]), key=str)
        counted = counted and nest.cpp.config.cpp.enable_tiling_heuristics
        counts = self._counts(nest) if counted else {}
        return {
            "loops": tuple(nest.loop_name(loop) for loop in nest.tiled),
            "ranges": tuple(printed(nest.size(loop)) for loop in nest.tiled),
            "factor": factor,
            "isa": str(isa),
            "bit_width": int(isa.bit_width()),
            "dtypes": tuple(str(dtype).removeprefix("torch.") for dtype in dtypes),
            "vectors": tuple(f"{factor * dtype.itemsize * 8 / isa.bit_width():g}" for dtype in dtypes),
            **(counts if len(nest.tiled) == 1 else {}),  # torch counts no access of two loops
            **_uses(nest),
        }

    def _only_tail(self, nest: Nest) -> Answer:
        """Return what becomes of a nest that has no full vector, so that all of it is a tail."""
        tail = _tail(nest)
        if tail is None:
            raise UnknownPathError("no full vector and no tail are generated")
        outcome, cause, operands = tail
        if outcome == "masked-tail":
            return "underfilled", "range-below-vector", {**self._vectors(nest), **operands}
        return "scalar", cause, operands

    def _refused(self, nest: Nest) -> Answer:
        if not nest.cpp.config.cpp.enable_tiling_heuristics or not nest.candidates:
            raise UnknownPathError("select_tiling returned no loop, and its heuristics are off")
        if not self._literals_known:
            raise UnknownPathError("select_tiling compares with other thresholds than this recorder knows")
        loop = nest.candidates[0]
        counts = self._counts(nest)
        operations, refused = nest.operations, [access for access in nest.accesses if not access.contiguous]
        share = len(refused) / operations if operations else 0.0
        limits: dict[str, Operand] = {"share_limit": _SHARE_LIMIT, "count_limit": _COUNT_LIMIT}
        inner: dict[str, Operand] = {
            "loop": nest.loop_name(loop), "range": size_of(nest.size(loop)), "loop_cause": _loop_cause(nest),
        }  # fmt: skip
        if len(refused) >= _COUNT_LIMIT or (operations and share >= _SHARE_LIMIT):
            clean = tuple(name for name in nest.nodes if name not in {access.node for access in refused})
            return "scalar", "non-contiguous-accesses", {
                **inner, **counts, "share": round(share, 4), **limits, **_kinds(refused), **_named(refused),
                "contiguous_nodes": clean, **_uses(nest),
            }  # fmt: skip
        size = nest.size(loop)
        if (
            len(nest.proxy.call_ranges) == nest.proxy.reduction_depth
            and len(nest.candidates) == 1
            and size.is_number
            and size < nest.factor / _RANGE_DIVISOR
            and operations < _OPERATIONS_LIMIT
        ):
            return "scalar", "short-inner-range", {
                **inner, "range_limit": nest.factor / _RANGE_DIVISOR, "factor": nest.factor,
                "operations": operations, "operations_limit": _OPERATIONS_LIMIT, **_uses(nest),
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


def choice(uses: dict[int, LoopUses], loops: int) -> tuple[VectorisationCause, set[int]]:
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


def _loop_cause(nest: Nest) -> VectorisationCause:
    cause, chosen = choice(nest.uses, len(nest.proxy.itervars))
    if chosen != set(nest.candidates):
        raise UnknownPathError(f"torch chose the loops {nest.candidates}, this recorder {sorted(chosen)}")
    return cause


def _uses(nest: Nest) -> dict[str, Operand]:
    """Return what `_select_tiling_indices` counted of each loop, in tuples of equal lengths."""
    loops = range(len(nest.proxy.itervars))
    uses = [nest.uses.get(loop, LoopUses()) for loop in loops]
    return {
        "all_loops": tuple(map(nest.loop_name, loops)),
        "all_ranges": tuple(printed(nest.size(loop)) for loop in loops),
        "contiguous": tuple(str(use.contiguous) for use in uses),
        "constant_stride": tuple(str(use.constant_stride).lower() for use in uses),
        "other_stride": tuple(str(use.other_stride).lower() for use in uses),
    }


def _half_width(nest: Nest) -> Answer | None:
    if not nest.tiled:
        return None
    factor, isa = int(nest.answer[0][0]), nest.proxy.picked_vec_isa
    if nest.factor == factor:
        return None
    if nest.factor != 2 * factor:
        raise UnknownPathError(f"factor {factor} where {nest.factor} lanes were offered")
    ranges = tuple(printed(nest.size(loop)) for loop in nest.tiled)
    return "half-width", "short-low-precision-range", {
        "factor": factor, "bit_width": int(isa.bit_width()), "isa": str(isa), "ranges": ranges,
        "range_limit": nest.factor,
    }  # fmt: skip


def _vector_kernels(nest: Nest, *, full: bool) -> list[Any]:
    """Return the vector kernels in the text; with `full` those that fill all lanes, and all rows of tiles."""
    vectors = [kernel for kernel in nest.kernels if isinstance(kernel, nest.cpp.CppVecKernel)]
    return [kernel for kernel in vectors if not (full and _has_tail(kernel))]


def _has_tail(kernel: Any) -> bool:
    """Whether a mask leaves out lanes of a vector, or rows or lanes of a tile: `CppTile2DKernel` has both."""
    tails = ("tail_size", "inner_tail_size", "outer_tail_size")
    return any(getattr(kernel, name, None) is not None for name in tails)


def _tail(nest: Nest) -> Answer | None:
    """Return how what is left over is computed; None where nothing is, or where it is in full vectors, too.

    Of two loops the tail of the inner one is then computed in vectors along the outer one.
    """
    factor = int(nest.answer[0][0])
    sizes = [nest.size(loop) for loop in nest.tiled]
    tails = [size % factor if size.is_number else f"up to {factor - 1}" for size in sizes]
    operands: dict[str, Operand] = {
        "loops": tuple(map(nest.loop_name, nest.tiled)),
        "ranges": tuple(map(printed, sizes)),
        "factor": factor,
        "full_vectors": tuple(
            str(size // factor) if size.is_number else f"({size})//{factor}" for size in sizes
        ),
        "tails": tuple(map(printed, tails)),
    }
    vectors = _vector_kernels(nest, full=False)
    if len(vectors) == len(nest.kernels):
        is_masked = len(vectors) > len(_vector_kernels(nest, full=True))
        return ("masked-tail", "partial-vector", operands) if is_masked else None
    if not nest.cpp.config.cpp.enable_loop_tail_vec:
        return "scalar-tail", "tail-vectorisation-off", operands
    if len(nest.answer) < 3:
        raise UnknownPathError("a tail is scalar, though tails are to be vectorised")
    stats, tail = nest.answer[2], tails[-1]
    overhead = stats.mask_op_count + sum(stats.non_contig_indexing_op_counter.values())
    operations = sum(stats.op_counter.values())
    limit = stats.OVERHEAD_RATIO_THRESHOLD
    is_long = not isinstance(tail, str) and 2 * tail > factor
    if not operations or overhead / operations <= limit or is_long:
        raise UnknownPathError("a tail is scalar, though vectors are worth while by torch's own rule")
    return "scalar-tail", "tail-not-worthwhile", {
        **operands, "masks": stats.mask_op_count, "non_contiguous": overhead - stats.mask_op_count,
        "operations": operations, "share": round(overhead / operations, 4), "share_limit": limit,
        "tail": tail if isinstance(tail, str) else int(tail), "tail_limit": factor / 2,
    }  # fmt: skip


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
    recorder = _Recorder(cpp, log)
    for listener in (recorder.record, recorder.record_width, recorder.record_tail):
        cpp_nest.observe(cpp, log, listener)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
