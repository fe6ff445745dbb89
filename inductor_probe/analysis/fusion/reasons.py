"""Torch's reasons not to fuse: a row for each form, with its meaning, its numbers and its knobs.

`%s` in a form stands for what torch puts in. "The first" and "the second" are the nodes of
`cannot fuse <first> with <second>`; the first would run before the second in the fused kernel.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A form, what it means, what its `%s` are, and the settings that change the decision."""

    form: str
    meaning: str
    numbers: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()


_PROLOGUE = "The second is a template kernel (matmul, convolution) and the first computes one of its inputs. "
_EPILOGUE = "The first is a template kernel (matmul, convolution) and the second uses its result. "
_EXTERN = "The first is a Triton kernel of the user's, which takes in only a plain elementwise reader. "

REASONS: tuple[ReasonRow, ...] = (
    # Legality: what must run before what.
    ReasonRow(
        "intermediate nodes between node1 & node2",
        "The second also reads what a third node computes, and that node needs the first: it has to run "
        "between them. They can be fused only once the third is fused with one of them.",
    ),
    ReasonRow(
        "node1 must go before node2",
        "The first depends on the second, so that the second has to run before it. Torch weighs a pair in "
        "the order of its list; the other order may be possible.",
    ),
    ReasonRow("will create cycle", "Fused, each would wait for a node that waits for the other."),
    ReasonRow(
        "memory deps did not match",
        "The second reads what the first writes, but not at the index at which the first writes it: a point "
        "of the loop would need what another point has yet to compute.",
        knobs=("loop_ordering_after_fusion",),
    ),
    ReasonRow(
        "fusing a write into a read with different indexing formula",
        "The second overwrites what the first reads, at another index: a point of the loop could overwrite "
        "what another has yet to read.",
    ),
    ReasonRow(
        "device mismatch (%s vs %s)", "They run on different devices.", ("first runs on", "second runs on")
    ),
    # What is never fused.
    ReasonRow(
        "node1 is extern or nop", "The first is a library call or makes no kernel: there is no loop to join."
    ),
    ReasonRow(
        "node2 is extern or nop", "The second is a library call or makes no kernel: there is no loop to join."
    ),
    ReasonRow("node1 is nop", "The first makes no kernel: there is no loop to join."),
    ReasonRow(
        "node1 is extern but not a triton kernel",
        "The first is a library call: there is no generated loop to join.",
    ),
    ReasonRow(
        "node1's triton kernel doesn't support epilogue fusion",
        _EXTERN + "This one is not of a form that torch can rewrite, or the setting is off.",
        knobs=("epilogue_fusion_user_defined_triton_kernel",),
    ),
    ReasonRow(
        "node1 is extern but node2 is not SchedulerNode", _EXTERN + "The second is already a fused node."
    ),
    ReasonRow(
        "node1 is extern but node2.node is not SchedulerNode", _EXTERN + "The second computes no buffer."
    ),
    ReasonRow(
        "node1 is extern but node2.node.data is not Pointwise", _EXTERN + "The second is not elementwise."
    ),
    ReasonRow(
        "epilogue reads from buffers other than the mutated output",
        _EXTERN + "The second reads another buffer too.",
    ),
    ReasonRow(
        "node1 and node2 uses different buf layouts", _EXTERN + "The two buffers lie differently in memory."
    ),
    ReasonRow(
        "grouped node must not be fused with other nodes",
        "A pass of torch put one of them into a group that has to stay together (communication overlap).",
    ),
    ReasonRow(
        "fusion for buffer explicit disabled",
        "Torch keeps a buffer of one of them in memory of its own: a collective needs it there.",
    ),
    # Choice: legal, but held to be of no use.
    ReasonRow(
        "no shared data",
        "They make no access that is the same in both: same buffer, same index, same ranges. Torch counts "
        "only such accesses as memory traffic saved; one buffer at two indices counts nothing.",
        knobs=("loop_ordering_after_fusion", "aggressive_fusion"),
    ),
    ReasonRow(
        "no shared data due to indexing mismatch",
        "They use a common buffer, but make no access to it that is the same in both: same index and ranges.",
        knobs=("loop_ordering_after_fusion", "loop_index_inversion_in_fusion"),
    ),
    ReasonRow(
        "score_fusion_memory_threshold",
        "Neither reads what the other writes, and what both read is too little to be worth a fusion: "
        "fewer bytes than the threshold.",
        knobs=("score_fusion_memory_threshold",),
    ),
    ReasonRow(
        "exceeds max fusion",
        "Together they would be more unfused nodes than one fused node may have.",
        knobs=("max_fusion_size",),
    ),
    ReasonRow(
        "fusion_prevent_too_many_reads_and_writes",
        "Together they would read and write more buffers than the setting allows one kernel.",
        knobs=("max_fusion_unique_io_buffers",),
    ),
    ReasonRow(
        "Fusion accumulate large amount of reads",
        "Together they would read too much in one kernel (torch 2.9).",
    ),
    ReasonRow(
        "will increase peak memory",
        "Each reads buffers that nobody else needs, whose memory the other could take over if they ran one "
        "after the other; that is worth more than the traffic saved.",
    ),
    ReasonRow(
        "Fusion will increase peak memory",
        "Each reads buffers that nobody else needs, whose memory the other could take over if they ran one "
        "after the other; torch holds that to be worth more (over 32 times) than the traffic saved.",
    ),
    ReasonRow(
        "Nodes are too far away. Fusing them may increase peak memory.",
        "Neither reads what the other writes, and more than 64 nodes lie between them: fused, what they "
        "share would have to be kept for as long.",
    ),
    # Foreach and combo kernels.
    ReasonRow("foreach do not have same length", "Two foreach kernels over lists of different lengths."),
    ReasonRow(
        "candidate consumer has no dep in any foreach producer",
        "The first is a foreach kernel, and the second does not read exactly one of its members.",
    ),
    ReasonRow(
        "candidate producer is not dep of any foreach consumer",
        "The second is a foreach kernel, and none of its members reads what the first writes.",
    ),
    ReasonRow(
        "candidate consumer is a reduction, foreach ops cannot be fused with reductions currently",
        "A foreach kernel takes in no reduction.",
    ),
    ReasonRow(
        "candidate producer is a reduction, foreach ops cannot be fused with reductions currently",
        "A foreach kernel takes in no reduction.",
    ),
    # Templates.
    ReasonRow("templates can only fuse epilogues", "A template kernel takes in only what uses its result."),
    ReasonRow(
        "template epilogue not satisfied",
        _EPILOGUE + "It may not: it is a reduction, changes a buffer in place, or such fusion is off.",
        knobs=("epilogue_fusion",),
    ),
    ReasonRow(
        "multi-output template epilogue requires ComputedBuffer",
        _EPILOGUE + "The template has several results, and the second is not elementwise code of inductor.",
    ),
    ReasonRow("prologue fusion turned off", _PROLOGUE + "Such fusion is off.", knobs=("prologue_fusion",)),
    ReasonRow(
        "prologue fusion only supported for TritonTemplates", _PROLOGUE + "This template cannot take it in."
    ),
    ReasonRow(
        "prologue fusion only supported for pointwise nodes",
        _PROLOGUE + "It may not: it is a reduction or a template itself.",
    ),
    ReasonRow("template has no allowed prologue inputs", _PROLOGUE + "The template takes in none."),
    ReasonRow(
        "prologue fusion not implemented for kernel for these inputs",
        _PROLOGUE + "The template cannot take in this one of its inputs.",
    ),
    ReasonRow(
        "template prologue can only fuse functional pointwise nodes",
        _PROLOGUE + "One of them changes a buffer in place or shares its memory.",
    ),
    ReasonRow(
        "template prologue can only fuse nodes with a single use",
        _PROLOGUE + "A result inside the first is used outside of it too.",
    ),
    ReasonRow(
        "template prologue can only fuse nodes with a single use into template",
        _PROLOGUE + "It must have one result that only the template reads.",
    ),
    ReasonRow(
        "prologue fusion will not increase amount of bytes read in kernel",
        _PROLOGUE + "It reads over 1.1 times the bytes that it writes: in the template, which reads its "
        "inputs many times, that would be read again and again.",
    ),
    ReasonRow(
        "prologue fusion will not increase attempt to fuse in padding bc it increases unaligned reads",
        _PROLOGUE + "It only pads, and the unpadded input would be read without alignment.",
    ),
    ReasonRow(
        "prologue fusion that must be upcast to fp32 not profitable for low precision templates",
        _PROLOGUE + "It computes in float32 and the template reads 16 bits or fewer.",
    ),
    # Decided by compiling and timing.
    ReasonRow(
        "register spilling of the first kernel",
        "Timed: the first kernel alone spills registers.",
        knobs=("benchmark_fusion",),
    ),
    ReasonRow(
        "register spilling of the second kernel",
        "Timed: the second kernel alone spills registers.",
        knobs=("benchmark_fusion",),
    ),
    ReasonRow(
        "register spilling of the fused kernel",
        "Timed: the fused kernel spills registers.",
        knobs=("benchmark_fusion",),
    ),
)
