"""Words for the configs of Triton kernels: torch/_inductor/runtime/triton_heuristics.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how many configs there are, and each size hint with the size that it is rounded up from."""
    hints, numels = operands.get("size_hints", ()), operands.get("numels", ())
    sizes = dict(numel.split("=", 1) for numel in numels)
    rounded = [
        hint if (size := sizes.get(hint.partition("=")[0])) in (None, hint.partition("=")[2])
        else f"{hint} for {size}"
        for hint in hints
    ]  # fmt: skip
    return {"count": len(operands.get("configs", ())), **({"sizes": tuple(rounded)} if rounded else {})}


WORDS = KindWords(
    outcomes={
        "one-config": "{subject} {n:?runs/run} with one config, {configs}[ (size hints {sizes})]",
        "several-configs": "{subject} {n:?has/have} {count} configs, which are timed at the first call: "
        "{configs:3}[ (size hints {sizes})]",
        ("several-configs", "combo-kernel"): "{subject} {n:?has/have} several configs for each part of "
        "{n:?its/their} kernel, which are timed at the first call: {configs_of_parts:4} (size hints "
        "{sizes_of_parts:4})",
    },
    causes={
        "pointwise-autotuning": CauseWords(
            "a pointwise kernel is offered some for each shape of its tiles (triton.autotune_pointwise)",
            "autotune_pointwise",
        ),
        "pointwise-autotuning-off": CauseWords("triton.autotune_pointwise is off", "autotune_pointwise off"),
        "one-input-one-output": CauseWords(
            "a pointwise kernel of two dimensions with one input and one output has square tiles "
            "(TileHint.SQUARE)",
            "square tiles",
        ),
        "three-loops": CauseWords(
            "a pointwise kernel of three dimensions has cubes", "cubes of three dimensions"
        ),
        "known-hint": CauseWords("its reduction hint is {hint}, which has one", "hint {hint}"),
        "default-hint": CauseWords(
            "its reduction hint is {hint}, which has none of its own: several are tried", "hint {hint}"
        ),
        "short-rows": CauseWords(
            "its reduction hint is {hint}, and its rows are so short that a tile may hold several",
            "short rows",
        ),
        "whole-row-config": CauseWords(
            "beside the one of its reduction hint {hint} there is one that holds a whole row in a block, "
            "which would be read from memory less often",
            "a config for whole rows",
        ),
        "tiled-reduction": CauseWords(
            "it reduces, and has several tiles beside the one that it reduces", "tiled reduction"
        ),
        "deterministic": CauseWords(
            "results must not depend on which config is fastest (deterministic), so torch takes one of them",
            "deterministic",
        ),
        "max-autotune": CauseWords(
            "max_autotune or max_autotune_pointwise asks for all", "max_autotune_pointwise"
        ),
        "one-fits": CauseWords(
            "the others come to the same blocks, or exceed these sizes", "no other fits its sizes"
        ),
        "template-config": CauseWords("the template was chosen with it", "config of the template"),
        "foreach-warps": CauseWords(
            "an operator on lists of tensors has 8 warps a block", "8 warps of a foreach kernel"
        ),
        "combo-kernel": CauseWords(
            "each of the {parts} kernels in it has blocks of its own (combo_kernel_per_subkernel_blocks)",
            "{parts} kernels in one",
        ),
        "matrix-product": CauseWords("it is a matrix product of Triton's own", "matrix product"),
    },
    changes={
        "triton.autotune_pointwise": "offers pointwise kernels several configs, or one; time it",
        "max_autotune_pointwise": "offers all configs, or those of the heuristic; time it",
        "max_autotune": "offers all configs, or those of the heuristic; time it",
        "deterministic": "lets torch take the config that is fastest",
        "combo_kernels": "generates a kernel for each of its parts",
    },
    derived=_derived,
)
