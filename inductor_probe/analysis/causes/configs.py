"""Configs of Triton kernels: what turns how many there are (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules

_ALL = By("max_autotune_pointwise", "True", safe=True)

RULES = Rules(
    changes={
        "pointwise-autotuning": (By("triton.autotune_pointwise", "False", safe=True),),
        "pointwise-autotuning-off": (
            By("triton.autotune_pointwise", "True", is_default=True, safe=True),
            _ALL,
        ),
        "one-input-one-output": (_ALL,),
        "three-loops": (_ALL,),
        "known-hint": (_ALL,),
        "foreach-warps": (_ALL,),
        "max-autotune": (
            By("max_autotune_pointwise", "False", is_default=True, safe=True),
            By("max_autotune", "False", is_default=True, safe=True),
        ),
        "deterministic": (By("deterministic", "False", is_default=True, safe=True),),
        "combo-kernel": (By("combo_kernels", "False", is_default=True, safe=True),),
    },
)
