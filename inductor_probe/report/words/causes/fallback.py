"""Words for calls of torch's own kernels: torch/_inductor/graph.py, `GraphLowering.run_node`."""

from __future__ import annotations

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

WORDS = KindWords(
    outcomes={"extern": "{subject} calls torch's own {operator}"},
    causes={
        "unsupported-type": CauseWords(
            "inductor generates no code for a node that takes or makes {types}", "no code for {types}"
        ),
        "no-lowering": CauseWords(
            "inductor has neither a lowering nor a decomposition of the operator", "no lowering of {operator}"
        ),
        "registered-fallback": CauseWords(
            "inductor has no lowering for it, and registers it as an operator that it always calls",
            "registered fallback {operator}",
        ),
        "no-backend-feature": CauseWords(
            "the lowering needs {feature}, which inductor's backend for {device} does not have",
            "no {feature} on {device}",
        ),
        "scatter-reduction": CauseWords(
            "only sums are scattered by generated code, and this reduction is {reduction}",
            "scatter with {reduction}",
        ),
        "scatter-sum-threads": CauseWords(
            "with {threads:# thread}, cpp.fallback_scatter_reduce_sum leaves scattered sums to torch",
            "sum of scattered values by {threads:# thread}",
        ),
        "atomic-add-dtype": CauseWords(
            "equal indices need an atomic addition, which inductor does not generate for {dtype}",
            "no atomic addition of {dtype}",
        ),
        "boolean-index": CauseWords(
            "a mask is among the indices ({dtypes}), and the number of its true elements is not known",
            "indexed by a mask",
        ),
        "deterministic-algorithms": CauseWords(
            "torch was asked for deterministic algorithms (torch.use_deterministic_algorithms)",
            "deterministic algorithms",
        ),
        "fallback-random": CauseWords(
            "fallback_random asks for the random numbers of eager mode", "fallback_random"
        ),
        "in-lowering": CauseWords(
            "the lowering itself calls it ({function}); torch's source at that line says when",
            "called by its lowering",
        ),
    },
    changes={
        "compiled-type": "compute in another dtype, or on real and imaginary parts "
        "(torch.view_as_real) one by one",
        "lowering-or-decomposition": "register a decomposition (torch.library.custom_op: write it in "
        "operators that inductor knows), or a lowering",
        "other-operators": "write it in operators that are compiled, if the sizes allow for it; time it",
        "scatter-sum": "use a sum, where the result allows for it",
        "cpp.fallback_scatter_reduce_sum": "generates atomic additions; time it",
        "atomic-dtype": "scatter float32 or int32 values",
        "integer-index": "give the indices as integers, or use torch.where with the mask",
        "no-deterministic-algorithms": "let torch use algorithms that are not deterministic; sums of floats "
        "then differ from run to run",
        "fallback_random": "generates the random numbers, which are then others than in eager mode",
        "read-the-lowering": "read the lowering there: other sizes, dtypes or devices may be compiled",
    },
)
