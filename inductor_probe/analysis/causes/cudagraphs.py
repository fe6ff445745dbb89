"""CUDA graphs: what lets them replay a graph (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision

_DYNAMIC = "dynamic shape ops"


def _is_symbolic(decision: Decision, _: CompiledGraph) -> bool:
    reasons = decision.operand("reasons")
    return isinstance(reasons, tuple) and _DYNAMIC in reasons


def _is_not_symbolic(decision: Decision, _: CompiledGraph) -> bool:
    reasons = decision.operand("reasons")
    return not isinstance(reasons, tuple) or set(reasons) != {_DYNAMIC}


_SYMBOLIC = By(
    "triton.cudagraph_skip_dynamic_graphs", "False", is_default=True, safe=True, applies=_is_symbolic
)
_PARTITION = By("graph_partition", "True", safe=True)
_OFF = By("triton.cudagraphs", "False", safe=True)

RULES = Rules(
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
        "moving-inputs": (Source("static-input", safe=True), Source("new-value")),
        "cudagraphs-off": (By("triton.cudagraphs", "True", safe=True),),
        "cpu-device": (Source("to-gpu"), _PARTITION, _OFF),
        "no-gpu-device": (_OFF,),
        "incompatible-operator": (_PARTITION, Source("other-operator")),
        "incompatible-lowering": (Source("other-operator"),),
        "dynamic-shapes": (
            _PARTITION,
            By("triton.cudagraph_skip_dynamic_graphs", "False", is_default=True, safe=True),
        ),
        "mutated-inputs": (By("triton.cudagraph_support_input_mutation", "True", safe=True),),
    },
)
