"""Configs of Triton kernels: torch/_inductor/runtime/triton_heuristics.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome


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


_SOME = "offers pointwise kernels several configs, or one; time it"
_ALL_CONFIGS = "offers all configs, or those of the heuristic; time it"
_ALL = By("max_autotune_pointwise", "True", _ALL_CONFIGS)

_POINTWISE = "runtime/triton_heuristics.py:pointwise"
_REDUCTION = "runtime/triton_heuristics.py:reduction"
_PERSISTENT_REDUCTION = "runtime/triton_heuristics.py:persistent_reduction"

OPERANDS = (
    Operand("kernel", "text", "its name"),
    Operand("heuristic", "text", "the function that offered them"),
    Operand("configs", "names",
        "each with its block sizes, warps and stages; of a kernel that a worker compiled, those that "
        "could be compiled"),
    Operand("size_hints", "names", "powers of two"),
    Operand("numels", "names", "that these are rounded up from"),
    Operand("num_load", "int", "loads of the kernel"),
    Operand("num_reduction", "int", "reductions of the kernel"),
    Operand("hint", "text", "of its reduction"),
    Operand("parts", "int", "kernels in one"),
    Operand("sizes_of_parts", "names", "size hints of each"),
    Operand("configs_of_parts", "names", "of each"),
)  # fmt: skip

OUTCOMES = (
    Outcome("one-config", "{subject} {n:?runs/run} with one config, {configs}[ (size hints {sizes})]"),
    Outcome("several-configs",
        "{subject} {n:?has/have} {count} configs, which are timed at the first call: {configs:3}[ (size "
        "hints {sizes})]"),
)  # fmt: skip

CAUSES = (
    Cause("pointwise-autotuning", "several-configs", _POINTWISE, "",
        "a pointwise kernel is offered some for each shape of its tiles (triton.autotune_pointwise)",
        "autotune_pointwise", changes=(By("triton.autotune_pointwise", "False", _SOME),),
        example="values + 1, values: float32 (600, 1024)"),
    Cause("pointwise-autotuning-off", "one-config", _POINTWISE, "", "triton.autotune_pointwise is off",
        "autotune_pointwise off", changes=(By("triton.autotune_pointwise", "True", _SOME, is_default=True),
        _ALL), example="values + 1, values: float32 (600, 1024), with triton.autotune_pointwise = False"),
    Cause("one-input-one-output", "one-config", _POINTWISE, "",
        "a pointwise kernel of two dimensions with one input and one output has square tiles "
        "(TileHint.SQUARE)", "square tiles", changes=(_ALL,),
        example="values.t().contiguous(), values: float32 (256, 512)"),
    Cause("three-loops", "one-config", _POINTWISE, "", "a pointwise kernel of three dimensions has cubes",
        "cubes of three dimensions", changes=(_ALL,),
        example="values[:, :16, :24] + 1, with triton.prefer_nd_tiling = True, triton.max_tiles = 3"),
    Cause("known-hint", "one-config", _REDUCTION, "", "its reduction hint is {hint}, which has one",
        "hint {hint}", changes=(_ALL,), example="values.sum(-1), values: float32 (64, 4096)"),
    Cause("default-hint", "several-configs", _PERSISTENT_REDUCTION, "",
        "its reduction hint is {hint}, which has none of its own: several are tried", "hint {hint}",
        example="values.sum(0), values: float32 (64, 65536)"),
    Cause("short-rows", "several-configs", _PERSISTENT_REDUCTION, "",
        "its reduction hint is {hint}, and its rows are so short that a tile may hold several",
        "short rows", example="values.sum(-1), values: float32 (1024, 128)"),
    Cause("whole-row-config", "several-configs", _REDUCTION, "",
        "beside the one of its reduction hint {hint} there is one that holds a whole row in a block, "
        "which would be read from memory less often", "a config for whole rows",
        example="values / values.sum(-1, keepdim=True), values: float32 (4096, 4096)"),
    Cause("tiled-reduction", "several-configs", _REDUCTION, "",
        "it reduces, and has several tiles beside the one that it reduces", "tiled reduction",
        example="values.sum(1).t().contiguous(), values: float32 (512, 96, 256)"),
    Cause("deterministic", "one-config", _PERSISTENT_REDUCTION, "",
        "results must not depend on which config is fastest (deterministic), so torch takes one of them",
        "deterministic", changes=(By("deterministic", "False", "lets torch take the config that is fastest",
        is_default=True),), example="values.sum(0), values: float32 (64, 65536), with deterministic = True"),
    Cause("max-autotune", "several-configs", _POINTWISE, "",
        "max_autotune or max_autotune_pointwise asks for all", "max_autotune_pointwise",
        changes=(By("max_autotune_pointwise", "False", _ALL_CONFIGS, is_default=True), By("max_autotune",
        "False", _ALL_CONFIGS, is_default=True)),
        example="values.t().contiguous(), values: float32 (256, 512), with max_autotune_pointwise = True"),
    Cause("one-fits", "one-config", _POINTWISE, "",
        "the others come to the same blocks, or exceed these sizes", "no other fits its sizes",
        example="values + 1, values: float32 (4,)"),
    Cause("template-config", "one-config", "runtime/triton_heuristics.py:template", "",
        "the template was chosen with it", "config of the template",
        example="first @ second, with max_autotune = True, max_autotune_gemm_backends = 'TRITON'"),
    Cause("foreach-warps", "one-config", "runtime/triton_heuristics.py:foreach", "",
        "an operator on lists of tensors has 8 warps a block", "8 warps of a foreach kernel",
        changes=(_ALL,), example="sums of two lists of tensors"),
    Cause("combo-kernel", "several-configs", _POINTWISE, "parts sizes_of_parts configs_of_parts",
        "each of the {parts} kernels in it has blocks of its own (combo_kernel_per_subkernel_blocks)",
        "{parts} kernels in one",
        outcome_words={"several-configs":
        "{subject} {n:?has/have} several configs for each part of {n:?its/their} kernel, which are "
        "timed at the first call: {configs_of_parts:4} (size hints {sizes_of_parts:4})"},
        changes=(By("combo_kernels", "False", "generates a kernel for each of its parts",
        is_default=True),),
        example="(values + 1, others * 2), with combo_kernels = True, combo_kernel_per_subkernel_blocks = "
        "True"),
    Cause("matrix-product", "several-configs", _REDUCTION, "", "it is a matrix product of Triton's own",
        "matrix product", example="first @ second, with triton.native_matmul = True"),
)  # fmt: skip

KIND = Kind(
    "configs", "with how many configs a Triton kernel may run: several are timed when it is first called",
    OUTCOMES, OPERANDS, CAUSES,
    common="kernel heuristic configs size_hints numels num_load num_reduction hint", derived=_derived,
    derives="count sizes",
)  # fmt: skip
