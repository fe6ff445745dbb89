"""Freezing: what lets parameters become constants (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source

_OFF = By("freezing", "False", safe=True)

RULES = Rules(
    kinds={"frozen": "passed", "folded": "passed", "not-frozen": "missed", "kept-parameter": "analysis"},
    changes={
        "parameters": (_OFF,),
        "frozen-inputs": (_OFF,),
        "kept-parameter": (Source("own-value"),),
        "no-parameters": (Source("frozen-early", safe=True), Source("own-parameters", safe=True)),
        "gradients-enabled": (Source("no-gradients", safe=True),),
    },
)
