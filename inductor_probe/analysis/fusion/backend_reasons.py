"""Reasons of the backends: Triton's, whose kernels have one grid, and CUTLASS'."""

from __future__ import annotations

from inductor_probe.analysis.fusion.reasons import ReasonRow

_ELEMENTS = (
    "elements of the first",
    "elements of the second",
    "reduced elements of the first",
    "reduced elements of the second",
)


_CUTLASS = "The first is a CUTLASS kernel, which takes in only what its epilogue can express. "

BACKEND_REASONS: tuple[ReasonRow, ...] = (
    # Decided by timing; torch logs these in a line of another form.
    ReasonRow(
        "(benchmark) cause %sx slowdown",
        "Torch compiled and timed it: the fused kernel takes that many times as long as the two (inf: no "
        "fused kernel could be built).",
        ("slower by a factor of",),
    ),
    # The Triton backend.
    ReasonRow(
        "numel/rnumel mismatch (reduce) (%s, %s), (%s, %s)",
        "Both are reductions, of different sizes: a kernel has one grid and one reduction loop.",
        _ELEMENTS,
        knobs=("triton.mix_order_reduction", "split_reductions"),
    ),
    ReasonRow(
        "numel/rnumel mismatch (non-reduce) (%s, %s), (%s, %s)",
        "They compute different numbers of elements: a Triton kernel has one grid for all that is in it.",
        _ELEMENTS,
        knobs=("combo_kernels",),
    ),
    ReasonRow(
        "numel/rnumel mismatch prologue mismatch (%s, %s), (%s, %s)",
        "The template has taken in another node that computes an input, of another number of elements.",
        (
            "elements of the first",
            "elements of the prologue in place",
            "reduced elements of the first",
            "reduced elements of the prologue in place",
        ),
    ),
    ReasonRow(
        "tiling mismatch (%s, %s, %s)",
        "Alone, one of them runs best over a grid of two dimensions or more; together they would lose it.",
        ("tiles of the first", "tiles of the second", "tiles of both"),
        knobs=("triton.tiling_prevents_pointwise_fusion",),
    ),
    ReasonRow(
        "invalid tiling for reduction",
        "One is a reduction, and the other is best run over a grid that the reduction cannot have.",
        knobs=("triton.tiling_prevents_reduction_fusion",),
    ),
    ReasonRow(
        "nodes numel/rnumel incompatibility",
        "One is a reduction; the other has as many elements, but its loops cannot be split into those that "
        "are kept and those that are reduced.",
    ),
    ReasonRow(
        "nodes numel incompatibility",
        "One is a reduction, and the other has neither as many elements as it reads nor as it writes.",
    ),
    ReasonRow("Split scan cannot fuse with reductions", "A scan over several blocks takes in no reduction."),
    ReasonRow(
        "invalid loop order and tiling for native matmul",
        "A matmul that inductor generates itself keeps its loop order, and the other has another.",
        knobs=("triton.native_matmul",),
    ),
    ReasonRow("node1 is not TritonTemplateBuffer", "The first is a template, and not one of Triton's."),
    ReasonRow("%s is not TritonTemplateBuffer", "It is a template, and not one of Triton's.", ("node",)),
    # CUTLASS.
    ReasonRow(
        "cutlass epilogue fusion is not enabled",
        _CUTLASS + "That is off.",
        knobs=("cutlass.cutlass_epilogue_fusion_enabled", "epilogue_fusion"),
    ),
    ReasonRow(
        "epilogue fusion is only supported for TMA-enabled gemm ops",
        _CUTLASS + "Only kernels that use TMA have one.",
    ),
    ReasonRow("%s is not a ComputedBuffer", _CUTLASS + "The second is not code of inductor.", ("node",)),
    ReasonRow("%s is not a Pointwise op", _CUTLASS + "The second is not elementwise.", ("node",)),
    ReasonRow("%s does not have a computed buffer name", _CUTLASS + "The second has no buffer.", ("node",)),
    ReasonRow("%s has aliasing or mutation", _CUTLASS + "The second changes or shares memory.", ("node",)),
    ReasonRow(
        "%s is a reduction which is not yet supported by EVT",
        _CUTLASS + "The second is a reduction.",
        ("node",),
    ),
    ReasonRow(
        "%s's size: %s differs from %s's size: %s",
        _CUTLASS + "The second has another size.",
        ("second", "size of the second", "template", "size of the template"),
    ),
    ReasonRow(
        "Cannot fuse epilogue node %s into %s. Reason: %s",
        _CUTLASS + "It cannot express this one.",
        ("node", "template", "cause"),
    ),
    ReasonRow(
        "Cannot fuse epilogue node %s into %s, likely due to unsupported operation: %s",
        _CUTLASS + "It cannot express an operation.",
        ("node", "template", "operation"),
    ),
)
