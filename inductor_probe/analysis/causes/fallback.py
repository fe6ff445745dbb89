"""Calls of torch's own kernels: what turns them into generated code (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source

RULES = Rules(
    kinds={"extern": "missed"},
    changes={
        "unsupported-type": (Source("compiled-type"),),
        "no-lowering": (Source("lowering-or-decomposition", safe=True),),
        "registered-fallback": (Source("other-operators"),),
        "no-backend-feature": (Source("other-operators"),),
        "scatter-reduction": (Source("scatter-sum"),),
        "scatter-sum-threads": (By("cpp.fallback_scatter_reduce_sum", "False", safe=True),),
        "atomic-add-dtype": (Source("atomic-dtype"),),
        "boolean-index": (Source("integer-index", safe=True),),
        "deterministic-algorithms": (Source("no-deterministic-algorithms", safe=False),),
        "fallback-random": (By("fallback_random", "False", is_default=True, safe=False),),
        "in-lowering": (Source("read-the-lowering"),),
    },
)
