"""Reductions: what turns how they are generated (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _elements(decision: Decision) -> str | None:
    elements = decision.operand("elements")
    return str(elements) if isinstance(elements, int) else None


def _on_gpu(decision: Decision, _: CompiledGraph) -> bool:
    """Return whether anything reads the hint: the C++ backend does not."""
    return decision.operand("device") != "cpu"


_MORE_ELEMENTS = Source("more-elements", safe=True, applies=_on_gpu)

RULES = Rules(
    kinds={"split": "passed", "persistent": "passed"},
    changes={
        "below-unroll-threshold": (
            By("unroll_reductions_threshold", _elements, present="threshold", safe=True),
        ),
        "strided-reads": (Source("contiguous-along-reduction", safe=True, applies=_on_gpu),),
        "contiguous-reads": (Source("strided-along-reduction", safe=True, applies=_on_gpu),),
        "few-elements": (_MORE_ELEMENTS,),
        "non-contiguous-pointwise": (Source("contiguous-pointwise", safe=True),),
        "persistent-reductions-off": (
            By("triton.persistent_reductions", "True", is_default=True, safe=True),
        ),
        "elements-fit-a-tile": (By("triton.persistent_reductions", "False", safe=True),),
        "elements-exceed-a-tile": (By("triton.multi_kernel", "1", safe=True),),
    },
)
