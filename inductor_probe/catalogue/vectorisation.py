"""Vectors of C++ loop nests: torch/_inductor/codegen/cpp.py, `TilingSelect`, `CppVecKernel`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, Turn, alike
from inductor_probe.catalogue.templates import counted, joined
from inductor_probe.model.decision import Decision

_ACCESSES = {
    "loads": "load",
    "stores": "store",
    "index_exprs": "index expression",
    "value_exprs": "value expression",
}
_INDIRECT = re.compile(r"\b(indirect|tmp)\d+")
"""What was loaded or computed before, in an index."""


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


def _reads_strided(decision: Decision) -> bool:
    """Whether a named load is strided: a copy makes that contiguous, no reversed or indirect one."""
    return any(
        operation == "load" and stride != "-1" and not _INDIRECT.search(index)
        for operation, index, stride in _rows(
            dict(decision.operands), "node_operations", "indices", "strides"
        )
    )


_USES = "[ (contiguous accesses: {uses})]"
_COUNTS = "[; in vectors, that is {fill}][; {counted} non-contiguous]"
_SHORT = "[no vector is full along {short}, so that all is a tail; ]"
_TAIL = "{left_over} are left"

_WITHOUT_HEURISTICS = By(
    "cpp.enable_tiling_heuristics",
    "False",
    "vectorises wherever it can, without these limits; time it: it may be slower",
)
_CONTIGUOUS = Source(
    "contiguous-operand",
    "let operands be contiguous along one loop before (`contiguous()`, another memory format or order of "
    "dimensions); that costs a copy where nothing else makes it so",
    applies=_reads_strided,
)
_LONGER = Source(
    "longer-range", "let a longer dimension be the loop that is vectorised", applies="longer-loop"
)

_ROWS = "nodes node_operations buffers indices strides"
_NEST = "all_loops all_ranges contiguous constant_stride other_stride"
_VECTORS = "factor loops ranges isa bit_width dtypes vectors"
_TAILS = "factor loops ranges full_vectors tails"

_CODEGEN_FUNCTIONS = "codegen/cpp.py:CppKernelProxy.codegen_functions"
_SELECT_TILING = "codegen/cpp.py:TilingSelect.select_tiling"
_SELECT_TILING_INDICES = "codegen/cpp.py:TilingSelect._select_tiling_indices"
_LOAD_OR_STORE_NON_CONTIGUOUS = "codegen/cpp.py:CppVecKernel._load_or_store_non_contiguous"

OPERANDS = (
    Operand("loop", "text", "the loop that torch would vectorise"),
    Operand("range", "size", "of that loop", "steps"),
    Operand("range_limit", "number", "torch compares a range with it", "steps"),
    Operand("loop_cause", "text", "why it is that loop, one of the causes of `vectorised`"),
    Operand("operations", "int", "of the loop body", "operations"),
    Operand("operations_limit", "number", "fewer are not worth a vector of a short loop", "operations"),
    Operand("factor", "int", "elements that are computed at once", "elements"),
    Operand("loops", "names", "that are vectorised"),
    Operand("ranges", "names", "their sizes"),
    Operand("isa", "text", "the vector ISA"),
    Operand("bit_width", "int", "of its vectors", "bits"),
    Operand("dtypes", "names", "of the values; where a dtype is the cause, those without vectors"),
    Operand("vectors", "names", "for each dtype, how many vectors of the machine `factor` elements fill"),
    Operand("simdlen", "text", "the setting `cpp.simdlen`"),
    Operand("non_contiguous", "int", "accesses and expressions that torch counts as non-contiguous",
        "operations"),
    Operand("count_limit", "number", "torch stops at as many of them", "operations"),
    Operand("share", "number", "of them in all operations"),
    Operand("share_limit", "number", "torch compares that share with it"),
    *alike("loads stores index_exprs value_exprs", "int", "among the non-contiguous ones", "operations"),
    Operand("nodes", "names", "of the first accesses or values, a row each: the node"),
    Operand("node_operations", "names", "of each row what it does"),
    Operand("buffers", "names", "of each row what it reads or writes"),
    Operand("indices", "names", "of each row its index"),
    Operand("strides", "names", "of each row the stride along the vectorised loop"),
    Operand("causes", "names", "of each row its cause"),
    Operand("contiguous_nodes", "names", "nodes of the nest without any non-contiguous access"),
    Operand("all_loops", "names", "of the nest, a row each"),
    Operand("all_ranges", "names", "of each row its size"),
    Operand("contiguous", "names", "of each row how many accesses have stride 1 along it"),
    Operand("constant_stride", "names", "of each row whether some access has another constant stride"),
    Operand("other_stride", "names", "of each row whether some access has a stride that is not one number"),
    Operand("full_vectors", "names", "of each vectorised loop"),
    Operand("tails", "names", "of each vectorised loop the elements that are left"),
    Operand("masks", "int", "of the loop body", "operations"),
    Operand("weighed_tail", "number", "twice what is left, as torch compares it", "elements"),
    Operand("tail_limit", "number", "torch compares that with it", "elements"),
    Operand("by_lane", "int", "accesses that are a loop over the lanes", "accesses"),
    Operand("transposed", "int", "accesses by transposed tiles", "accesses"),
)  # fmt: skip

OUTCOMES = (
    Outcome("scalar", "{subject} {n:?is/are} scalar", "missed"),
    Outcome("vectorised", "{subject} {n:?is/are} vectorised along {steps}, {factor} elements at a time",
        "passed"),
    Outcome("underfilled", "{subject} {n:?is/are} vectorised, but no {whole} is full", "missed"),
    Outcome("half-width", "{subject} {n:?computes/compute} {factor} elements at once, half of what fits",
        "missed"),
    Outcome("masked-tail", "the tail of {subject} is vectorised with a mask"),
    Outcome("scalar-tail", "the tail of {subject} is scalar"),
    Outcome("lane-by-lane", "{by_lane:# access/accesses} of {subject} {by_lane:?is/are} done lane by lane",
        "missed"),
    Outcome("transposed", "{transposed:# access/accesses} of {subject} {transposed:?is/are} transposed"),
)  # fmt: skip

CAUSES = (
    Cause("no-vector-isa", "scalar", _CODEGEN_FUNCTIONS, "simdlen",
        "inductor knows no vector ISA here, or cpp.simdlen rules out those of the machine", "no vector ISA",
        changes=(By("cpp.simdlen", "None", "lets inductor choose the widest vectors of the machine",
        is_default=True),), example="values + 1, values: float32 (256,), with cpp.simdlen = 1"),
    Cause("no-loops", "scalar", _CODEGEN_FUNCTIONS, "",
        "a single element is computed, so vectors were not considered", "no loop", remark="analysis",
        outcome_words={"scalar": "{subject} {n:?has/have} no loop"},
        example="values + 1, values: float32 ()"),
    Cause("dtype-not-vectorisable", "scalar", _SELECT_TILING, "dtypes nodes node_operations",
        "inductor has no vectors of {dtypes}, and one such value makes the entire loop nest scalar",
        "no vectors of {dtypes}", changes=(Source("vectorisable-dtype",
        "compute in another dtype: convert {dtypes} before, and back behind it"),),
        example="values + 1, values: int16 (256,)"),
    Cause("non-contiguous-accesses", "scalar", _SELECT_TILING,
        f"loop range loop_cause operations non_contiguous count_limit share share_limit loads stores "
        f"index_exprs value_exprs contiguous_nodes {_ROWS} {_NEST}",
        "along {loop}, {non_contiguous}[ of its {operations:# operation}] {non_contiguous:?is/are} "
        "non-contiguous[ ({kinds})][: {percent}, where torch stops at {share_limit:.0%} (or at "
        "{count_limit} of them)][: torch stops at {most}][; the first is {first_access}][; all of "
        "{contiguous_nodes} is contiguous]", "non-contiguous {non_contiguous}[ of {operations:# operation}]",
        changes=(_WITHOUT_HEURISTICS, _CONTIGUOUS, Turn("vectorise")),
        example="image.flip(-1), image: uint8 (1, 3, 64, 64)"),
    Cause("short-inner-range", "scalar", _SELECT_TILING,
        f"loop range range_limit loop_cause operations operations_limit factor {_NEST}",
        "its loop {loop} has {range} steps, fewer than {range_limit:g} ({part} of a vector of {factor}), "
        "and {operations:# operation} {operations:?is/are} fewer than the {operations_limit} that would "
        "be worth it", "inner range {range} < {factor}/{parts} with {operations:# operation}",
        changes=(_WITHOUT_HEURISTICS, Source("longer-inner-range",
        "an innermost loop of {range_limit:g} steps or more passes this limit (another memory format or "
        "order of dimensions); the limit on non-contiguous accesses then applies", applies="longer-loop"),
        Turn("vectorise")), example="image.flip(-1), image: bfloat16 (1, 3, 64, 64) channels-last"),
    Cause("contiguous-only-loop", "vectorised", _SELECT_TILING_INDICES,
        f"operations non_contiguous {_NEST} {_VECTORS}",
        f"it is contiguous wherever an access depends on it{_USES}{_COUNTS}",
        "along {steps} by {factor}, nowhere strided", test="contig_only",
        example="values + 1, values: float32 (256,)"),
    Cause("two-contiguous-loops", "vectorised", _SELECT_TILING_INDICES, f"{_NEST} {_VECTORS}",
        f"both are contiguous in some accesses, and strided in others{_USES}, so tiles of "
        "{factor} x {factor} are transposed[; in vectors, that is {fill}]",
        "{factor} x {factor} tiles along {loops}", test="len(contig_vars_sorted) == ? and ?",
        example="values + values.t(), values: float32 (64, 64)"),
    Cause("most-contiguous-loop", "vectorised", _SELECT_TILING_INDICES,
        f"operations non_contiguous {_NEST} {_VECTORS}",
        f"most accesses are contiguous along it, others are strided{_USES}{_COUNTS}",
        "along {steps} by {factor}, contiguous most often",
        example="values + values.permute(1, 2, 0) + values.permute(2, 0, 1), with "
        "cpp.enable_tiling_heuristics = False"),
    Cause("no-contiguous-loop", "vectorised", _SELECT_TILING_INDICES, f"{_NEST} {_VECTORS}",
        f"no access is contiguous along any loop, so torch takes the last one{_COUNTS}",
        "along {steps} by {factor}, no contiguous loop", test="len(contig_vars) == ?",
        example="values[::2].sum(), values: float32 (4096,), with cpp.enable_tiling_heuristics = False"),
    Cause("range-below-vector", "underfilled", _CODEGEN_FUNCTIONS,
        f"operations non_contiguous full_vectors tails {_NEST} {_VECTORS}",
        "along {short_loop} only {short_left} of {factor} {short_unit} are filled, by a mask",
        "{short_left} of {factor} {short_unit} filled", changes=(_LONGER,),
        example="values + 1, values: float32 (6,)"),
    Cause("short-low-precision-range", "half-width", _SELECT_TILING,
        "range_limit factor ranges isa bit_width",
        "a vectorised loop has fewer steps ({ranges}) than a vector of 16-bit floats has lanes "
        "({range_limit})", "range {ranges} < {range_limit} lanes", changes=(_LONGER,),
        example="values + 1, values: bfloat16 (12,)"),
    Cause("partial-vector", "masked-tail", _CODEGEN_FUNCTIONS, _TAILS, _TAIL,
        "{left} of {factor} {unit} in the tail", example="values + 1, values: float32 (258,)"),
    Cause("tail-not-worthwhile", "scalar scalar-tail", _CODEGEN_FUNCTIONS,
        f"operations non_contiguous share share_limit masks weighed_tail tail_limit {_TAILS}",
        f"{_SHORT}{{left}} of {{factor}} lanes of {{tail_loop}} are left (torch compares "
        "{weighed_tail} with {tail_limit}), and {masks:# mask} and "
        "{non_contiguous:# non-contiguous access/non-contiguous accesses} are {percent} of "
        "{operations:# operation}, above {share_limit:.0%}", "tail {left} of {factor}, {percent} masks",
        example="torch.where(values > 0, values, values * 2), values: float32 (4,)"),
    Cause("tail-vectorisation-off", "scalar-tail scalar", _CODEGEN_FUNCTIONS, _TAILS,
        f"{_SHORT}cpp.enable_loop_tail_vec is off, and {_TAIL}", "{left} steps, setting off",
        remark="missed", changes=(By("cpp.enable_loop_tail_vec", "True",
        "computes the tail with a masked vector", is_default=True),),
        example="values + 1, values: float32 (6,), with cpp.enable_loop_tail_vec = False"),
    Cause("transposed-access", "transposed",
        "codegen/cpp.py:CppTile2DKernel.gen_transposed_tile_load_store",
        f"factor loops causes by_lane transposed {_ROWS}", "[{accesses}, ]by tiles of {factor} x {factor}",
        "transposed tiles", example="values + values.t(), values: float32 (64, 64)"),
    Cause("constant-stride", "lane-by-lane", _LOAD_OR_STORE_NON_CONTIGUOUS,
        f"factor loops causes by_lane transposed {_ROWS}", "{accesses} along {loops}",
        "{by_lane:# access/accesses}, strided", changes=(_CONTIGUOUS,), example="what reads with stride 2"),
    Cause("varying-stride", "lane-by-lane", _LOAD_OR_STORE_NON_CONTIGUOUS,
        f"factor loops causes by_lane transposed {_ROWS}",
        "{accesses}: along {loops} its stride is not one number",
        "{by_lane:# access/accesses}, no constant stride", changes=(_CONTIGUOUS,),
        example="one loop that reads a matrix by its columns: the index is divided by their length"),
    Cause("indirect-access", "lane-by-lane", _LOAD_OR_STORE_NON_CONTIGUOUS,
        f"factor loops causes by_lane transposed {_ROWS}",
        "{accesses}: the index is itself a value of each lane", "{by_lane:# access/accesses}, indirect",
        example="what reads elements that another tensor chooses"),
    Cause("atomic-access", "lane-by-lane", "codegen/cpp.py:CppVecKernel.store",
        f"factor loops causes by_lane transposed {_ROWS}",
        "{accesses}: threads add to the same elements, so each lane is an atomic addition",
        "{by_lane:# access/accesses}, atomic", changes=(By("cpp.threads", "1",
        "one thread needs no atomic additions; every other kernel then has one thread, too"),),
        example="table.index_put((index,), table, accumulate=True), with cpp.threads = 2"),
)  # fmt: skip

KIND = Kind(
    "vectorisation", "whether and how the loop nest of a C++ kernel is vectorised",
    OUTCOMES, OPERANDS, CAUSES, derived=_derived,
    derives="kinds counted uses whole steps fill parts part tail_loop full left left_over unit short_loop "
    "short_left short_unit short percent most accesses first_access",
)  # fmt: skip
