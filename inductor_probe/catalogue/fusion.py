"""Fusion: torch/_inductor/scheduler.py, choices.py, codegen/cpp.py and codegen/simd.py."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, Turn, alike
from inductor_probe.catalogue.fusion_reasons import meaning_of
from inductor_probe.catalogue.shared import number, unless, where
from inductor_probe.catalogue.templates import fill
from inductor_probe.model.decision import Decision

_ACCESSES = "{first} {first_does} {buffer} {first_at}, {second} {second_does} it {second_at}"
_LOADED = re.compile(r"\b(?:tmp|indirect)\d+")
"""A value in an index, which is itself loaded."""
_NO_SIZES = {"value": "?", "limit": "?", "rows": "?", "columns": "?"}
_UNMET: Mapping[object, tuple[str, str]] = {  # why, and in short
    "off": ("it is off", "off"),
    "not-contiguous": ("neither reads its data in the order in which it lies", "neither is contiguous"),
    "elements": (
        "only from {limit} elements on, and these are {value}", "{value} elements < {limit}"
    ),
    "rows-per-column": (
        "only where there are at least {limit} rows for each column, and there are {rows} for {columns}",
        "{rows} rows < {limit} x {columns} columns",
    ),
    "rows": ("only from {limit} rows on, and there are {value}", "{value} rows < {limit}"),
    "hint": ("only where the contiguous one has hint INNER or DEFAULT, and it has {value}", "hint {value}"),
    "columns": ("only up to {limit} columns, and there are {value}", "{value} columns > {limit}"),
    "split": ("only where the contiguous one is not divided into parts", "a reduction in parts"),
    "operation": ("only where the other one is a sum or a product, and it is {value}", "reduces by {value}"),
}  # fmt: skip
"""What of `MixOrderReduction.can_fuse` was not met."""
_TIMED = "[; {reordered}][; timed: {fused_ms:.4f} ms, and {first_ms:.4f} + {second_ms:.4f} apart]"
_RANGES = "the loops of {first_nest|first} are {first_loops}, those of {second_nest|second} {second_loops}"


def _grouped(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """`1,048,576`; a symbolic size as it is."""
    sizes = {name: operands[name] for name in _NO_SIZES if name in operands}
    return {name: f"{size:,}" if isinstance(size, int) else size for name, size in sizes.items()}


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    loops = {}
    for which in ("first", "second"):
        ranges, reduction = operands.get(f"{which}_ranges"), operands.get(f"{which}_reduction")
        if reduction is not None:
            loops[f"{which}_loops"] = f"{ranges} reducing {reduction}" if reduction != "()" else ranges
    reorders = "reorders no loops of CPU code" if operands.get("cpu") else "did not reorder them"
    if operands.get("both_reduce") and not operands.get("cpu"):
        reorders = "reorders loops that do not reduce, and both nodes reduce"
    is_gather = any(_LOADED.search(str(operands.get(f"{which}_index"))) for which in ("first", "second"))
    gather = (
        "an index is itself loaded (tmp), so which elements these are is not known here"
        if is_gather
        else None
    )
    is_same = operands.get("first_index") == operands.get("second_index")
    for which in ("first", "second"):
        index, ranges = operands.get(f"{which}_index"), operands.get(f"{which}_ranges")
        if index is not None:
            over = f" over {ranges}" if ranges else ""
            loops[f"{which}_at"] = "as a whole" if index == "all" else f"at {index}{over}"
            loops[f"{which}_short"] = "all of it" if index == "all" else f"{index}{over if is_same else ''}"
    if text := operands.get("text"):
        loops["meaning"] = meaning_of(str(text))
    if operands.get("outer_depth"):
        loops["later"] = "which torch 2.4 and later fuse"
    if not operands.get("buffer"):
        loops["unmatched"] = "one writes a buffer that the other uses at other places, or writes, too"
    loops["would"] = "update" if operands.get("second_does") == "updates" else "read"
    nests = [nest for which in ("first", "second") if (nest := operands.get(f"{which}_nest"))]
    loops["outer_why"] = "fused outer loops" if nests else "reduction"
    loops |= {"nests": "one of them"} if nests else {"complete": "complete only after"}
    pairs = operands.get("pairs")
    check = operands.get("check")
    if check in _UNMET:
        loops["unmet"], loops["unmet_short"] = (
            fill(text, {**_NO_SIZES, **_grouped(operands)}) for text in _UNMET[check]
        )
    whole: dict[str, Any] = {}
    if operands.get("reordered"):
        whole["reordered"] = "in the round that may give them another order of loops"
    if pairs is not None:  # of all its groups, not of one and the others
        is_one = pairs == 1 and "limit" not in operands
        whole = {"pairs": None} if is_one else {"others": None}
    distance = operands.get("distance")
    far = "far apart" if distance is None else f"{distance} nodes apart, more than {operands.get('limit')}"
    if operands.get("slowdown") == "inf":
        whole |= {"slowdown": None, "unbuilt": "a kernel for both could not be built"}
    return {**loops, **whole, "reorders": reorders, "gather": gather, "far": far}


def _pairwise_attempts(decision: Decision) -> str:
    """Return how many users of a buffer a node is to be paired with: up to this one, or all."""
    return str(decision.operand("distance") or len(decision.subjects))


def _has_as_many_points(decision: Decision) -> bool:
    """Whether loops of both run over as many points, and are not the same: an order may make them equal."""
    first, second = (_sizes(decision, which) for which in ("first", "second"))
    known = all(map(str.isdecimal, (*first, *second)))
    return known and first != second and math.prod(map(int, first)) == math.prod(map(int, second))


def _sizes(decision: Decision, which: str) -> list[str]:
    texts = [str(decision.operand(f"{which}_{name}")) for name in ("ranges", "reduction")]
    return [size.strip() for text in texts for size in text.strip("()").split(",") if size.strip()]


def _has_outer_loops(decision: Decision) -> bool:
    """Whether both have a loop that is not reduced: what reduces to one value has none in common."""
    return all(decision.operand(f"{which}_ranges") not in (None, "()") for which in ("first", "second"))


_EQUAL_ACCESS = Source(
    "equal-access",
    "both use the same elements of {buffer}: let what writes or copies it have the order in which it is read",
    applies="same-elements",
)
_EQUAL = "let both have the same dimensions, or keep dimensions apart that one of them has merged"
_EQUAL_RANGES = Source("equal-ranges", _EQUAL)
_TILING = "fuses although a tiling is lost; time it"
_IN_ONE = {"fused": "{subject} are in one kernel"}
_IN_NO_PAIR = {"not-tried": "{subject} {n:?is/are} in no pair"}
_NOT_STRICT = ("elements", "rows-per-column", "rows")
"""Checks of `MixOrderReduction.can_fuse` that are not made in its mode that is not strict."""

_ACCESSES_OF = "first_does second_does first_index first_ranges second_index second_ranges"
_RANGES_OF = "first_nest second_nest first_ranges second_ranges first_reduction second_reduction"
_FUSED = "buffers round step score reordered first_ms second_ms fused_ms"
_NUMELS = "first_numel second_numel first_rnumel second_rnumel"

_FUSE_TWO_NODES = "scheduler.py:Scheduler.fuse_two_nodes"
_CHOICES = "choices.py:InductorChoices.can_fuse"
_HORIZONTAL = "choices.py:InductorChoices.can_fuse_horizontal"
_VERTICAL = "scheduler.py:Scheduler.can_fuse_vertical"
_CPP_VERTICAL = "codegen/cpp.py:CppScheduling.can_fuse_vertical"
_CPP_HORIZONTAL = "codegen/cpp.py:CppScheduling.can_fuse_horizontal"
_SIMD = "codegen/simd.py:SIMDScheduling.can_fuse"
_SCHEDULER = "scheduler.py:Scheduler.can_fuse"
_UNFUSABLE_NODE = "scheduler.py:Scheduler.unfusable_node"
_GET_POSSIBLE_FUSIONS = "scheduler.py:Scheduler.get_possible_fusions"
_CHECK_OUTER_FUSION_LOOP_LEVEL_ATTR = (
    "codegen/cpp.py:OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr"
)

OPERANDS = (
    *alike("round step", "int", "of fusion, and of all fusions, from 1"),
    Operand("score", "text", "by which torch sorted the pairs"),
    Operand("shared_bytes", "size", "that torch counts as shared", "bytes"),
    Operand("buffers", "names", "whose bytes torch counts, else all that both use"),
    Operand("reordered", "flag", "in the round that may give loops another order"),
    *alike("first_ms second_ms fused_ms", "number", "of a kernel for each, and for both, as timed", "ms"),
    Operand("slowdown", "text", "how many times as slow both in one kernel are"),
    Operand("depth", "int", "outer loops in common", "loops"),
    Operand("parts", "int", "of the kernel, each with loops of its own"),
    Operand("buffer", "text", "what keeps them apart"),
    *alike("first_does second_does", "text", "what each does with it: reads, writes or updates (in place)"),
    *alike("first_index second_index", "text", "of the access of each; `all` without an index"),
    *alike("first_ranges second_ranges", "text", "of the loops of each"),
    *alike("first_reduction second_reduction", "text", "sizes of the loops that each reduces"),
    Operand("cpu", "flag", "torch reorders loops for GPUs only"),
    Operand("both_reduce", "flag", "it does not reorder those of two reductions"),
    Operand("threshold", "number", "from which torch fuses such nodes", "bytes"),
    Operand("nodes", "size", "of the fused node", "nodes"),
    Operand("limit", "size", "torch fuses no more"),
    Operand("reusable_elements", "size", "of buffers whose last use both are", "elements"),
    Operand("factor", "number", "as torch compares"),
    Operand("distance", "int", "how far apart in the order of nodes", "nodes"),
    *alike("first_device second_device", "text", "where each runs"),
    Operand("node", "text", "that must run between, or that reads at another index than it writes"),
    Operand("through", "names", "a fused node that depends on one of them, and the other on it"),
    Operand("vertical", "flag", "whether one reads what the other writes"),
    Operand("outer_depth", "int", "outer loops that agree", "loops"),
    *alike("first_nest second_nest", "text", "of an outer-loop fused node, the nest that was compared"),
    *alike("first_size second_size", "text", "of each, before loops were merged"),
    *alike("first_depth second_depth", "int", "outer loops that the nests of each have in common", "loops"),
    *alike("reads_at writes_at", "names", "where it reads the template's result, and where it writes"),
    Operand("template_setting", "flag", "true where the template itself forbids it"),
    *alike("first_numel second_numel", "size", "of the kernel of each, but for the reduced", "elements"),
    *alike("first_rnumel second_rnumel", "size", "that each reduces", "elements"),
    Operand("check", "text",
        "of MixOrderReduction.can_fuse: off, not-contiguous, elements, rows-per-column, rows, hint, "
        "columns, split, operation"),
    Operand("value", "size", "what that check compared"),
    *alike("rows columns", "size", "of the data that both reduce"),
    *alike("first_tiling second_tiling fused_tiling", "text", "the best one of each, and of both"),
    Operand("candidates", "int", "possible pairs of the round", "pairs"),
    Operand("kept", "int", "of those, pairs that came first", "pairs"),
    Operand("group", "names", "the node that now holds one of them"),
    Operand("kernel", "text", "that is called"),
    Operand("result_of", "text", "the call of which it is one of several results"),
    Operand("pairs", "int", "of nodes that were not tried", "pairs"),
    Operand("loop", "text", "that they were to have in common"),
    *alike("first_steps second_steps", "size", "by which the code of each advances"),
    *alike("first_range second_range", "size", "of that loop in each"),
    Operand("nest", "text", "whose inner loop dominates"),
    *alike("inner_range outer_range", "size", "of that loop, and of the common ones", "steps"),
    Operand("text", "text", "torch's own words"),
)  # fmt: skip

OUTCOMES = (
    Outcome("fused", "{first} and {second} are fused", "passed"),
    Outcome("refused", "{first} and {second} are not fused", "missed"),
    Outcome("postponed", "{first} and {second} could be fused, and were not", "analysis"),
    Outcome("not-tried",
        "[{pairs:# pair} of {subject} {pairs:?was/were} not tried][{first} was not tried with {others}]",
        "analysis"),
    Outcome("undone", "{subject} were fused, and have a loop nest each in the code", "missed"),
)  # fmt: skip

CAUSES = (
    Cause("producer-and-consumer", "fused", _FUSE_TWO_NODES, _FUSED,
        "[step {step} of round {round}; ]{second} reads what {first} writes, and both use {buffers:4}"
        f"[; torch counts {{shared_bytes}} as shared]{_TIMED}", "[step {step}, ]{second} reads {first}",
        example="exponential = x.exp(); (exponential, exponential + x), x: float32 (64, 64)"),
    Cause("common-buffer", "fused", _FUSE_TWO_NODES, _FUSED,
        "[step {step} of round {round}; ]both use {buffers:4}[; torch counts {shared_bytes} as shared]"
        f"{_TIMED}", "[step {step}, ]both use {buffers:2}", example="(x + 1, x * 2), x: float32 (64, 64)"),
    Cause("outer-loops", "fused", _FUSE_TWO_NODES, f"depth {_FUSED}",
        "[step {step} of round {round}; ]they have {depth:# outer loop} in common, and inner "
        "loops each[; torch counts {shared_bytes} as shared]",
        "[step {step}, ]{depth:# outer loop} in common", example="x - x.sum(-1, keepdim=True)"),
    Cause("template-epilogue", "fused", _FUSE_TWO_NODES, _FUSED,
        "[step {step} of round {round}; ]the template {first} computes {second} of its result, before it "
        f"writes it[; torch counts {{shared_bytes}} as shared]{_TIMED}",
        "[step {step}, ]in the template {first}",
        example="torch.bmm(x, y) * 2, with max_autotune = True, max_autotune_gemm_backends = 'CPP'"),
    Cause("template-prologue", "fused", _FUSE_TWO_NODES, _FUSED,
        "[step {step} of round {round}; ]the template {second} computes {first} as it reads its operand"
        f"{_TIMED}", "[step {step}, ]in the template {second}",
        example="torch.mm(x.to(torch.float32), y), with max_autotune = True, max_autotune_gemm_backends = "
        "'TRITON', prologue_fusion = True, benchmark_epilogue_fusion = True"),
    Cause("mix-order-reductions", "fused", _FUSE_TWO_NODES, _FUSED,
        "[step {step} of round {round}; ]they reduce {buffers:4} over different dimensions, and one kernel "
        "reads it once for both", "[step {step}, ]two reductions of {buffers:2}",
        example="(x.sum(-1), x.sum(0)), with triton.mix_order_reduction = True"),
    Cause("foreach-list", "fused", "scheduler.py:Scheduler.create_foreach_nodes", "parts",
        "an operator on a list of tensors computes all of them, each in a loop of its own",
        "{parts:# part}, of a list of tensors", outcome_words=_IN_ONE,
        example="one, other = torch._foreach_add([x, y], 1); (one, other)"),
    Cause("combo-kernel", "fused", "scheduler.py:Scheduler.create_combo_kernel_nodes", "parts",
        "they are independent, and each keeps a loop of its own", "{parts:# independent part}",
        outcome_words=_IN_ONE, example="(x + 1, y + 1), with combo_kernels = True"),
    Cause("accesses-differ", "refused", _CHOICES, f"buffer buffers {_ACCESSES_OF}",
        f"{_ACCESSES}[; {{gather}}]; torch counts a buffer as shared only where both use it at the same "
        "index in the same loops, so it counts 0 bytes", "{buffer} at {first_short} and {second_short}",
        changes=(_EQUAL_ACCESS, Turn("fuse", applies="same-loops")), example="(x + 1, x.flip(0) * 2)"),
    Cause("loop-order-differs", "refused", _CHOICES, f"buffer buffers cpu both_reduce {_ACCESSES_OF}",
        f"{_ACCESSES}; these would be equal in another order of loops, and torch[ {{reorders}}], "
        "so it counts 0 bytes as shared", "{buffer} in another order of loops",
        changes=(By("loop_ordering_after_fusion", "True",
        "reorders the loops of one to make its accesses those of the other", is_default=True,
        applies=where("cpu", False)), _EQUAL_ACCESS, Turn("fuse", applies="same-loops")),
        example="exponential = x.exp(); (exponential, (exponential.t() + 1).contiguous())"),
    Cause("loop-sizes-differ", "refused", _CHOICES, f"buffer buffers cpu both_reduce {_ACCESSES_OF}",
        f"{_ACCESSES}: the same elements in the same order, but in loops of other sizes, so torch counts "
        "0 bytes as shared", "{buffer} in loops of other sizes", changes=(_EQUAL_RANGES,),
        example="(x + 1, x.view(4, 15).sum(-1))"),
    Cause("no-common-data", "refused", _CHOICES, "", "they use no common buffer, and one reduces",
        "no common buffer", example="(x.sum(-1), y.sum(-1)), with aggressive_fusion = True"),
    Cause("few-shared-bytes", "refused", _HORIZONTAL, "threshold",
        "neither reads what the other writes, and what both read[, {shared_bytes},] is fewer than the "
        "[{threshold} ]bytes from which torch fuses such nodes", "[{shared_bytes} ]shared[ < {threshold} B]",
        changes=(By("score_fusion_memory_threshold", number("shared_bytes"),
        "fuses independent nodes that share as little", present="threshold"), Turn("fuse")),
        example="(x + scalar, y * scalar)"),
    Cause("fusion-size-limit", "refused", _CHOICES, "nodes limit",
        "fused, they would be {nodes:# node}[, and a fused node has at most {limit}]",
        "{nodes:# node}[ > {limit}]", changes=(By("max_fusion_size", number("nodes"),
        "lets a fused node have as many nodes", present="limit"), Turn("fuse")),
        example="(x + 1, x * 2), x: float32 (64, 64), with max_fusion_size = 1"),
    Cause("peak-memory", "refused", _CHOICES, "reusable_elements factor",
        "each is the last reader of buffers of the same size[ ({reusable_elements:# element})]: run "
        "one after the other, the second could reuse that memory, and it is more than[ {factor} times] the "
        "{shared_bytes|'traffic'} that fusing them would save",
        "peak memory[: {reusable_elements} reusable > {factor} x {shared_bytes}]", changes=(Turn("fuse"),),
        example="(torch.mm(x, y) * bias, torch.mm(y, x) * bias)"),
    Cause("too-many-buffers", "refused", _CHOICES, "limit",
        "fused, they would read and write more buffers than the setting allows[, which is {limit}]",
        "too many buffers[, more than {limit}]", changes=(By("max_fusion_unique_io_buffers", "None",
        "removes the limit", is_default=True), Turn("fuse")),
        example="(x + 1, x * 2), x: float32 (64, 64), with max_fusion_unique_io_buffers = 2"),
    Cause("distant-nodes", "refused", _HORIZONTAL, "limit distance",
        "neither reads what the other writes, and they are {far}: "
        "fused, what they share would stay in memory for as long", "{far}",
        changes=(Turn("fuse"),), example="x + 1 and x * 2, between which torch schedules 70 other nodes"),
    Cause("devices-differ", "refused", _SCHEDULER, "first_device second_device",
        "{first} runs on {first_device}, {second} on {second_device}", "{first_device} and {second_device}",
        example="(scale + 1, x * scale), x: float32 (64, 64), scale: float32 ()"),
    Cause("dependency-differs", "refused", _VERTICAL,
        "buffer second_does first_index first_ranges second_index second_ranges",
        "[{first} writes {buffer} {first_at}, {second} {second_does|'reads'} it {second_at}: in one loop, it "
        "would {would} what is not written yet][{unmatched}]", "{buffer|'a buffer'} at another index",
        changes=(_EQUAL_ACCESS,), example="x.exp().index_add_(0, indices, x)"),
    Cause("in-place-write", "refused", _VERTICAL,
        "buffer first_index first_ranges second_index second_ranges",
        "{second} overwrites {buffer}[ {second_at}], which {first} reads[ {first_at}]: in one loop, it "
        "would overwrite what is still needed", "overwrites {buffer} in place",
        changes=(Source("out-of-place",
        "write a new tensor instead of {buffer}, and fusion has no order to keep"),),
        example="before = x.flip(0) + x; x.add_(1); before, x: float32 (64, 64)"),
    Cause("intermediate-node", "refused", _VERTICAL, "buffer node",
        "{node} has to run between them: it needs {first}, and {second} reads its {buffer}",
        "{node} runs between", remark="analysis",
        example="exponential = x.exp(); (exponential, torch.mm(exponential, x) * exponential)"),
    Cause("cycle", "refused", "scheduler.py:Scheduler.will_fusion_create_cycle", "through",
        "nodes that are fused already[ ({through:4})] need one of them, and the other needs those",
        "a cycle[ through {through:2}]", remark="analysis",
        example="what can be fused by x, or by y, but not by both: each pair has a product between"),
    Cause("loop-ranges-differ", "refused", _CPP_VERTICAL, f"vertical outer_depth {_RANGES_OF}",
        f"{_RANGES}; C++ code has one loop nest for both only if these are equal, the first runs over "
        "all that the second reduces, or one is a single loop over as many elements"
        "[; of the outer loops {outer_depth} agree]", "loops {first_loops} and {second_loops}",
        changes=(Source("equal-ranges", _EQUAL, applies=_has_as_many_points),), test="not (c1 and c2 and c3)",
        example="(x + 1, x.sum(-1))"),
    Cause("fused-ranges", "refused", _CPP_HORIZONTAL, f"vertical outer_depth {_RANGES_OF}",
        f"{_RANGES}; as many elements, but the one with a single loop is fused already, and torch "
        "divides the loop of an unfused node only",
        "loops {first_loops} and {second_loops}, one fused already", changes=(_EQUAL_RANGES,),
        test="isinstance(node_to_recomp, FusedSchedulerNode)",
        example="(x + 1, x * 2, x + bias), x: float32 (64, 64), bias: float32 (64,)"),
    Cause("sizes-differ", "refused", _CPP_HORIZONTAL,
        f"vertical outer_depth first_size second_size {_RANGES_OF}",
        f"{_RANGES}; as many elements, but torch divides the single loop of one only where both have the "
        "same size in the program, and these have {first_size} and {second_size}",
        "sizes {first_size} and {second_size}", changes=(Source("equal-size",
        "give both the same dimensions: `view` one as the other before it is computed"),),
        test=("len(ranges_set) != ?", "ranges1 != ranges2"),
        example="(x.view(-1) * 2, x + bias), x: float32 (64, 64), bias: float32 (64,)"),
    Cause("template-sibling", "refused", _CPP_HORIZONTAL, "",
        "one of them is a template, and the C++ backend fuses into it only what reads its result",
        "a template, which the other does not read",
        test="node1.is_template() or node2.is_template()",
        example="(torch.bmm(x, y), x * 2), with max_autotune = True, max_autotune_gemm_backends = 'CPP'"),
    Cause("epilogue-index-differs", "refused", _CPP_VERTICAL, "node buffers reads_at writes_at",
        "{first} is a template, and a C++ template computes with its result only what reads it and writes "
        "at one index: {node} reads {buffers:3} at {reads_at:3} and writes at {writes_at:3}",
        "reads at {reads_at:1}, writes at {writes_at:1}",
        example="torch.empty_strided((2, 64, 64), (8192, 128, 1)).copy_(torch.bmm(x, y) * 2), with "
        "max_autotune = True, max_autotune_gemm_backends = 'CPP'"),
    Cause("epilogue-reduces", "refused", _SCHEDULER, "",
        "{first} is a template, and {second} reduces: a template computes with its result only what is "
        "pointwise", "a reduction after a template",
        example="torch.bmm(x, y).sum(-1), with max_autotune = True, max_autotune_gemm_backends = 'CPP'"),
    Cause("epilogue-mutates", "refused", _SCHEDULER, "",
        "{first} is a template, and {second} writes into a buffer that is not its own (an input, or a "
        "part of another): a template computes with its result only what has a buffer of its own",
        "a template, and a write into another buffer",
        example="x.add_(torch.bmm(x, y)), with max_autotune = True, max_autotune_gemm_backends = 'CPP'"),
    Cause("epilogue-fusion-off", "refused", _SCHEDULER, "template_setting",
        "{first} is a template, whose epilogues are off", "epilogue fusion is off",
        changes=(By("epilogue_fusion", "True", "lets templates compute what follows them", is_default=True,
        applies=unless("template_setting", True)),),
        example="torch.bmm(x, y) * 2, with max_autotune = True, max_autotune_gemm_backends = 'CPP', "
        "epilogue_fusion = False"),
    Cause("prologue-fusion-off", "refused", _SCHEDULER, "",
        "{second} is a template, whose prologues are off", "prologue fusion is off",
        changes=(By("prologue_fusion", "True", "lets templates compute what they read", is_default=True),),
        example="torch.bmm(x.exp(), y), with max_autotune = True, max_autotune_gemm_backends = 'CPP', "
        "prologue_fusion = False"),
    Cause("prologue-not-pointwise", "refused", _SCHEDULER, "",
        "{second} is a template, and {first} a reduction or a template: only what is pointwise is "
        "computed as a template reads it", "not pointwise, before a template",
        example="torch.bmm(x[..., None].expand(2, 64, 64, 16).sum(-1), y), with max_autotune = True, "
        "max_autotune_gemm_backends = 'CPP'"),
    Cause("no-prologue-inputs", "refused", _SCHEDULER, "",
        "{second} is a template that takes its operands from memory only: nothing is computed as it reads "
        "them", "a template without prologues",
        example="torch.bmm(x.exp(), y), with max_autotune = True, max_autotune_gemm_backends = 'CPP'"),
    Cause("slower-when-timed", "refused", "scheduler.py:Scheduler.speedup_by_fusion",
        "slowdown first_ms second_ms fused_ms",
        "[one kernel for both took {fused_ms:.4f} ms when torch timed it, and two {first_ms:.4f} and "
        "{second_ms:.4f}][torch timed it {slowdown} times as slow][{unbuilt}]",
        "[timed: {fused_ms:.4f} ms > {first_ms:.4f} + {second_ms:.4f}][timed {slowdown}x as slow]"
        "[{unbuilt}]",
        changes=(By("benchmark_fusion", "False", "fuses without timing it, though it was slower",
        is_default=True),), example="(x + 1, x * 2), with benchmark_fusion = True"),
    Cause("horizontal-size-limit", "refused", _CPP_HORIZONTAL, "nodes limit",
        "neither needs the other, and fused they would be {nodes:# node}: the C++ backend fuses at most "
        "{limit} that way", "{nodes:# node} > {limit}", changes=(By("cpp.max_horizontal_fusion_size",
        number("nodes"), "lets the C++ backend fuse as many independent nodes", present="limit"),
        Turn("fuse")), test="len(node1.get_nodes()) + len(node2.get_nodes()) > ?", values="nodes limit",
        example="(x + 1, x * 2), with cpp.max_horizontal_fusion_size = 1"),
    Cause("no-common-outer-loop", "refused", _CPP_VERTICAL, f"outer_depth second_nest {_RANGES_OF}",
        "[{nests} is made of loop nests with common outer loops]"
        "[{first} is a reduction, whose result is {complete} its loop], so only outer loops could be "
        f"common; {_RANGES}: {{outer_depth}} of them agree[, {{later}}]",
        "{outer_why}; loops {first_loops} and {second_loops}", changes=(Source("common-outer-dimension",
        "reduce along the inner dimensions only, with those that {second} has kept",
        applies=_has_outer_loops),), example="x - x.sum(), x: float32 (64, 64)"),
    Cause("complete-reductions", "refused", _CPP_VERTICAL, _RANGES_OF,
        "both reduce to one value, and {second} needs that of {first}: there is no outer loop that they "
        "could have in common", "both reduce to one value", test="vars1 == () and vars2 == () and ?",
        example="(x - x.sum()).abs().sum()"),
    Cause("outer-loop-depth", "refused", _CPP_VERTICAL,
        f"second_nest first_depth second_depth {_RANGES_OF}",
        "the outer loops that nests have in common are {first_depth} in {first} and {second_depth} in "
        "{second}, and one fused node has one depth", "outer loops: {first_depth} and {second_depth}",
        test=("all(?type(node) is OuterLoopFusedSchedulerNode?", "outer_loop_fusion_depth >= ? and ?"),
        example="rows that fuse with their sum in one loop, and with what follows in two"),
    Cause("outer-loop-node", "refused", _CPP_HORIZONTAL, "",
        "one is made of loop nests with common outer loops, and the C++ backend adds to those only what "
        "they depend on or what depends on them", "a node of fused outer loops",
        example="(x - x.sum(-1, keepdim=True), x.sum()), x: float32 (64, 64)"),
    Cause("reductions-differ", "refused", _SIMD, _NUMELS,
        "both reduce: {first} {first_rnumel} elements each to {first_numel}, {second} {second_rnumel} to "
        "{second_numel}; a Triton kernel has one size of both",
        "reductions {first_rnumel} to {first_numel}, {second_rnumel} to {second_numel}",
        example="(x.sum(-1), x.sum())"),
    Cause("mix-order-limit", "refused", "scheduler.py:MixOrderReduction.can_fuse",
        "limit check value rows columns buffers",
        "they reduce {buffers:3} over different dimensions; torch has one kernel for two such reductions, "
        "but {unmet}", "mix-order: {unmet_short}", changes=(By("triton.mix_order_reduction", "True",
        "computes reductions over different dimensions in one kernel", is_default=True,
        applies=where("check", "off")), By("triton.mix_order_reduction_non_strict_mode", "True",
        "does so for other sizes, too; time it", applies=where("check", *_NOT_STRICT))),
        example="(x.sum(-1), x.sum(0)), with triton.mix_order_reduction = True"),
    Cause("numels-differ", "refused", _SIMD, _NUMELS,
        "{first} computes {first_numel} elements, {second} {second_numel}: a Triton kernel has one size",
        "{first_numel} and {second_numel} elements",
        example="(small + scale, x * scale), with score_fusion_memory_threshold = 4"),
    Cause("tilings-differ", "refused", _SIMD, "first_tiling second_tiling fused_tiling",
        "{first} is best tiled by ({first_tiling}), {second} by ({second_tiling}), and both by "
        "({fused_tiling}): fused, one would lose its tiling",
        "tilings ({first_tiling}) and ({second_tiling})",
        changes=(By("triton.tiling_prevents_pointwise_fusion", "False", _TILING),),
        example="(x * scale + y.t(), v * scale + w.t()), with score_fusion_memory_threshold = 4"),
    Cause("tiling-not-of-reduction", "refused", _SIMD, _NUMELS,
        "one reduces, and the best tiling of the other is not possible in its kernel",
        "a tiling that the reduction does not allow", changes=(By("triton.tiling_prevents_reduction_fusion",
        "False", _TILING),),
        example="(x * scale + y.t(), (v * scale).sum(-1)), with score_fusion_memory_threshold = 4"),
    Cause("ranges-do-not-split", "refused", _SIMD, _NUMELS,
        "as many elements ({first_numel} x {first_rnumel} and {second_numel} x {second_rnumel}), but the "
        "loops of the one that does not reduce cannot be divided into rows and what is reduced of them",
        "ranges that do not split",
        example="(x * scale, (rows * scale).sum(-1)), with score_fusion_memory_threshold = 4"),
    Cause("numel-of-neither", "refused", _SIMD, _NUMELS,
        "{first} has {first_numel} x {first_rnumel} elements, {second} {second_numel} x {second_rnumel}: "
        "a node beside a reduction has to have one for each that is reduced, or one for each result",
        "{first_numel} x {first_rnumel} and {second_numel} x {second_rnumel} elements",
        example="(small + scale, (x * scale).sum()), with score_fusion_memory_threshold = 4"),
    Cause("lower-priority", "postponed", _SCHEDULER, "candidates kept",
        "{kept} of the {candidates} possible pairs of that round came first: the C++ backend fuses outer "
        "loops only in a round in which nothing else can be fused", "after {kept} of {candidates} pairs",
        example="total = x.sum(-1, keepdim=True); (x - total, x * total), x: float32 (64, 64)"),
    Cause("fused-with-another", "postponed", _SCHEDULER, "group",
        "{group:4} became one node before their turn", "{group:3} came first",
        example="(x + 1, x * 2, x * 3), x: float32 (64, 64)"),
    Cause("extern-kernel", "not-tried", _UNFUSABLE_NODE, "kernel result_of",
        "[{kernel} is called][it is one of the results of {result_of}], which has no generated loop to "
        "fuse with", "[calls {kernel}][a result of {result_of}]", outcome_words=_IN_NO_PAIR,
        example="torch.mm(x, x) * 2, x: float32 (64, 64)"),
    Cause("no-kernel", "not-tried", _UNFUSABLE_NODE, "kernel",
        "it runs nothing (its parts write where its result is): there is no loop to fuse with",
        "runs nothing", outcome_words=_IN_NO_PAIR,
        example="torch.cat((x.exp(), y.sum(-1, keepdim=True).expand(64, 64)))"),
    Cause("no-common-buffer", "not-tried", _GET_POSSIBLE_FUSIONS, "pairs",
        "torch tries only nodes that use a common buffer, and they use none",
        "no common buffer[ ({pairs:# pair})]", example="(x + 1, y + 1)"),
    Cause("pair-limit", "not-tried", _GET_POSSIBLE_FUSIONS, "buffer limit pairs distance",
        "all use {buffer}, and torch tries a node with the next {limit} that use the same buffer[: this "
        "one is number {distance}]",
        "[{distance} users apart > {limit}][{pairs:# pair}, more than {limit} users apart]",
        remark="missed", changes=(By("max_fusion_buffer_group_pairwise_attempts", _pairwise_attempts,
        "tries nodes that are as far apart", present="limit"),),
        example="(x + 1, x.flip(0) * 2, x.flip(1) * 3), with max_fusion_buffer_group_pairwise_attempts = 1"),
    Cause("loop-tiles-differ", "undone", _CHECK_OUTER_FUSION_LOOP_LEVEL_ATTR,
        "first_nest second_nest loop first_steps second_steps first_range second_range",
        "the vectorised code of {first_nest} advances by {first_steps} along {loop}, which they were to "
        "have in common, and that of {second_nest} by {second_steps}",
        "along {loop} by {first_steps} and by {second_steps}",
        example="rows that fuse with their sum in one loop, and with what follows in two"),
    Cause("inner-range-dominates", "undone", _CHECK_OUTER_FUSION_LOOP_LEVEL_ATTR,
        "factor nest inner_range outer_range",
        "an inner loop of {nest} has {inner_range} steps, more than {factor} times the {outer_range} of "
        "the common outer loops: apart, inner loops can be run in parallel",
        "inner range {inner_range} > {factor} x {outer_range}", example="x - x.sum(-1, keepdim=True)"),
    Cause("other", "refused", "scheduler.py:ForeachKernelSchedulerNode.can_fuse", "text",
        "in torch's words: {text|'(it says nothing)'}[. {meaning}]", "{text|'torch does not say why'}",
        example="one, other = torch._foreach_add([x, y], 1); (one, other, x * 2)"),
)  # fmt: skip

KIND = Kind(
    "fusion", "which nodes are fused, and what keeps others apart",
    OUTCOMES, OPERANDS, CAUSES, common="shared_bytes", derived=_derived,
    derives="first_loops second_loops first_at second_at first_short second_short would outer_why nests "
    "complete unmet unmet_short reorders gather others far unbuilt "
    "unmatched later meaning",
)  # fmt: skip
