"""Codes of the causes of decisions about reductions and about Triton kernels: see `model/decision.py`."""

from __future__ import annotations

from typing import Literal, TypeAlias

ReductionCause: TypeAlias = Literal[
    "single-element", "below-unroll-threshold", "sizes-not-known", "single-output", "few-elements",
    "many-outputs",
    "contiguous-reads", "strided-reads", "no-strided-read",
    "persistent-reductions-off", "elements-fit-a-tile", "elements-exceed-a-tile",
    "symbolic-elements",
    "hint-of-its-reductions", "contiguous-nodes", "hints-differ", "non-contiguous-pointwise",
    "coalesced-along-reduction",
    "cpu-backend", "split-reductions-off", "index-reduction", "cooperative-reduction",
    "enough-outputs", "short-reduction", "work-for-processors", "sort", "several-values",
    "ranges-of-its-input", "matrix-product",
    "elements-within-threshold", "elements-above-threshold", "elements-below-minimum", "sum-would-be-split",
    "work-for-blocks", "cooperation-forced", "cooperative-reductions-off", "outputs-above-limit",
    "elements-below-limit",
]  # fmt: skip
"""What decided about a reduction of elements into outputs. About a buffer, when it is made:

- `single-element`, `below-unroll-threshold` (threshold): it becomes pointwise (ir.py, `Reduction.create`).
- What decided its hint (ir.py, `Reduction.num_splits`), with hint and parts: `sizes-not-known`: only the data
  decides how many there are (unbacked symbols), so it is in one part; `single-output`; `few-elements`:
  elements_limit; `many-outputs`: outputs_limit, processors; `contiguous-reads`, `strided-reads`: reads, inner
  (how many of them are contiguous along the reduction), strides (of each read along the reduced dimensions);
  `no-strided-read`: no read depends on the elements; `matrix-product`: Triton's own.
- What decided its parts, beside those that leave the hint DEFAULT: `cpu-backend`, `split-reductions-off`,
  `index-reduction` (argmax, ...), `cooperative-reduction` (elements_limit). Of a reduction along what is
  contiguous, `enough-outputs`: outputs_limit, processors; `short-reduction`: elements_limit; else
  `work-for-processors`: the sizes and processors (choices.py, `reduction_split_factor`).
  `ranges-of-its-input`: as the reduction that it reads.
- Whether a variance takes two passes or one (lowering.py, `use_two_step_variance`): threshold, setting. Of
  float16 and bfloat16 on a GPU also `elements-below-minimum`: minimum; and `sum-would-be-split`: a sum of
  them would be done in parts, so they are read once.
- Whether several blocks scan a row together, by the rules for parts (ir.py, `Scan.create`); `several-values`
  (values): they would, if each element were one value alone.

About the nodes of a Triton kernel: whether one tile holds all elements (limit, hint; choices.py,
`should_use_persistent_reduction`; `sort`: it must), whether its blocks work on a reduction together
(`should_use_cooperative_reduction`: `work-for-blocks`, `elements-below-limit`: elements_limit, which grows
with outputs; `outputs-above-limit`: outputs_limit; `cooperation-forced`; `cooperative-reductions-off`, where
they would), and which hint it is generated with (hints, of its
reductions; simd_kernel_features.py, `get_reduction_hint`). `contiguous-nodes`: INNER, since all that its
reductions read and write is contiguous. `non-contiguous-pointwise`: a pointwise node over all elements is not
contiguous; `coalesced-along-reduction`: score_x, score_r0_ of the tiling.
"""

IndexCause: TypeAlias = Literal[
    "sizes-fit-int32", "numel-exceeds-int32", "buffer-exceeds-int32", "symbolic-size"
]
"""What decided about the index type of a Triton kernel (codegen/simd_kernel_features.py,
`select_index_dtype`): numel (of the kernel, with its reduction), limit, buffers (that are too large; the
largest otherwise), buffer_elements.
"""

TilingCause: TypeAlias = Literal[
    "coalescing", "strides", "one-candidate", "tile-limit", "reductions-not-tiled", "n-d-tiles-preferred",
    "matrix-product", "loops-do-not-divide",
]  # fmt: skip
"""Into which tiles a Triton kernel divides its elements (codegen/simd.py, `get_tiling_and_scores`): tiling.

With candidates (each with its score, the best first), where torch made any:

- `coalescing`: by the bytes whose accesses are contiguous along a loop of the tiling. `strides`: by the loop
  with stride 1 of each access, where that analysis is off or cannot be made. `one-candidate`: no other.
- `loops-do-not-divide`: better, which is scored higher, does not divide the loops of each of nodes.
- `tile-limit`: a better one has more tiles than limit. `reductions-not-tiled`: by `triton.tile_reductions`
  (prefer_nd_tiling: whether that would do anything).
  `n-d-tiles-preferred`: by `triton.prefer_nd_tiling`.
- `matrix-product`: Triton's own has tiles of rows, columns and the sum.
"""

ConfigsCause: TypeAlias = Literal[
    "pointwise-autotuning", "pointwise-autotuning-off", "one-input-one-output", "three-loops",
    "known-hint", "default-hint", "short-rows", "whole-row-config", "tiled-reduction", "deterministic",
    "max-autotune", "one-fits", "template-config", "foreach-warps", "combo-kernel", "matrix-product",
]  # fmt: skip
"""With how many configs a Triton kernel may run (runtime/triton_heuristics.py). Several are timed when the
kernel is first called. All have kernel, heuristic (the function that offered them), configs (each with its
block sizes, warps and stages; of a kernel that a worker compiled, those that could be compiled); most have
size_hints and the numels that these were rounded up from, num_load and num_reduction; of a reduction, hint.

- of `pointwise`: `pointwise-autotuning`: some for each shape of tiles. `pointwise-autotuning-off`: by
  `triton.autotune_pointwise`. `one-input-one-output`: two dimensions, and nothing else (`TileHint.SQUARE`):
  one square tile. `three-loops`: one cube.
- of reductions: `known-hint`: INNER, OUTER, OUTER_TINY have a config each. `default-hint`: all of these, and
  more. `short-rows`: INNER, and a row is so short that one tile may hold several. `whole-row-config`: the
  one of its hint, and one that holds a row in a block. `tiled-reduction`: of several tiles beside the reduced
  one. `deterministic`: one of several, since results must not depend on times.
- `max-autotune`: it asks for all. `one-fits`: the others come to the same blocks, or exceed the sizes.
- `template-config`: the one that the template was chosen with. `foreach-warps`: 8 warps. `combo-kernel`: some
  for each of its parts: parts, sizes_of_parts, configs_of_parts. `matrix-product`:
  those of Triton's own.
"""
