"""Calls of torch's own kernels: what turns them into generated code (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _needs_constant(decision: Decision, _: CompiledGraph) -> bool:
    return decision.operand("constant_weight") is False


def _template_could(decision: Decision, _: CompiledGraph) -> bool:
    return decision.operand("constant_weight") is not False


def _on_gpu(decision: Decision, _: CompiledGraph) -> bool:
    return decision.operand("device") != "cpu"


def _with_backend(decision: Decision) -> str:
    return repr(f"{decision.operand('backends')},{decision.operand('backend')}")


RULES = Rules(
    kinds={
        "extern": "missed",
        "no-template": "analysis",
        "max-autotune-off": "analysis",
        "templates-slower": "passed",
        "times-simulated": "analysis",
    },
    changes={
        "unsupported-type": (Source("compiled-type"),),
        "no-lowering": (Source("lowering-or-decomposition"),),
        "decomposition-declined": (Source("decomposed-type"),),
        "registered-fallback": (Source("other-operators"),),
        "no-backend-feature": (Source("other-operators"),),
        "scatter-reduction": (Source("scatter-sum"),),
        "scatter-sum-threads": (By("cpp.fallback_scatter_reduce_sum", "False"),),
        "atomic-add-dtype": (Source("atomic-dtype"),),
        "boolean-index": (Source("integer-index"),),
        "deterministic-algorithms": (Source("no-deterministic-algorithms", differs=True),),
        "fallback-random": (By("fallback_random", "False", is_default=True, differs=True),),
        "pooling-window": (Source("smaller-window"),),
        "integer-power": (Source("constant-power"),),
        "byte-concatenation": (Source("other-dtype"),),
        "sort-too-long": (By("triton.decompose_sort_ops", "True"),),
        "tuple-scan-split": (Source("shorter-scan"),),
        "sort-decomposition-off": (By("triton.decompose_sort_ops", "True", applies=_on_gpu),),
        "max-autotune-off": (
            By("max_autotune", "True", applies=_template_could),
            Source("constant-weight-and-autotune", applies=_needs_constant),
        ),
        "template-backend-off": (By("max_autotune_gemm_backends", _with_backend, present="backends"),),
        "template-dtype": (Source("template-dtype"),),
        "weight-not-constant": (Source("constant-weight"),),
    },
)
