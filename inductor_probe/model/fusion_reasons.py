"""Torch's reasons not to fuse: what is in each, and the code that a recorded decision has for it.

`WhyNoFuse(node1, node2)(form, *operands)` in `torch/_inductor/scheduler.py` states every reason that is
logged. Its first argument is the key of this table. The reader of logs finds the operands in the line, the
recorder of decisions has them as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from inductor_probe.model.decision import CauseCode


class Reason(Struct, frozen=True):
    """What torch states in one form.

    Attributes:
        code: of the cause. `other`: torch's text is the operand.
        numbers: the names of its operands, one for each `%s`.
    """

    code: CauseCode = "other"
    numbers: tuple[str, ...] = ()


_NUMELS: tuple[str, ...] = ("first_numel", "second_numel", "first_rnumel", "second_rnumel")

REASONS: Mapping[str, Reason] = {
    # torch/_inductor/choices.py, `InductorChoices.can_fuse` and `can_fuse_horizontal`. Of the first two, and
    # of `memory deps did not match`, the recorder says which of the codes it is.
    "no shared data": Reason("accesses-differ"),
    "no shared data due to indexing mismatch": Reason("accesses-differ"),
    "exceeds max fusion": Reason("fusion-size-limit"),
    "Fusion will increase peak memory": Reason("peak-memory"),
    "fusion_prevent_too_many_reads_and_writes": Reason("too-many-buffers"),
    "score_fusion_memory_threshold": Reason("few-shared-bytes"),
    "Nodes are too far away. Fusing them may increase peak memory.": Reason("distant-nodes"),
    # torch/_inductor/scheduler.py, `Scheduler.can_fuse`, `can_fuse_vertical`, `will_fusion_create_cycle`
    "memory deps did not match": Reason("dependency-differs"),
    "intermediate nodes between node1 & node2": Reason("intermediate-node"),
    "will create cycle": Reason("cycle"),
    "device mismatch (%s vs %s)": Reason("devices-differ", ("first_device", "second_device")),
    # Logged without `WhyNoFuse`, by `Scheduler._can_fuse_peak_memory_check`.
    "estimated peak delta %s bytes": Reason(numbers=("peak_delta_bytes",)),
    "(benchmark) cause %sx slowdown": Reason("slower-when-timed", ("slowdown",)),
    # Of the first the recorder says which of the codes of epilogues it is.
    "template epilogue not satisfied": Reason("epilogue-fusion-off"),
    "prologue fusion turned off": Reason("prologue-fusion-off"),
    "prologue fusion only supported for pointwise nodes": Reason("prologue-not-pointwise"),
    "template has no allowed prologue inputs": Reason("no-prologue-inputs"),
    "prologue fusion only supported for TritonTemplates": Reason("no-prologue-inputs"),  # torch 2.11
    # torch/_inductor/codegen/simd.py, `SIMDScheduling.can_fuse`
    "numel/rnumel mismatch (reduce) (%s, %s), (%s, %s)": Reason("reductions-differ", _NUMELS),
    "numel/rnumel mismatch (non-reduce) (%s, %s), (%s, %s)": Reason("numels-differ", _NUMELS),
    "numel/rnumel mismatch prologue mismatch (%s, %s), (%s, %s)": Reason(
        numbers=("first_numel", "prologue_numel", "first_rnumel", "prologue_rnumel")
    ),
    "tiling mismatch (%s, %s, %s)": Reason(
        "tilings-differ", ("first_tiling", "second_tiling", "fused_tiling")
    ),
    "invalid tiling for reduction": Reason("tiling-not-of-reduction"),
    "nodes numel/rnumel incompatibility": Reason("ranges-do-not-split"),
    "nodes numel incompatibility": Reason("numel-of-neither"),
    # torch/_inductor/codegen/cutlass/scheduling.py
    "%s is not TritonTemplateBuffer": Reason(numbers=("node",)),
    "%s is not a ComputedBuffer": Reason(numbers=("node",)),
    "%s is not a Pointwise op": Reason(numbers=("node",)),
    "%s does not have a computed buffer name": Reason(numbers=("node",)),
    "%s has aliasing or mutation": Reason(numbers=("node",)),
    "%s is a reduction which is not yet supported by EVT": Reason(numbers=("node",)),
    "%s's size: %s differs from %s's size: %s": Reason(
        numbers=("second", "second_size", "template", "template_size")
    ),
    "Cannot fuse epilogue node %s into %s. Reason: %s": Reason(numbers=("node", "template", "cause")),
    "Cannot fuse epilogue node %s into %s, likely due to unsupported operation: %s": Reason(
        numbers=("node", "template", "operation")
    ),
    "external read %s with size %s is a non-contiguous compatible reshape of template size %s, which CUTLASS "
    "EVT cannot align to the accumulator shape": Reason(numbers=("buffer", "buffer_size", "template_size")),
}
"""Forms that have operands, or a code of their own; every other is `other`."""
