"""Vectorisation of C++ loop nests: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source

_WITHOUT_HEURISTICS = By("cpp.enable_tiling_heuristics", "False", safe=True)

RULES = Rules(
    kinds={"scalar": "missed", "vectorised": "passed", "no-loops": "analysis"},
    changes={
        "no-vector-isa": (By("cpp.simdlen", "None", is_default=True, safe=True),),
        "dtype-not-vectorisable": (Source("vectorisable-dtype"),),
        "non-contiguous-accesses": (_WITHOUT_HEURISTICS, Source("contiguous-operand", safe=True)),
        "short-inner-range": (_WITHOUT_HEURISTICS, Source("longer-inner-range", safe=True)),
    },
)
