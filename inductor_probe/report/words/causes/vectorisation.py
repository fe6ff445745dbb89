"""Words for vectorisation of C++ loop nests: torch/_inductor/codegen/cpp.py, `TilingSelect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inductor_probe.report.units import counted
from inductor_probe.report.words.causes.rows import CauseWords, KindWords
from inductor_probe.report.words.templates import joined

_ACCESSES = {
    "loads": "load",
    "stores": "store",
    "index_exprs": "index expression",
    "value_exprs": "value expression",
}


def _rows(operands: Mapping[str, Any], *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table whose columns are operands; none where one of them is missing."""
    return [*zip(*(operands.get(column, ()) for column in columns), strict=False)]


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(_texts(operands))


def _texts(operands: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kinds = [counted(operands[name], noun) for name, noun in _ACCESSES.items() if operands.get(name)]
    if kinds:
        yield "kinds", joined(kinds)
    if total := operands.get("operations"):  # none is counted without the heuristics
        yield "counted", f"{operands.get('non_contiguous', 0)} of {counted(total, 'operation')}"
    uses = _rows(operands, "all_loops", "all_ranges", "contiguous", "constant_stride", "other_stride")
    if len(uses) > 1:
        yield (
            "uses",
            "; ".join(
                f"{loop} ({size}) in {count}{', elsewhere strided' if 'true' in strided else ''}"
                for loop, size, count, *strided in uses
            ),
        )
    if loops := _rows(operands, "loops", "ranges"):
        yield "whole", "tile" if len(loops) > 1 else "vector"
        yield "steps", ", ".join(f"{loop} ({size})" for loop, size in loops)
    if fills := _rows(operands, "dtypes", "vectors"):
        yield "fill", joined(f"{vectors} of {dtype}" for dtype, vectors in fills)
    if (limit := operands.get("range_limit")) and (factor := operands.get("factor")):
        parts = f"{factor / limit:g}"
        yield "parts", parts
        yield "part", {"2": "half", "4": "a quarter"}.get(parts, f"1/{parts}")
    tails = [row for row in _rows(operands, "loops", "full_vectors", "tails") if row[2] != "0"]
    if tails:
        yield from zip(("tail_loop", "full", "left"), tails[-1], strict=True)
        # Of a tile the lanes lie along the inner loop, and the outer one is its rows.
        rows = operands["loops"][0] if len(operands["loops"]) > 1 else None
        units = [("rows of tiles", "tiles") if loop == rows else ("lanes", "vectors") for loop, *_ in tails]
        counts = [
            f"{left} of {operands.get('factor')} {unit} along {loop} (behind {full} full {whole})"
            for (unit, whole), (loop, full, left) in zip(units, tails, strict=True)
        ]
        yield "left_over", joined(counts)
        yield "unit", units[-1][0]
        # What keeps a vector or a tile from being full: of 8 x 324 the 8 rows, though 324 has a tail, too.
        short_of = [(row, unit) for row, (unit, _) in zip(tails, units, strict=True) if row[1] == "0"]
        for (loop, _, left), unit in short_of[-1:]:
            yield from (("short_loop", loop), ("short_left", left), ("short_unit", unit))
    if short := [f"{loop} ({left})" for loop, full, left in tails if full == "0"]:
        yield "short", joined(short)
    if share := operands.get("share"):
        yield "percent", f"{share * 100:.3g}%"
    elif most := operands.get("count_limit"):  # which is compared first: then it was enough
        yield "most", f"{most}"
    named = [_access(*row) for row in _rows(operands, "node_operations", "buffers", "indices", "strides")]
    if named:
        more = operands.get("by_lane", 0) + operands.get("transposed", 0) - len(named)
        yield "accesses", "; ".join([*named, *([f"{more} more"] if more > 0 else [])])
        node = operands.get("nodes", [""])[0]
        yield "first_access", f"{named[0]}{f' in {node}' if node else ''}"


def _access(operation: str, buffer: str, index: str, stride: str) -> str:
    """`load of arg0_1[64*x0 - x1 + 63], stride -1`."""
    memory = f"{operation} of {buffer}[{index}]" if buffer else f"{operation} {index}"
    return f"{memory}{f', stride {stride}' if stride else ''}"


_USES = "[ (contiguous accesses: {uses})]"
_COUNTS = "[; in vectors, that is {fill}][; {counted} non-contiguous]"
_SHORT = "[no vector is full along {short}, so that all is a tail; ]"
_TAIL = "{left_over} are left"

WORDS = KindWords(
    outcomes={
        "scalar": "{subject} {n:?is/are} scalar",
        ("scalar", "no-loops"): "{subject} {n:?has/have} no loop",
        "vectorised": "{subject} {n:?is/are} vectorised along {steps}, {factor} elements at a time",
        "underfilled": "{subject} {n:?is/are} vectorised, but no {whole} is full",
        "half-width": "{subject} {n:?computes/compute} {factor} elements at once, half of what fits",
        "masked-tail": "the tail of {subject} is vectorised with a mask",
        "scalar-tail": "the tail of {subject} is scalar",
        "lane-by-lane": "{by_lane:# access/accesses} of {subject} {by_lane:?is/are} done lane by lane",
        "transposed": "{transposed:# access/accesses} of {subject} {transposed:?is/are} transposed",
    },
    causes={
        "no-vector-isa": CauseWords(
            "inductor knows no vector ISA here, or cpp.simdlen rules out those of the machine",
            "no vector ISA",
        ),
        "no-loops": CauseWords("a single element is computed, so vectors were not considered", "no loop"),
        "dtype-not-vectorisable": CauseWords(
            "inductor has no vectors of {dtypes}, and one such value makes the entire loop nest scalar",
            "no vectors of {dtypes}",
        ),
        "non-contiguous-accesses": CauseWords(
            "along {loop}, {non_contiguous} of its {operations:# operation} {non_contiguous:?is/are} "
            "non-contiguous[ ({kinds})][: {percent}, where torch stops at {share_limit:.0%} "
            "(or at {count_limit} of them)][: torch stops at {most}][; the first is {first_access}]"
            "[; all of {contiguous_nodes} is contiguous]",
            "non-contiguous {non_contiguous} of {operations:# operation}",
        ),
        "short-inner-range": CauseWords(
            "its loop {loop} has {range} steps, fewer than {range_limit:g} ({part} of a vector "
            "of {factor}), and {operations:# operation} {operations:?is/are} fewer than the "
            "{operations_limit} that would be worth it",
            "inner range {range} < {factor}/{parts} with {operations:# operation}",
        ),
        "contiguous-only-loop": CauseWords(
            f"it is contiguous wherever an access depends on it{_USES}{_COUNTS}",
            "along {steps} by {factor}, nowhere strided",
        ),
        "two-contiguous-loops": CauseWords(
            f"both are contiguous in some accesses, and strided in others{_USES}, so tiles of "
            "{factor} x {factor} are transposed[; in vectors, that is {fill}]",
            "{factor} x {factor} tiles along {loops}",
        ),
        "most-contiguous-loop": CauseWords(
            f"most accesses are contiguous along it, others are strided{_USES}{_COUNTS}",
            "along {steps} by {factor}, contiguous most often",
        ),
        "no-contiguous-loop": CauseWords(
            f"no access is contiguous along any loop, so torch takes the last one{_COUNTS}",
            "along {steps} by {factor}, no contiguous loop",
        ),
        "range-below-vector": CauseWords(
            "along {short_loop} only {short_left} of {factor} {short_unit} are filled, by a mask",
            "{short_left} of {factor} {short_unit} filled",
        ),
        "short-low-precision-range": CauseWords(
            "a vectorised loop has fewer steps ({ranges}) than a vector of 16-bit floats has lanes "
            "({range_limit})",
            "range {ranges} < {range_limit} lanes",
        ),
        "partial-vector": CauseWords(_TAIL, "{left} of {factor} {unit} in the tail"),
        "tail-not-worthwhile": CauseWords(
            f"{_SHORT}{{left}} of {{factor}} lanes of {{tail_loop}} are left (torch compares "
            "{weighed_tail} with {tail_limit}), and {masks:# mask} and "
            "{non_contiguous:# non-contiguous access/non-contiguous accesses} are {percent} of "
            "{operations:# operation}, above {share_limit:.0%}",
            "tail {left} of {factor}, {percent} masks",
        ),
        "tail-vectorisation-off": CauseWords(
            f"{_SHORT}cpp.enable_loop_tail_vec is off, and {_TAIL}", "{left} steps, setting off"
        ),
        "transposed-access": CauseWords("[{accesses}, ]by tiles of {factor} x {factor}", "transposed tiles"),
        "constant-stride": CauseWords("{accesses} along {loops}", "{by_lane:# access/accesses}, strided"),
        "varying-stride": CauseWords(
            "{accesses}: along {loops} its stride is not one number",
            "{by_lane:# access/accesses}, no constant stride",
        ),
        "indirect-access": CauseWords(
            "{accesses}: the index is itself a value of each lane", "{by_lane:# access/accesses}, indirect"
        ),
        "atomic-access": CauseWords(
            "{accesses}: threads add to the same elements, so each lane is an atomic addition",
            "{by_lane:# access/accesses}, atomic",
        ),
    },
    changes={
        "cpp.enable_tiling_heuristics": "vectorises wherever it can, without these limits; time it: "
        "it may be slower",
        "cpp.simdlen": "lets inductor choose the widest vectors of the machine",
        "cpp.enable_loop_tail_vec": "computes the tail with a masked vector",
        "cpp.threads": "one thread needs no atomic additions; every other kernel then has one thread, too",
        "vectorisable-dtype": "compute in another dtype: convert {dtypes} before, and back behind it",
        "contiguous-operand": "let operands be contiguous along one loop before (`contiguous()`, another "
        "memory format or order of dimensions); that costs a copy where nothing else makes it so",
        "longer-inner-range": "an innermost loop of {range_limit:g} steps or more passes this limit (another "
        "memory format or order of dimensions); the limit on non-contiguous accesses then applies",
        "longer-range": "let a longer dimension be the loop that is vectorised",
    },
    derived=_derived,
)
