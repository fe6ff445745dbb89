"""Words for how vectorised C++ loop nests are made: torch/_inductor/codegen/cpp.py, `CppKernelProxy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords
from inductor_probe.report.words.templates import joined

_CONTIGUOUS = {
    "contiguous-operand": "let the operands be contiguous along one loop, or read them by rows "
    "(`contiguous()`, another memory format, another order of dimensions)"
}  # fmt: skip


def _loop_uses(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """`x0 (64): 1 contiguous; x1 (64): 2 contiguous, elsewhere strided`."""
    columns = ("loops", "ranges", "contiguous", "constant_stride", "other_stride")
    rows = zip(*(operands.get(column, ()) for column in columns), strict=False)
    uses = [
        f"{loop} ({size}) in {count}{', elsewhere strided' if 'true' in strided else ''}"
        for loop, size, count, *strided in rows
    ]
    return {"uses": "; ".join(uses)} if uses else {}


LOOP_WORDS = KindWords(
    outcomes={
        "innermost-loop": "{subject} would be vectorised along the innermost loop, {chosen}",
        "outer-loop": "{subject} would be vectorised along an outer loop, {chosen}",
        "two-loops": "{subject} would be vectorised along {chosen}, in tiles",
    },
    causes={
        "contiguous-only-loop": CauseWords(
            "it is contiguous wherever an access depends on it[ (contiguous accesses: {uses})]",
            "{chosen}: nowhere strided",
        ),
        "two-contiguous-loops": CauseWords(
            "both are contiguous in some accesses, and strided in others[ (contiguous accesses: {uses})]",
            "{chosen}: each contiguous somewhere",
        ),
        "most-contiguous-loop": CauseWords(
            "most accesses are contiguous along it, others are strided[ (contiguous accesses: {uses})]",
            "{chosen}: contiguous most often",
        ),
        "no-contiguous-loop": CauseWords(
            "no access is contiguous along any loop, so torch takes the last one", "no contiguous loop"
        ),
    },
    changes=_CONTIGUOUS,
    derived=_loop_uses,
)


def _lanes(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """`uint8 fills 0.25 of a vector, int64 needs 2`."""
    rows = [*zip(operands.get("dtypes", ()), operands.get("vectors", ()), strict=False)]
    return {"fill": joined(f"{vectors} of {dtype}" for dtype, vectors in rows)} if rows else {}


WIDTH_WORDS = KindWords(
    outcomes={
        "full-width": "{subject} {n:?computes/compute} {factor} elements at once",
        "half-width": "{subject} {n:?computes/compute} {factor} elements at once, half of what fits",
    },
    causes={
        "float-lanes": CauseWords(
            "as many as a vector of {bit_width} bits has float32[; in vectors, that is {fill}]",
            "{factor} lanes, as float32 has",
        ),
        "low-precision-lanes": CauseWords(
            "all values are of one 16-bit float type, of which a vector of {bit_width} bits has {factor}"
            "[; in vectors, that is {fill}]",
            "{factor} lanes of 16 bits",
        ),
        "short-low-precision-range": CauseWords(
            "a vectorised loop has fewer steps ({ranges}) than a vector of 16-bit floats has lanes "
            "({range_limit})",
            "range {ranges} < {range_limit} lanes",
        ),
    },
    changes={"longer-range": "let a longer dimension be the loop that is vectorised"},
    derived=_lanes,
)


def _first_tail(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Loop, full vectors and tail, of the first loop whose tail is not empty."""
    columns = ("loops", "full_vectors", "tails")
    rows = [row for row in zip(*(operands.get(name, ()) for name in columns), strict=False) if row[2] != "0"]
    return dict(zip(("tail_loop", "full", "left"), rows[0], strict=True)) if rows else {}


TAIL_WORDS = KindWords(
    outcomes={
        "no-tail": "all vectors of {subject} are full",
        "masked-tail": "the tail of {subject} is vectorised with a mask",
        "scalar-tail": "the tail of {subject} is scalar",
    },
    causes={
        "whole-vectors": CauseWords("{ranges} is a multiple of {factor} lanes", "full vectors"),
        "partial-vector": CauseWords(
            "along {tail_loop} there are {full} full vectors, and {left} of {factor} lanes are left",
            "{left} of {factor} lanes in the tail",
        ),
        "range-below-vector": CauseWords(
            "along {tail_loop} only {left} of {factor} lanes are filled: there is no full vector",
            "{left} of {factor} lanes filled",
        ),
        "tail-not-worthwhile": CauseWords(
            "{tail} of {factor} lanes are left, at most {tail_limit:g}, and {masks:# mask} and "
            "{non_contiguous:# non-contiguous access/non-contiguous accesses} are {share:.0%} of "
            "{operations:# operation}, above {share_limit:.0%}",
            "tail {tail} of {factor}, {share:.0%} masks",
        ),
        "tail-vectorisation-off": CauseWords(
            "cpp.enable_loop_tail_vec is off, and along {tail_loop} {left} of {factor} lanes are left after "
            "{full} full vectors",
            "{left} steps, setting off",
        ),
    },
    changes={
        "longer-range": "let a longer dimension be the loop that is vectorised",
        "cpp.enable_loop_tail_vec": "computes the tail with a masked vector",
    },
    derived=_first_tail,
)


def _named_accesses(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """`load of arg0_1[2*x0], stride 2`."""
    columns = ("node_operations", "buffers", "indices", "strides", "causes")
    rows = [*zip(*(operands.get(column, ()) for column in columns), strict=False)]
    listed = [
        f"{operation} of {buffer}[{index}]{f', stride {stride}' if stride else ''}"
        if buffer
        else f"index {index}"
        for operation, buffer, index, stride, _ in rows
    ]
    more = operands.get("by_lane", 0) + operands.get("transposed", 0) - len(listed)
    return {"accesses": "; ".join([*listed, *([f"{more} more"] if more > 0 else [])])} if listed else {}


ACCESS_WORDS = KindWords(
    outcomes={
        "contiguous": "{subject} {n:?moves/move} whole vectors",
        "lane-by-lane": "{by_lane:# access/accesses} of {subject} {by_lane:?is/are} done lane by lane",
        "transposed": "{transposed:# access/accesses} of {subject} {transposed:?is/are} transposed",
    },
    causes={
        "contiguous-accesses": CauseWords(
            "along {loops} each access has stride 1, or is one value for all lanes", "contiguous"
        ),
        "transposed-access": CauseWords("[{accesses}, ]by tiles of {factor} x {factor}", "transposed tiles"),
        "constant-stride": CauseWords("{accesses} along {loops}", "{by_lane} lane by lane, strided"),
        "varying-stride": CauseWords(
            "{accesses}: along {loops} its stride is not one number",
            "{by_lane} lane by lane, no constant stride",
        ),
        "indirect-access": CauseWords(
            "{accesses}: the index is itself a value of each lane", "{by_lane} lane by lane, indirect"
        ),
        "atomic-access": CauseWords(
            "{accesses}: threads add to the same elements, so each lane is an atomic addition",
            "{by_lane} lane by lane, atomic",
        ),
    },
    changes={
        **_CONTIGUOUS,
        "cpp.threads": "one thread needs no atomic additions; every other kernel then has one thread, too",
    },
    derived=_named_accesses,
)
