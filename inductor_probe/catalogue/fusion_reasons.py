"""What those reasons of torch's log of fusion mean that have no code, by the forms of torch's texts.

torch/_inductor/scheduler.py, choices.py, codegen/simd.py and codegen/cutlass. The first and the second are
the nodes of `cannot fuse <first> with <second>`; the first would run before the second in the fused kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_OF_GROUPS: Mapping[str, Mapping[str, str]] = {  # what is true of all reasons of a group, then each
    "The second is a template kernel (matmul, convolution) and the first computes one of its inputs.": {
        "prologue fusion not implemented for kernel for these inputs": "Not this one of its inputs.",
        "template prologue can only fuse functional pointwise nodes": (
            "One of its nodes changes a buffer in place or shares its memory."
        ),
        "template prologue can only fuse nodes with a single use": (
            "A result inside the first is used outside of it too."
        ),
        "template prologue can only fuse nodes with a single use into template": (
            "It must have one result that only the template reads."
        ),
        "prologue fusion will not increase amount of bytes read in kernel": (
            "It reads over 1.1 times the bytes that it writes, and a template reads its inputs many times."
        ),
        "prologue fusion will not increase attempt to fuse in padding bc it increases unaligned reads": (
            "It only pads, and the unpadded input would be read without alignment."
        ),
        "prologue fusion that must be upcast to fp32 not profitable for low precision templates": (
            "It computes in float32 and the template reads 16 bits or fewer."
        ),
    },
    "The first is a template kernel (matmul, convolution) and the second uses its result.": {
        "multi-output template epilogue requires ComputedBuffer": (
            "The template has several results, and the second is not pointwise code of inductor."
        ),
        "template fusion does not preserve strict sum ordering": (
            "The second sums in the order of eager, which a template does not keep (torch 2.14)."
        ),
        "template fusion does not preserve strict reduction ordering": (
            "The second reduces in the order of eager (config.numerics), which a template does not keep."
        ),
    },
    (
        "Torch fuses a reduction with what works on groups or parts of its rows only where it can plan the "
        "whole kernel in stages (config.triton.nested_reduction)."
    ): {
        "nested reduction append planning failed": (
            "The first is such a kernel, and torch found no plan that includes the second."
        ),
        "nested reduction append producer placement mismatch": (
            "The second is in another stream or memory pool than the stage that it would be added to."
        ),
        "sub-parent epilogue planning failed": "The second works on parts of rows, and torch found no plan.",
        "consumer is not wholly in the sub-parent epilogue": (
            "Some nodes of the second work on parts of rows, and others do not."
        ),
        "invalid sub-parent epilogue fusion": "One works on parts of rows, and torch found no plan for both.",
        "staged fusion dependency proof failed": (
            "There is a plan, but not for all that the second reads is it shown where the first computes it."
        ),
        "staged reduction plan would be lost": (
            "One is such a kernel, and torch found no plan that includes the other."
        ),
    },
    "The first is a Triton kernel that the user wrote, which fuses only with a plain pointwise reader.": {
        "node1's triton kernel doesn't support epilogue fusion": "It has another form, or that is off.",
        "node1 is extern but node2 is not SchedulerNode": "The second is already a fused node.",
        "node1 is extern but node2.node is not SchedulerNode": "The second computes no buffer.",
        "node1 is extern but node2.node.data is not Pointwise": "The second is not pointwise.",
        "epilogue reads from buffers other than the mutated output": "The second reads another buffer too.",
        "node1 and node2 uses different buf layouts": "The two buffers have different layouts.",
        "epilogue is not a unary read of the output buffer": (
            "The second reads more than the buffer that the kernel writes, or writes more than one."
        ),
        "epilogue's read and write indices differ": "The second writes at another index than it reads.",
    },
    "The first is a CUTLASS kernel, which fuses only with what its epilogue can express.": {
        "cutlass epilogue fusion is not enabled": "That is off.",
        "epilogue fusion is only supported for TMA-enabled gemm ops": "Only kernels that use TMA have one.",
        "%s is not a ComputedBuffer": "The second is not code of inductor.",
        "%s is not a Pointwise op": "The second is not pointwise.",
        "%s does not have a computed buffer name": "The second has no buffer.",
        "%s has aliasing or mutation": "The second mutates or shares memory.",
        "%s is a reduction which is not yet supported by EVT": "The second is a reduction.",
        "%s's size: %s differs from %s's size: %s": "The second has another size.",
        "Cannot fuse epilogue node %s into %s. Reason: %s": "It cannot express this one.",
        "Cannot fuse epilogue node %s into %s, likely due to unsupported operation: %s": (
            "It cannot express an operation of the second."
        ),
        (
            "external read %s with size %s is a non-contiguous compatible reshape of template size %s, "
            "which CUTLASS EVT cannot align to the accumulator shape"
        ): ("The second reads another buffer of as many elements in another shape, which is not contiguous."),
    },
}
_ALONE: Mapping[str, str] = {
    "node1 must go before node2": (
        "The first depends on the second. Torch tries a pair in the order of its list; the other order may "
        "be possible."
    ),
    "fusing a write into a read with different indexing formula": (
        "The second overwrites what the first reads, but at another index: one loop iteration could "
        "overwrite what another has yet to read."
    ),
    "node1 is extern or nop": "The first is a library call or a nop: there is no loop to fuse with.",
    "node2 is extern or nop": "The second is a library call or a nop: there is no loop to fuse with.",
    "node1 is nop": "The first is a nop: there is no loop to fuse with.",
    "node1 is extern but not a triton kernel": (
        "The first is a library call: there is no generated loop to fuse with."
    ),
    "grouped node must not be fused with other nodes": (
        "A pass of torch grouped one of them with nodes that have to stay together (communication overlap)."
    ),
    "fusion for buffer explicit disabled": (
        "Torch allocates a buffer of one of them separately: a collective needs that."
    ),
    "Fusion accumulate large amount of reads": "Fused, they would read too much in one kernel (torch 2.9).",
    "will increase peak memory": (
        "Each reads buffers whose last use it is; run one after the other, the second could reuse their "
        "memory. Torch ranks that above the traffic saved."
    ),
    "estimated peak delta %s bytes": (
        "Fused, the graph would need that many bytes more at its peak than with its nodes as they were, "
        "which one of these settings forbids: fusion_memory_timeline_peak_memory_increase_gb, "
        "fusion_memory_timeline_peak_memory_pct_threshold."
    ),
    "incompatible reduction contracts": (
        "Both read the result of a matmul that may be a kernel of NVIDIA's universal GEMM, whose epilogue "
        "cannot hold the reductions of both."
    ),
    "reduction fusion does not preserve strict sum ordering": (
        "Both reduce, and one sums in the order of eager, which the fused kernel would not keep (torch 2.14)."
    ),
    "reduction fusion does not preserve strict reduction ordering": (
        "Both reduce, and one in the order of eager (config.numerics), which the fused kernel would not keep."
    ),
    "a consumer depends on another producer sub-node": (
        "Both are foreach kernels, whose members run in parallel, and a member of the second reads what "
        "another than its partner in the first writes."
    ),
    "foreach do not have same length": "Two foreach kernels over lists of different lengths.",
    "candidate consumer has no dep in any foreach producer": (
        "The first is a foreach kernel, and the second does not read exactly one of its members."
    ),
    "candidate producer is not dep of any foreach consumer": (
        "The second is a foreach kernel, and none of its members reads what the first writes."
    ),
    "candidate consumer is a reduction, foreach ops cannot be fused with reductions currently": (
        "A foreach kernel fuses with no reduction."
    ),
    "candidate producer is a reduction, foreach ops cannot be fused with reductions currently": (
        "A foreach kernel fuses with no reduction."
    ),
    "templates can only fuse epilogues": "A template kernel fuses only with what uses its result.",
    "register spilling of the first kernel": "Benchmarked by torch: the first kernel alone spills registers.",
    "register spilling of the second kernel": (
        "Benchmarked by torch: the second kernel alone spills registers."
    ),
    "register spilling of the fused kernel": "Benchmarked by torch: the fused kernel spills registers.",
    "numel/rnumel mismatch prologue mismatch (%s, %s), (%s, %s)": (
        "The template already has another prologue, of another number of elements."
    ),
    "Split scan cannot fuse with reductions": "A scan over several blocks fuses with no reduction.",
    "invalid loop order and tiling for native matmul": (
        "A matmul that inductor generates keeps its loop order, and the other has another."
    ),
    "node1 is not TritonTemplateBuffer": "The first is a template, and not one of Triton's.",
    "%s is not TritonTemplateBuffer": "It is a template, and not one of Triton's.",
}


def meaning_of(reason: str) -> str | None:
    """Return what a reason means; None of one that is not listed here."""
    return next((meaning for form, meaning in _meanings().items() if form.fullmatch(reason)), None)


@cache
def _meanings() -> Mapping[re.Pattern[str], str]:
    grouped = {form: f"{group} {text}" for group, texts in _OF_GROUPS.items() for form, text in texts.items()}
    return {
        re.compile(".*".join(map(re.escape, form.split("%s"))), re.DOTALL): text
        for form, text in {**_ALONE, **grouped}.items()
    }
