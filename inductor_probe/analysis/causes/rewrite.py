"""Rewrites of the FX graph: what leaves them out (shown in `tests/proving_ground`). None is a missed one."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _is_patterns(decision: Decision, _: CompiledGraph) -> bool:
    """Whether `config.pattern_matcher` turns the pass on, and `disabled_passes` leaves it out."""
    return str(decision.operand("pass")).startswith("pass_pattern_")


def _is_random(decision: Decision, _: CompiledGraph) -> bool:
    return str(decision.operand("pass")).startswith("fuse_seed") or decision.operand("pattern") == _RANDOM


def _pass(decision: Decision) -> str:
    return repr(decision.operand("pass"))


_RANDOM = "replace_random"
_EAGER_RANDOM = By("fallback_random", "True", safe=False, applies=_is_random)
_PAD = By("force_shape_pad", "True", safe=True)
_KEEP_CONSTANTS = By("joint_graph_constant_folding", "False", safe=True)

RULES = Rules(
    kinds={
        **dict.fromkeys(("replaced", "removed", "folded", "in-place"), "passed"),
        "scatter-fused": "analysis",
        "padding-slower": "passed",
        "copied": "missed",
    },
    changes={
        "pattern": (
            By("pattern_matcher", "False", safe=True, applies=_is_patterns),
            By("disabled_passes", _pass, safe=True, applies=_is_patterns),
            _EAGER_RANDOM,
        ),
        "check-refused": (
            By(
                "enable_linear_binary_folding",
                "True",
                safe=True,
                applies=lambda decision, _: decision.operand("setting_off") is not None,
            ),
        ),
        "shape-padding-off": (By("shape_padding", "True", is_default=True, safe=True),),
        "padding-forced": (By("force_shape_pad", "False", is_default=True, safe=True),),
        "memory-bound": (_PAD,),
        "padding-slower": (_PAD,),
        "times-simulated": (_PAD,),
        "padding-faster": (By("shape_padding", "False", safe=True),),
        "no-op": (By("disabled_passes", _pass, safe=True),),
        "identity": (_KEEP_CONSTANTS,),
        "uniform-value": (_KEEP_CONSTANTS,),
        "pass": (_EAGER_RANDOM,),
        "input-not-mutated": (Source("change-input", safe=False),),
        "view-of-input": (Source("change-input", safe=False),),
        "read-later": (Source("read-before", safe=True),),
    },
)
