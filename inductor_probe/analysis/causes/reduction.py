"""Reductions: what turns how they are generated (shown in `tests/proving_ground`)."""

from __future__ import annotations

from collections.abc import Callable

from inductor_probe.analysis.causes.rules import By, Condition, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _elements(decision: Decision) -> str | None:
    elements = decision.operand("elements")
    return str(elements) if isinstance(elements, int) else None


def _on_gpu(decision: Decision, _: CompiledGraph) -> bool:
    """Return whether anything reads the hint: the C++ backend does not."""
    return decision.operand("device") != "cpu"


def _fits_sixteenfold(decision: Decision, _: CompiledGraph) -> bool:
    """Whether all elements fit the limit of a multi-kernel, which is 16 times that of others."""
    elements, limit = decision.operand("elements"), decision.operand("limit")
    return isinstance(elements, int) and isinstance(limit, int) and elements <= 16 * limit


def _threshold(change: int) -> Callable[[Decision], str | None]:
    """Return what reads the elements as a threshold on the other side of them."""

    def value(decision: Decision) -> str | None:
        elements = decision.operand("elements")
        return str(elements + change) if isinstance(elements, int) else None

    return value


def _compared_with(setting: str) -> Condition:
    return lambda decision, _: decision.operand("setting") == setting


def _two_step(change: int) -> tuple[By, ...]:
    """Return the settings of which one holds the threshold that was compared with."""
    names = ("cpp.use_two_step_variance_threshold", "triton.use_two_step_variance_threshold")
    return tuple(
        By(name, _threshold(change), present="threshold", applies=_compared_with(name)) for name in names
    )


_MORE_ELEMENTS = Source("more-elements", applies=_on_gpu)

RULES = Rules(
    kinds={"split": "passed", "persistent": "passed", "cpu-backend": "passed"},
    changes={
        "below-unroll-threshold": (
            By("unroll_reductions_threshold", _elements, present="threshold"),
        ),
        "strided-reads": (Source("contiguous-along-reduction", applies=_on_gpu),),
        "contiguous-reads": (Source("strided-along-reduction", applies=_on_gpu),),
        "few-elements": (_MORE_ELEMENTS,),
        "split-reductions-off": (By("split_reductions", "True", is_default=True),),
        "work-for-processors": (
            By(
                "split_reductions", "False",
                applies=lambda decision, _: decision.outcome == "split",
            ),
        ),
        "cooperative-reduction": (
            By("triton.cooperative_reductions", "False", is_default=True),
        ),
        "elements-within-threshold": _two_step(-1),
        "elements-above-threshold": _two_step(0),
        "elements-below-minimum": (
            By("triton.use_two_step_variance_min_numel", _elements, present="minimum"),
        ),
        "work-for-blocks": (
            By("triton.cooperative_reductions", "False", is_default=True),
        ),
        "cooperation-forced": (
            By("triton.force_cooperative_reductions", "False", is_default=True),
        ),
        "cooperative-reductions-off": (By("triton.cooperative_reductions", "True"),),
        "outputs-above-limit": (Source("fewer-outputs"),),
        "elements-below-limit": (Source("more-elements"),),
        "symbolic-elements": (Source("known-elements"),),
        "non-contiguous-pointwise": (Source("contiguous-pointwise"),),
        "persistent-reductions-off": (
            By("triton.persistent_reductions", "True", is_default=True),
        ),
        "elements-fit-a-tile": (By("triton.persistent_reductions", "False"),),
        "elements-exceed-a-tile": (By("triton.multi_kernel", "1", applies=_fits_sixteenfold),),
    },
)  # fmt: skip
