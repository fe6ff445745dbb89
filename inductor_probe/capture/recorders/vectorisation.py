"""Whether each C++ loop nest is vectorised, along which loop, how wide, and what becomes of the tail.

torch/_inductor/codegen/cpp.py; nothing of it is logged. The functions that decide are watched: which test
decided, and what it compared, is torch's own (`capture/branches`). In the order in which torch decides:

- `TilingSelect._select_tiling_indices` counts for each loop how many accesses are contiguous along it. For
  example y = x + x.t() reads 64*d0 + d1 and d0 + 64*d1 and writes 64*d0 + d1: both loops are contiguous
  somewhere and strided by a constant elsewhere, and the inner one of the two is the innermost, so both are
  candidates, in tiles with a transposition.
- `TilingSelect.select_tiling` refuses, or takes them. Channels-last uint8 hflip, loops `x0: 4096, x1: 3`, has
  the candidate x1 (its accesses have stride 1), and is refused: with `group[tiling_indices[0]] <
  tiling_factor / 4` torch compares 3 and 4.0, with `op_num < 10` 2 and 10.
- It chooses one number of elements for all dtypes of a nest, the factor. With AVX-512 it is 16, as float32
  has; a nest of bfloat16 or float16 gets 32, and 16 again if a vectorised loop is shorter than 32.
- `CppKernelProxy.codegen_functions` divides a loop of 100 into 6 full vectors and a tail of 4, for which it
  generates a vector kernel with a mask, or the scalar one (`_tail_vec_worthwhile`, from torch 2.12, and
  `cpp.enable_loop_tail_vec`). A loop of 3 has no full vector: 3 of 16 lanes are filled.

What is as it should be has no decision of its own: full vectors of the full width are operands of
`vectorised`, and so are the accesses that are contiguous (`vector_access.py`).
"""

from __future__ import annotations

from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Cause, Operands
from inductor_probe.capture.recorders.cpp_nest import MOST_ACCESSES, LoopUses, Nest, OfNests, first_accesses
from inductor_probe.capture.recorders.decision_log import (
    cause_of_branch,
    decides,
    printed,
    size_of,
    tests_of,
)
from inductor_probe.model.decision import CauseCode, Outcome, TorchFrame

_DTYPE = "dtype not in VECTORIZABLE_DTYPES"
_COUNT, _SHARE = "non_contig_indexing_op_num >= ?", "non_contig_indexing_op_num / op_num >= ?"
_RANGE, _OPERATIONS = "group[tiling_indices[0]] < ?", "op_num < ?"
_HALF = ("call_ranges[tiling_indice] < ?", "call_range < ?")
_LOOPS = "TilingSelect._select_tiling_indices"
_TAIL_SHARE, _TAIL_LENGTH = "? / op_num > ?", "? * hint_tail_size > ?"


class Vectorisation(OfNests):
    """Records whether a nest is vectorised, how wide, and what becomes of its tail."""

    def record_nest(self, nest: Nest) -> None:
        """Record all three."""
        made, why, place = self._answer(nest)
        self.answer(nest, "vectorised", made, why, place or nest.place)
        half = _half_width(nest)
        self.answer(nest, "width", "half-width" if half else None, half, nest.tiling_place or nest.place)
        tail = _tail(nest) if _vector_kernels(nest, full=True) else None
        outcome, cause = tail or (None, None)
        self.answer(nest, "tail", outcome, cause, nest.place)

    def _answer(self, nest: Nest) -> tuple[Outcome, Cause, TorchFrame | None]:
        if not nest.proxy.itervars:
            return "scalar", Cause("no-loops"), None
        if not nest.proxy.picked_vec_isa:
            return "scalar", Cause("no-vector-isa", {"simdlen": str(nest.cpp.config.cpp.simdlen)}), None
        has_full = bool(_vector_kernels(nest, full=True))
        if self.log.is_turned(self.KIND, nest.nodes):  # torch compared nothing for it
            if not nest.tiled or not _vector_kernels(nest, full=False):
                return "scalar", Cause("turned"), nest.tiling_place
            cause = Cause("turned", _vectors(nest, counted=False))
            return "vectorised" if has_full else "underfilled", cause, nest.tiling_place
        if not nest.tiled:
            return "scalar", _refused(nest)._replace(tests=tests_of(nest.tiling_path)), nest.tiling_place
        if has_full:
            cause = Cause(_loop_cause(nest), _vectors(nest), tests_of(nest.loop_path))
            return "vectorised", cause, nest.loop_place
        outcome, cause = _tail(nest) or ("scalar", Cause("unlisted-test"))  # all of it is a tail
        if outcome == "masked-tail":
            cause = Cause("range-below-vector", {**_vectors(nest), **cause.operands})
        return "underfilled" if outcome == "masked-tail" else "scalar", cause, None


def _vectors(nest: Nest, *, counted: bool = True) -> Operands:
    """Return what is true of all vectorised nests."""
    isa, factor = nest.proxy.picked_vec_isa, int(nest.answer[0][0])
    dtypes = sorted(nest.cpp._get_dtype_from_loopbodies([body for _, body in nest.bodies]), key=str)
    # torch counts no access of two loops, and none without its heuristics
    counted = counted and nest.cpp.config.cpp.enable_tiling_heuristics and len(nest.tiled) == 1
    return {
        "loops": tuple(nest.loop_name(loop) for loop in nest.tiled),
        "ranges": tuple(printed(nest.size(loop)) for loop in nest.tiled),
        "factor": factor,
        "isa": str(isa),
        "bit_width": int(isa.bit_width()),
        "dtypes": tuple(str(dtype).removeprefix("torch.") for dtype in dtypes),
        "vectors": tuple(f"{factor * dtype.itemsize * 8 / isa.bit_width():g}" for dtype in dtypes),
        **(nest.counts if counted else {}),
        **_uses(nest),
    }


def _refused(nest: Nest) -> Cause:
    """Return why `select_tiling` takes no loop: by the tests behind which it returned."""
    path = nest.tiling_path
    decided = {pattern for pattern in (_DTYPE, _COUNT, _SHARE, _RANGE) if decides(path, pattern)}
    if path is None or not decided or (_DTYPE not in decided and not nest.candidates):
        return Cause("unlisted-test")
    if _DTYPE in decided:
        others = _other_dtypes(nest)
        return Cause("dtype-not-vectorisable", {
            "dtypes": tuple(sorted({dtype for *_, dtype in others})),
            "nodes": tuple(node for node, _, _ in others),
            "node_operations": tuple(operation for _, operation, _ in others),
        })  # fmt: skip
    loop, limits = nest.candidates[0], _limits(path)
    inner: Operands = {
        "loop": nest.loop_name(loop), "range": size_of(nest.size(loop)), "loop_cause": _loop_cause(nest),
    }  # fmt: skip
    if _RANGE in decided:
        return Cause("short-inner-range", {
            **inner, "range_limit": limits["range_limit"], "factor": nest.factor,
            "operations": nest.counts["operations"], **limits, **_uses(nest),
        })  # fmt: skip
    refused = [access for access in nest.accesses if not access.contiguous]
    clean = tuple(name for name in nest.nodes if name not in {access.node for access in refused})
    kinds: Operands = {
        f"{kind}s": sum(access.operation == kind for access in refused)
        for kind in sorted({access.operation for access in refused})
    }
    return Cause("non-contiguous-accesses", {
        **inner, **nest.counts, **limits, **kinds, **first_accesses(refused), "contiguous_nodes": clean,
        **_uses(nest),
    })  # fmt: skip


def _limits(path: CallPath) -> Operands:
    """Return what `select_tiling` compared in the tests that bear on where it returned."""
    limits: Operands = {}
    if decides(path, _RANGE):
        for pattern, name in ((_RANGE, "range_limit"), (_OPERATIONS, "operations_limit")):
            limits |= _compared(path, pattern, "", name)
        return limits
    return _compared(path, _COUNT, "", "count_limit") | _compared(path, _SHARE, "share", "share_limit")


def _compared(path: CallPath, pattern: str, left: str, right: str) -> Operands:
    """Return the operands of a comparison by these names; none where it was not made."""
    seen = path.tested(pattern)
    values = zip((left, right), seen.values, strict=True) if seen is not None else ()
    return {name: value for name, value in values if name}


def _loop_cause(nest: Nest) -> CauseCode:
    """Return why `_select_tiling_indices` chooses: by the branch that it returned in."""
    return cause_of_branch(nest.loop_path, "vectorisation", _LOOPS, "most-contiguous-loop")


def _uses(nest: Nest) -> Operands:
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


def _half_width(nest: Nest) -> Cause | None:
    path = nest.tiling_path
    factor = int(nest.answer[0][0]) if nest.tiled else nest.factor
    if path is None or nest.factor == factor:
        return None
    isa = nest.proxy.picked_vec_isa
    held = next((seen for text in _HALF if (seen := path.tested(text)) and seen.truth), None)
    return Cause("short-low-precision-range" if held is not None else "unlisted-test", {
        "factor": factor, "bit_width": int(isa.bit_width()), "isa": str(isa),
        "ranges": tuple(printed(nest.size(loop)) for loop in nest.tiled),
        **({"range_limit": held.values[1]} if held is not None else {}),
    })  # fmt: skip


def _vector_kernels(nest: Nest, *, full: bool) -> list[Any]:
    """Return the vector kernels in the text; with `full` those that fill all lanes, and all rows of tiles."""
    vectors = [kernel for kernel in nest.kernels if isinstance(kernel, nest.cpp.CppVecKernel)]
    return [kernel for kernel in vectors if not (full and _has_tail(kernel))]


def _has_tail(kernel: Any) -> bool:
    """Whether a mask leaves out lanes of a vector, or rows or lanes of a tile: `CppTile2DKernel` has both."""
    tails = ("tail_size", "inner_tail_size", "outer_tail_size")
    return any(getattr(kernel, name, None) is not None for name in tails)


def _tail(nest: Nest) -> tuple[Outcome, Cause] | None:
    """Return how what is left over is computed; None where nothing is, or where it is in full vectors, too.

    Of two loops the tail of the inner one is then computed in vectors along the outer one.
    """
    factor = int(nest.answer[0][0])
    sizes = [nest.size(loop) for loop in nest.tiled]
    tails = [size % factor if size.is_number else f"up to {factor - 1}" for size in sizes]
    operands: Operands = {
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
        return ("masked-tail", Cause("partial-vector", operands)) if is_masked else None
    if not nest.cpp.config.cpp.enable_loop_tail_vec:
        return "scalar-tail", Cause("tail-vectorisation-off", operands)
    path = nest.inner_paths[-1] if nest.inner_paths else None
    if path is None or not decides(path, _TAIL_LENGTH):
        return "scalar-tail", Cause("unlisted-test", operands)
    return "scalar-tail", Cause("tail-not-worthwhile", {
        **operands, "masks": nest.answer[2].mask_op_count, **nest.counts,
        **_compared(path, _TAIL_SHARE, "share", "share_limit"),
        **_compared(path, _TAIL_LENGTH, "weighed_tail", "tail_limit"),
    })  # fmt: skip


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
