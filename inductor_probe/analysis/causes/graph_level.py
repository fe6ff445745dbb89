"""Rewrites of the FX graph, freezing, CUDA graphs: what turns what is decided of a whole graph.

Each is shown in `tests/proving_ground`. Of rewrites only a copy in place of a write is a missed one.
"""

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
_EAGER_RANDOM = By("fallback_random", "True", differs=True, applies=_is_random)
_PAD = By("force_shape_pad", "True")
_KEEP_CONSTANTS = By("joint_graph_constant_folding", "False")

REWRITE = Rules(
    kinds={
        **dict.fromkeys(("replaced", "removed", "folded", "in-place"), "passed"),
        "scatter-fused": "analysis",
        "padding-slower": "passed",
        "copied": "missed",
    },
    changes={
        "pattern": (
            By("pattern_matcher", "False", applies=_is_patterns),
            By("disabled_passes", _pass, applies=_is_patterns),
            _EAGER_RANDOM,
        ),
        "check-refused": (
            By(
                "enable_linear_binary_folding",
                "True",
                applies=lambda decision, _: decision.operand("setting_off") is not None,
            ),
        ),
        "shape-padding-off": (By("shape_padding", "True", is_default=True),),
        "padding-forced": (By("force_shape_pad", "False", is_default=True),),
        "memory-bound": (_PAD,),
        "padding-slower": (_PAD,),
        "times-simulated": (_PAD,),
        "padding-faster": (By("shape_padding", "False"),),
        "no-op": (By("disabled_passes", _pass),),
        "identity": (_KEEP_CONSTANTS,),
        "uniform-value": (_KEEP_CONSTANTS,),
        "pass": (_EAGER_RANDOM,),
        "input-not-mutated": (Source("change-input", differs=True),),
        "view-of-input": (Source("change-input", differs=True),),
        "read-later": (Source("read-before"),),
    },
)


_FREEZING_OFF = By("freezing", "False", differs=True)

FREEZING = Rules(
    kinds={"frozen": "passed", "folded": "passed", "not-frozen": "missed", "kept-parameter": "analysis"},
    changes={
        "parameters": (_FREEZING_OFF,),
        "frozen-inputs": (_FREEZING_OFF,),
        "kept-parameter": (Source("own-value"),),
        "no-parameters": (Source("frozen-early"), Source("own-parameters")),
        "gradients-enabled": (Source("no-gradients"),),
    },
)


_DYNAMIC = "dynamic shape ops"


def _is_symbolic(decision: Decision, _: CompiledGraph) -> bool:
    reasons = decision.operand("reasons")
    return isinstance(reasons, tuple) and _DYNAMIC in reasons


def _is_not_symbolic(decision: Decision, _: CompiledGraph) -> bool:
    reasons = decision.operand("reasons")
    return not isinstance(reasons, tuple) or set(reasons) != {_DYNAMIC}


_SYMBOLIC = By("triton.cudagraph_skip_dynamic_graphs", "False", is_default=True, applies=_is_symbolic)
_PARTITION = By("graph_partition", "True")
_CUDAGRAPHS_OFF = By("triton.cudagraphs", "False")

CUDAGRAPHS = Rules(
    kinds={
        "captured": "passed",
        "partitioned": "passed",
        "skipped": "missed",
        "cudagraphs-off": "analysis",
        "no-gpu-device": "analysis",
        "at-run-time": "missed",
    },
    changes={
        "partitions": (_SYMBOLIC, Source("without-cut", applies=_is_not_symbolic)),
        "no-partition": (_SYMBOLIC, Source("without-cut", applies=_is_not_symbolic)),
        "moving-inputs": (Source("static-input"), Source("new-value")),
        "cudagraphs-off": (By("triton.cudagraphs", "True"),),
        "cpu-device": (Source("to-gpu"), _PARTITION, _CUDAGRAPHS_OFF),
        "no-gpu-device": (_CUDAGRAPHS_OFF,),
        "incompatible-operator": (_PARTITION, Source("other-operator")),
        "incompatible-lowering": (Source("other-operator"),),
        "dynamic-shapes": (
            _PARTITION,
            By("triton.cudagraph_skip_dynamic_graphs", "False", is_default=True),
        ),
        "mutated-inputs": (By("triton.cudagraph_support_input_mutation", "True"),),
    },
)
