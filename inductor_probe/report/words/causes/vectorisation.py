"""Words for vectorisation of C++ loop nests: torch/_inductor/codegen/cpp.py, `TilingSelect.select_tiling`."""

from __future__ import annotations

from collections.abc import Mapping
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


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    accesses = [counted(operands[name], noun) for name, noun in _ACCESSES.items() if operands.get(name)]
    values: dict[str, Any] = {"accesses": joined(accesses)} if accesses else {}
    if total := operands.get("operations"):  # none is counted without the heuristics
        values["counted"] = f"{operands.get('non_contiguous', 0)} of {counted(total, 'operation')}"
    columns = ("nodes", "node_operations", "buffers", "indices", "strides")
    first = next(zip(*(operands.get(column, ()) for column in columns), strict=False), None)
    return {**values, **(_access(*first) if first else {})}


def _access(node: str, operation: str, buffer: str, index: str, stride: str) -> Mapping[str, Any]:
    """`load of arg0_1[64*x0 - x1 + 63] in op1, stride -1`."""
    memory = f"{operation} of {buffer}[{index}]" if buffer else f"{operation} {index}"
    return {"first_access": f"{memory}{f' in {node}' if node else ''}, stride {stride}"}


WORDS = KindWords(
    outcomes={
        "scalar": "{subject} {n:?is/are} scalar",
        "vectorised": "{subject} {n:?is/are} vectorised",
        ("scalar", "no-loops"): "{subject} {n:?has/have} no loop",
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
            "non-contiguous[ ({accesses})]: {share:.0%}, where torch stops at {share_limit:.0%} "
            "(or at {count_limit} of them)[; the first is {first_access}]"
            "[; all of {contiguous_nodes} is contiguous]",
            "non-contiguous {non_contiguous} of {operations:# operation}",
        ),
        "short-inner-range": CauseWords(
            "its loop {loop} has {range} steps, fewer than {range_limit:g} (a quarter of a vector "
            "of {factor}), and {operations:# operation} {operations:?is/are} fewer than the "
            "{operations_limit} that would be worth it",
            "inner range {range} < {factor}/4 with {operations:# operation}",
        ),
        "one-dimension": CauseWords(
            "along {loop}, {factor} elements at a time[, {range} in all][; {counted} non-contiguous]",
            "along {loop}, {range} by {factor}",
        ),
        "two-dimensions": CauseWords(
            "along {loops} in tiles of {factor} x {factor}, which it transposes",
            "{factor} x {factor} tiles along {loops}",
        ),
    },
    changes={
        "cpp.enable_tiling_heuristics": "vectorises wherever it can, without these limits; time it: "
        "it may be slower",
        "cpp.simdlen": "lets inductor choose the widest vectors of the machine",
        "vectorisable-dtype": "compute in another dtype: convert {dtypes} before, and back behind it",
        "contiguous-operand": "let operands be contiguous along {loop} before (`contiguous()`, or another "
        "memory format); that costs a copy where nothing else makes it so",
        "longer-inner-range": "an innermost loop of {range_limit:g} steps or more passes this limit (another "
        "memory format or order of dimensions); the limit on non-contiguous accesses then applies",
    },
    derived=_derived,
)
