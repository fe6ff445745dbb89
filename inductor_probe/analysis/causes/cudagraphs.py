"""CUDA graphs: what lets them replay a graph (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source

_PARTITION = By("graph_partition", "True", safe=True)
_OFF = By("triton.cudagraphs", "False", safe=True)

RULES = Rules(
    kinds={"captured": "passed", "partitioned": "passed", "skipped": "missed", "cudagraphs-off": "analysis"},
    changes={
        "partitions": (Source("without-cut"),),
        "no-partition": (Source("without-cut"),),
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
