"""How vectorised C++ loop nests are made: what is missed, and what turns it."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source

_MASKED_TAILS = By("cpp.enable_loop_tail_vec", "True", is_default=True, safe=True)
_CONTIGUOUS = Source("contiguous-operand", safe=True)

LOOP_RULES = Rules(
    kinds={"no-contiguous-loop": "missed"},
    changes={"no-contiguous-loop": (_CONTIGUOUS,)},
)
WIDTH_RULES = Rules(
    kinds={"half-width": "missed", "low-precision-lanes": "passed"},
    changes={"short-low-precision-range": (Source("longer-range", safe=True),)},
)
TAIL_RULES = Rules(
    kinds={
        "no-tail": "passed",
        "range-below-vector": "missed",
        "tail-vectorisation-off": "missed",
    },
    changes={
        "range-below-vector": (Source("longer-range", safe=True),),
        "tail-vectorisation-off": (_MASKED_TAILS,),
    },
)
ACCESS_RULES = Rules(
    kinds={"contiguous": "passed", "lane-by-lane": "missed"},
    changes={
        "constant-stride": (_CONTIGUOUS,),
        "varying-stride": (_CONTIGUOUS,),
        "atomic-access": (By("cpp.threads", "1", safe=True),),
    },
)
