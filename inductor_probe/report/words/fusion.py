"""Words for fusion: outcomes, what torch's reasons mean, what settings do, what is concluded of a pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inductor_probe.catalogue.templates import fill
from inductor_probe.model.fusion import (
    FusionDecision,
    LogMatch,
    Outcome,
    PairFacts,
    PairMember,
    Refusal,
    SharedBuffer,
)
from inductor_probe.model.ir import Dep, Dim, MemoryDep, StarDep
from inductor_probe.model.proof import ProofCode
from inductor_probe.model.setting import CONFIG, Setting

_DOES = {"waits": "comes after"}
OUTCOMES: Mapping[Outcome, str] = {
    "fused": "fused",
    "refused": "refused",
    "refused_without_reason": "refused without a reason",
    "not_logged": "not fused, the log does not say why",
    "never_tried": "never tried",
    "no_log": "not fused, there is no log that says why",
}

_EFFECTS: Mapping[str, str] = {
    "aggressive_fusion": "tries pairs without shared data too",
    "benchmark_fusion": "fuses without timing the fused kernel",
    "combo_kernels": "puts independent nodes of any size into one launch",
    "cutlass.cutlass_epilogue_fusion_enabled": "fuses what uses the result of a CUTLASS kernel into it",
    "epilogue_fusion": "fuses what uses the result of a template into it",
    "epilogue_fusion_user_defined_triton_kernel": "fuses what uses a user's Triton kernel's result into it",
    "loop_index_inversion_in_fusion": "also tries the index of one node inverted",
    "loop_ordering_after_fusion": "reorders the loops of one node to make its accesses those of the other",
    "max_fusion_size": "most unfused nodes in a fused one",
    "max_fusion_unique_io_buffers": "most buffers that a fused node reads and writes",
    "prologue_fusion": "fuses what computes the inputs of a template into it",
    "score_fusion_memory_threshold": "fewest bytes that two independent nodes must share",
    "split_reductions": "leaves a long reduction in one piece, with its own size",
    "triton.mix_order_reduction": "fuses a reduction over rows with one over columns of the same data",
    "triton.native_matmul": "leaves matmuls to templates and libraries",
    "triton.tiling_prevents_pointwise_fusion": "fuses although a tiling in two dimensions is lost",
    "triton.tiling_prevents_reduction_fusion": "fuses although a tiling in two dimensions is lost",
}

_TEMPLATES: Mapping[str, Mapping[str, str]] = {  # what is true of all reasons of a group, then each
    "The second is a template kernel (matmul, convolution) and the first computes one of its inputs.": {
        "prologue fusion turned off": "Such fusion is off.",
        "prologue fusion only supported for TritonTemplates": "This template cannot fuse it.",
        "prologue fusion only supported for pointwise nodes": "It is a reduction or a template itself.",
        "template has no allowed prologue inputs": "The template allows none.",
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
        "template epilogue not satisfied": "The second is a reduction, mutates, or such fusion is off.",
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
    "Torch fuses a reduction with what works on groups or parts of its rows only where it can plan the whole "
    "kernel in stages (config.triton.nested_reduction).": {
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
        "external read %s with size %s is a non-contiguous compatible reshape of template size %s, which "
        "CUTLASS EVT cannot align to the accumulator shape": (
            "The second reads another buffer of as many elements in another shape, which is not contiguous."
        ),
    },
}
_ALONE: Mapping[str, str] = {
    "intermediate nodes between node1 & node2": "A third node reads what one of them computes and computes "
    "what the other reads, so it has to run between them: fuse it with one of them first.",
    "node1 must go before node2": "The first depends on the second. Torch tries a pair in the order of its "
    "list; the other order may be possible.",
    "will create cycle": "Fused, each would wait for a node that waits for the other.",
    "memory deps did not match": "The second reads what the first writes, but at another index: one loop "
    "iteration would need what another has yet to compute.",
    "fusing a write into a read with different indexing formula": "The second overwrites what the first "
    "reads, but at another index: one loop iteration could overwrite what another has yet to read.",
    "device mismatch (%s vs %s)": "They run on different devices.",
    "node1 is extern or nop": "The first is a library call or a nop: there is no loop to fuse with.",
    "node2 is extern or nop": "The second is a library call or a nop: there is no loop to fuse with.",
    "node1 is nop": "The first is a nop: there is no loop to fuse with.",
    "node1 is extern but not a triton kernel": "The first is a library call: there is no generated loop to "
    "fuse with.",
    "grouped node must not be fused with other nodes": "A pass of torch grouped one of them with nodes that "
    "have to stay together (communication overlap).",
    "fusion for buffer explicit disabled": "Torch allocates a buffer of one of them separately: a collective "
    "needs that.",
    "no shared data": "No access is the same in both (buffer, index and ranges), and torch counts only such "
    "accesses as memory traffic saved.",
    "no shared data due to indexing mismatch": "They use a common buffer, but no access to it has the same "
    "index and ranges in both.",
    "score_fusion_memory_threshold": "Neither reads what the other writes, and what both read is fewer bytes "
    "than the threshold.",
    "exceeds max fusion": "Fused, they would be more unfused nodes than one fused node may have.",
    "fusion_prevent_too_many_reads_and_writes": "Fused, they would read and write more buffers than the "
    "setting allows one kernel.",
    "Fusion accumulate large amount of reads": "Fused, they would read too much in one kernel (torch 2.9).",
    "will increase peak memory": "Each reads buffers whose last use it is; run one after the other, the "
    "second could reuse their memory. Torch ranks that above the traffic saved.",
    "Fusion will increase peak memory": "Each reads buffers whose last use it is; run one after the other, "
    "the second could reuse their memory. Torch ranks that above the traffic saved (over 32 times).",
    "Nodes are too far away. Fusing them may increase peak memory.": "Neither reads what the other writes, "
    "and more than 64 nodes lie between them: fused, what they share would be live for as long.",
    "estimated peak delta %s bytes": "Fused, the graph would need that many bytes more at its peak than "
    "with its nodes as they were, which one of these settings forbids: "
    "fusion_memory_timeline_peak_memory_increase_gb, fusion_memory_timeline_peak_memory_pct_threshold.",
    "incompatible reduction contracts": "Both read the result of a matmul that may be a kernel of NVIDIA's "
    "universal GEMM, whose epilogue cannot hold the reductions of both.",
    "reduction fusion does not preserve strict sum ordering": "Both reduce, and one sums in the order of "
    "eager, which the fused kernel would not keep (torch 2.14).",
    "reduction fusion does not preserve strict reduction ordering": "Both reduce, and one in the order of "
    "eager (config.numerics), which the fused kernel would not keep.",
    "a consumer depends on another producer sub-node": "Both are foreach kernels, whose members run in "
    "parallel, and a member of the second reads what another than its partner in the first writes.",
    "foreach do not have same length": "Two foreach kernels over lists of different lengths.",
    "candidate consumer has no dep in any foreach producer": "The first is a foreach kernel, and the second "
    "does not read exactly one of its members.",
    "candidate producer is not dep of any foreach consumer": "The second is a foreach kernel, and none of "
    "its members reads what the first writes.",
    "candidate consumer is a reduction, foreach ops cannot be fused with reductions currently": (
        "A foreach kernel fuses with no reduction."
    ),
    "candidate producer is a reduction, foreach ops cannot be fused with reductions currently": (
        "A foreach kernel fuses with no reduction."
    ),
    "templates can only fuse epilogues": "A template kernel fuses only with what uses its result.",
    "register spilling of the first kernel": "Benchmarked by torch: the first kernel alone spills registers.",
    "register spilling of the second kernel": "Benchmarked by torch: the second kernel alone spills "
    "registers.",
    "register spilling of the fused kernel": "Benchmarked by torch: the fused kernel spills registers.",
    "(benchmark) cause %sx slowdown": "Benchmarked by torch: the fused kernel takes that many times as long "
    "as the two (inf: it could not be built).",
    "numel/rnumel mismatch (reduce) (%s, %s), (%s, %s)": "Both are reductions, of different sizes: a kernel "
    "has one grid and one reduction loop.",
    "numel/rnumel mismatch (non-reduce) (%s, %s), (%s, %s)": "They compute different numbers of elements: a "
    "Triton kernel has one grid.",
    "numel/rnumel mismatch prologue mismatch (%s, %s), (%s, %s)": "The template already has another "
    "prologue, of another number of elements.",
    "tiling mismatch (%s, %s, %s)": "Alone, one of them is best tiled in two dimensions or more; fused, it "
    "would lose that.",
    "invalid tiling for reduction": "One is a reduction, and the best tiling of the other is not possible "
    "for it.",
    "nodes numel/rnumel incompatibility": "One is a reduction; the other has as many elements, but its loops "
    "cannot be split into reduced ones and others.",
    "nodes numel incompatibility": "One is a reduction, and the other has neither as many elements as it "
    "reads nor as it writes.",
    "Split scan cannot fuse with reductions": "A scan over several blocks fuses with no reduction.",
    "invalid loop order and tiling for native matmul": "A matmul that inductor generates keeps its loop "
    "order, and the other has another.",
    "node1 is not TritonTemplateBuffer": "The first is a template, and not one of Triton's.",
    "%s is not TritonTemplateBuffer": "It is a template, and not one of Triton's.",
}
MEANINGS: Mapping[str, str] = {
    **_ALONE,
    **{form: f"{group} {text}" for group, texts in _TEMPLATES.items() for form, text in texts.items()},
}
"""What torch's reasons mean, by their forms. "The first" and "the second" are the nodes of `cannot fuse
<first> with <second>`; the first would run before the second in the fused kernel."""

_REASONS: Mapping[ProofCode, str] = {
    "outer-loops-fused": "The C++ backend fused their outer loops; inside, each keeps loops of its own.",
    "combo-kernel": "They are parts of one foreach or combo kernel: one launch, a part of the grid each.",
    "grouped-before-fusion": "They were one node before the first round.",
    "backend-logs-nothing": (
        "Torch scored the pair in a round that fused nothing, and logged no reason: "
        "a backend refuses without logging."
    ),
    "outcome-not-logged": "Torch scored the pair, and the log shows neither a refusal nor a fusion.",
    "pair-not-logged": "The log does not mention the pair: this torch logs nothing when a backend refuses.",
    "no-common-buffer": "They use no common buffer, and torch tries only pairs that do.",
    "common-buffer-not-tried": (
        "They use a common buffer, and the log does not mention them: "
        "torch tries each node with a limited number of others that use its buffer."
    ),
    "library-call": "{node} is a library call: there is no generated loop to fuse with.",
    "no-kernel-node": "{node} needs no kernel (a concatenation, a view, or a place in the order): "
    "there is no loop to fuse with.",
    "fused-nodes-share": "Alone they use no common buffer; the fused nodes that hold them do.",
    "nodes-between": "{between} must run between them: {path}.",
    "loops-do-not-fit": "{loops}.",
    "no-equal-access": (
        "No access is the same in both (buffer, index and ranges): torch counts no traffic saved."
    ),
    "devices-differ": "They run on different devices: {first_device} and {second_device}.",
    "same-function": "Both run in {kernel}, unfused: a C++ function may have several loop nests.",
}

_LOOPS: Mapping[ProofCode, str] = {
    "no-generated-loops": "{node} has no loops that inductor generates ({kinds})",
    "loops-not-known": "loops of a form that is not known",
    "backends-differ": "one is C++ code and the other is not",
    "same-loops": "both have the same loops",
    "loops-with-reduction": "the loops of {pointwise} are those of {reduction} with its reduction",
    "equal-elements": (
        "both run over as many elements, one in a single loop: they fit if the buffers have one size"
    ),
    "common-outer-loops": "they can have their {outer} in common, and an inner loop each",
    "common-outer-loops-reduction": (
        "{reduction} is a reduction, whose result is complete only after its loop: "
        "they can have their {outer} in common, and an inner loop each"
    ),
    "no-common-outer-loops": "only their {outer} can be fused, which torch 2.4 and later do",
    "no-common-outer-loops-reduction": (
        "{reduction} is a reduction, whose result is complete only after its loop: "
        "only their {outer} can be fused, which torch 2.4 and later do"
    ),
    "dependent-loops-differ": "the loops differ, from the outermost in: {first_loops} and {second_loops}",
    "independent-loops-differ": (
        "the loops differ: {first_loops} and {second_loops}; the C++ backend fuses independent nodes "
        "only if their loops are the same, or the same but for a reduction"
    ),
    "same-numel": "both have {first_loops}",
    "numels-differ": (
        "a Triton kernel has one number of elements; these have {first_loops} and {second_loops}"
    ),
    "reductions-differ": (
        "a Triton kernel has one number of elements and one reduction; "
        "these have {first_loops} and {second_loops}"
    ),
    "numel-of-result": (
        "the pointwise node has an element for each result of the reduction: {first_loops} and {second_loops}"
    ),
    "numel-of-input": (
        "the pointwise node has an element for each that is reduced: {first_loops} and {second_loops}"
    ),
    "numel-of-neither": (
        "the pointwise node has neither as many elements as are reduced nor as many as result: "
        "{first_loops} and {second_loops}"
    ),
    "symbolic-numels": "symbolic: {first_loops} and {second_loops}",
}

_LOGS: Mapping[ProofCode, str] = {
    "log-position": "part {part} of {parts}, as the graph in the run, with its nodes before fusion",
    "log-position-and-groups": (
        "part {part} of {parts}, as the graph in the run, with its nodes before fusion and after"
    ),
    "only-log-part": "the only part with the graph's nodes before fusion and after",
    "equal-log-parts": "{parts} parts of the log fit the graph, and say the same",
    "differing-log-parts": "{parts} parts of the log fit the graph (lines {lines:4}), and differ",
    "log-part-by-names": "the only part with the graph's nodes before fusion; it ends with others",
    "log-parts-by-names": (
        "{parts} parts of the log start from the graph's nodes, and none ends with its nodes after fusion"
    ),
    "no-log-part": "no part of the log starts from the graph's nodes",
    "torch-logs-no-fusion": "torch {version} does not log what it fuses",
    "no-fusion-lines": "the logs of this run have no lines of fusion",
    "no-log": "there is no log of the compiler with this run",
}


def log_text(match: LogMatch) -> str:
    """What shows which part of the log is the graph's, or why there is none."""
    return fill(_LOGS[match.proof.code], dict(match.proof.operands))


def how_to_record_reasons(match: LogMatch) -> str | None:
    """How to get the reasons that the dump lacks; None where it has a log."""
    if match.state in ("proved", "disagrees"):
        return None
    if match.proof.code == "torch-logs-no-fusion":
        return "torch 2.2 and later log their reasons: dump the script with one of those"
    if match.state == "ambiguous":
        return "dump one case at a time: `probe dump SCRIPT --case CASE` records a log of its own"
    return "`probe dump SCRIPT` records the reasons; so does TORCH_LOGS=fusion,loop_ordering,schedule"


def meaning(refusal: Refusal) -> str:
    """What a reason of torch means."""
    return MEANINGS.get(refusal.form) or "not known: these are torch's own words"


def number_lines(refusal: Refusal) -> list[str]:
    """`first numel: 256`: the values in a reason."""
    return [f"{name.replace('_', ' ')}: {value}" for name, value in refusal.numbers]


def setting_text(setting: Setting) -> str:
    """`torch._inductor.config.combo_kernels = True puts independent nodes ... (not set in this dump)`."""
    effect = _EFFECTS[setting.name.removeprefix(f"{CONFIG}.")]
    values = {None: "its value is not in this dump", "default": "not set in this dump"}
    present = values.get(setting.value, f"{setting.value} in this dump")
    offered = ":" if setting.offered is None else f" = {setting.offered}"
    return f"{setting.name}{offered} {effect} ({present})"


def reason_texts(decision: FusionDecision) -> Iterator[str]:
    """Yield what is concluded of a pair, a sentence each; an inferred one says that it is."""
    facts = decision.facts
    values = {
        "between": ", ".join(facts.path[2:-1:2]),
        "path": " -> ".join(facts.path),
        "loops": loops_text(facts),
        "first_device": str(facts.first.device),
        "second_device": str(facts.second.device),
    }
    for proof in decision.reasons:
        text = fill(_REASONS[proof.code], values | dict(proof.operands))
        text = f"{text[:1].upper()}{text[1:]}"
        yield f"{text} (inferred)" if proof.knowledge == "inferred" else text


def loops_text(facts: PairFacts) -> str:
    """What shows whether the loops of a pair fit one kernel."""
    operands = dict(facts.loops.operands)
    member = facts.first if facts.first.name == operands.get("node") else facts.second
    depth = operands.get("depth")
    values = {
        "kinds": " and ".join(member.kinds),
        "outer": "outermost loop" if depth == 1 else f"{depth} outermost loops",
        "first_loops": member_loops(facts.first),
        "second_loops": member_loops(facts.second),
    }
    return fill(_LOOPS[facts.loops.code], values | operands)


def member_loops(member: PairMember) -> str:
    """`512 x 1000 reducing 64`; `4096 elements reducing 64` of Triton code; `-` where there are none."""
    match member.iteration:
        case None:
            return "-"
        case (tuple() as outer, tuple() as reduced):
            return _nest(outer) + (f" reducing {_nest(reduced)}" if reduced else "")
        case (numel, rnumel):
            return f"{numel} elements" + (f" reducing {rnumel}" if rnumel != 1 else "")
    return str(member.iteration)


def relation_text(row: SharedBuffer, facts: PairFacts) -> str:
    """`op1 writes, op3 reads`: what two nodes do with a buffer."""
    match row.relation.split("_"):
        case ["first", first_does, "second", second_does]:
            members = ((facts.first, first_does), (facts.second, second_does))
        case ["second", second_does, "first", first_does]:
            members = ((facts.second, second_does), (facts.first, first_does))
        case words:
            return " ".join(words)
    return ", ".join(f"{member.name} {_DOES.get(verb, verb)}" for member, verb in members)


def access_text(dep: Dep) -> str:
    """`768*c0 + c1 over c0: 1024, c1: 768`: an access as the IR has it."""
    match dep:
        case MemoryDep(index=index, ranges=ranges, mode=mode):
            over = ", ".join(f"{name}: {size}" for name, size in ranges)
            return f"{index}{f' over {over}' if over else ''}{f' ({mode})' if mode else ''}"
        case StarDep(mode=mode):
            return f"whole buffer{f' ({mode})' if mode else ''}"
    return "order only"


def _nest(dims: tuple[Dim, ...]) -> str:
    return " x ".join(map(str, dims)) or "1"
