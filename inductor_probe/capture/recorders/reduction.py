"""How each reduction is generated: unrolled, split in two, by which hint; on a GPU in one tile or in a loop.

A variance takes two passes, or one by Welford's algorithm (lowering.py, `use_two_step_variance`).

torch/_inductor/ir.py, `Reduction.create`: a reduction of few elements becomes a pointwise sum of them; any
other asks `Reduction.num_splits` for a hint and a number of parts. The hint comes from sizes, or from the
strides that its reads have along the reduced dimensions: for example `x.sum(0)` of a contiguous 4096 x 64
reads with stride 64, which is OUTER. The C++ backend neither splits nor reads the
hint. A Triton kernel takes
the hint of its reductions when it is generated (codegen/simd_kernel_features.py, `get_reduction_hint`), and
holds all elements in a tile or loops over them (choices.py, `should_use_persistent_reduction`).

`num_splits` is asked by others, too (`use_two_step_variance` asks how it would be): then no reduction is made
of the answer, and nothing is recorded.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.branches import CallPath, calls, matches
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_branch,
    decides,
    fx_in_lowering,
    hint_of,
    inductor_caller,
    inner_path,
    is_gpu,
    names_of,
    path_of_name,
    size_of,
    tests_of,
)
from inductor_probe.model.decision import CauseCode, Outcome, TorchFrame

_IR, _CHOICES, _TRITON = "torch._inductor.ir", "torch._inductor.choices", "torch._inductor.codegen.triton"
_FEATURES = "torch._inductor.codegen.simd_kernel_features"
_TYPE = 6  # place of `reduction_type` among the arguments of num_splits
_ONE_PART = ("sizes-not-known", "few-elements", "many-outputs", "no-strided-read", "matrix-product")
"""With the hint DEFAULT, num_splits answers one part."""
_SPLIT_FACTOR = "InductorChoices.reduction_split_factor"
_NUM_SPLITS = "Reduction.num_splits"
_PERSISTENT = "InductorChoices.should_use_persistent_reduction"
_COOPERATIVE = "InductorChoices.should_use_cooperative_reduction"
_FEW, _MANY = "reduction_numel_hint <= ?", "numel_hint >= ?"


@dataclass
class _Question:
    """What is seen while a reduction is made. `strides`: of each read, along the reduced dimensions.

    path: which way `num_splits` went. sizes, device: of a scan, whose outputs and elements it gets by name.
    """

    place: TorchFrame | None = None
    answer: tuple[Any, Any] | None = None
    path: CallPath | None = None
    type: str = ""
    is_cooperative: bool = False
    sizes: tuple[Sequence[Any], Sequence[Any]] = ((), ())
    device: Any = None
    strides: list[list[int]] = field(default_factory=list)


@watches(_CHOICES, _SPLIT_FACTOR)
class Reductions(Recorder):
    """Keeps what is seen while a reduction or a scan is made, of each that is being made."""

    KIND = "reduction"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._open: list[_Question] = []

    @sees(_IR, "ArgReduction.create", "OnlineSoftmaxReduction.create", may_lack=True)  # 2.11: one of both
    @sees(_IR, "Reduction.create", "WelfordReduction.create")
    def created(self, call: Call, _: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Record what was decided of a reduction."""
        self._open.append(_Question())
        try:
            yield
            self._record(call.place, self._open[-1], call.result, args, kwargs)
        finally:
            self._open.pop()

    @sees(_IR, _NUM_SPLITS, watches=True)
    def splits_counted(self, call: Call, *args: Any, **kwargs: Any) -> None:
        """Remember the hint and the number of parts that `num_splits` answered."""
        if self._open:
            question = self._open[-1]
            question.place, question.path, question.answer = call.place, call.path, call.result
            question.type = str(args[_TYPE] if len(args) > _TYPE else kwargs.get("reduction_type"))
            question.sizes = kwargs.get("ranges", ()), kwargs.get("reduction_ranges", ())
            question.device = kwargs.get("device")

    @sees(_CHOICES, _COOPERATIVE, watches=True)
    def cooperation_decided(self, call: Call, *_: Any, **__: Any) -> None:
        """Remember that all blocks work on a reduction together, so that it is not split."""
        if self._open and call.result:
            self._open[-1].is_cooperative = True

    @sees("torch._inductor.sizevars", "SizeVarAllocator.stride_hints")
    def strides_seen(self, call: Call, *_: Any, **__: Any) -> None:
        """Remember the strides of a read, which `num_splits` asks for one by one."""
        if self._open and inductor_caller().f_code.co_name == "num_splits":
            self._open[-1].strides.append([int(stride) for stride in call.result])

    def _record(self, place: TorchFrame, question: _Question, result: Any, args: Any, kwargs: Any) -> None:
        # create(device, dst_dtype, src_dtype, inner_fn, ranges, reduction_ranges, ...); WelfordReduction
        # takes one dtype and several functions. The first two lists of sizes are the ranges.
        ranges = [list(value) for value in (*args, *kwargs.values()) if _is_sizes(value)]
        if len(ranges) < 2:
            return
        elements, outputs = math.prod(ranges[1]), math.prod(ranges[0])
        device = args[0] if args else kwargs["device"]
        operands: Operands = {
            "elements": size_of(elements), "outputs": size_of(outputs), "device": str(device.type),
        }  # fmt: skip
        if question.answer is None:
            if _is_made(result, "Reduction"):  # whose parts nobody asked for (config.numerics)
                hint = result.data.data.reduction_hint.name
                self._of_node(hint, Cause("unlisted-test", {**operands, "hint": hint}), place, result)
            if _is_made(result, "Pointwise"):  # torch 2.11 asks about an online softmax before it makes one
                cause = Cause("single-element", operands)
                if hint_of(elements, 0) > 1:
                    threshold = int(sys.modules["torch._inductor.config"].unroll_reductions_threshold)
                    cause = Cause("below-unroll-threshold", {**operands, "threshold": threshold})
                self._of_node("unrolled", cause, place, result)
            return
        if question.type == "welford_combine":
            return  # the second layer of a reduction that was split: that was decided with it
        hint, parts = question.answer[0].name, int(question.answer[1])
        operands |= {"hint": hint, "parts": parts}
        code, more = _cause(question, device)
        place = question.place or place
        self._of_node(hint, Cause(code, operands | more, tests_of(question.path)), place, result)
        code, more = _cause_of_split(question, (code, more), device)
        cause = Cause(code, operands | more, tests_of(_within(question.path, _SPLIT_FACTOR)))
        self._of_node("not-split" if parts in (0, 1) else "split", cause, place, result)

    def _of_node(self, outcome: Outcome, cause: Cause, place: TorchFrame, result: Any = None) -> None:
        """Record a decision about the FX node in lowering, or about the buffer that its result becomes."""
        node = fx_in_lowering()
        names = ((node.name,),) if node is not None else ()
        self.record(
            outcome,
            cause,
            place,
            *names,
            subject_type="fx",
            named=None if result is None else _name_of(result),
        )

    def _of_kernel(self, outcome: Outcome, cause: Cause, call: Call, features: Any, question: str) -> None:
        names = names_of(features.scheduler_nodes())
        self.record(outcome, cause, call.place, names, key=(names, question))

    @sees(_FEATURES, "SIMDKernelFeatures.get_reduction_hint")
    def hint_chosen(self, call: Call, features: Any, *scores: Any, **named: Any) -> None:
        """Record the hint that a Triton kernel is generated with. Others ask what it would be, too."""
        reductions, chosen = features.reduction_nodes(), call.result.name
        if not inductor_caller().f_code.co_filename.endswith("codegen/triton.py") or not reductions:
            return
        hints = [node.node.data.reduction_hint.name for node in reductions]
        with_reads = [features.reduction_hint(node).name for node in reductions]
        operands: Operands = {"hints": tuple(dict.fromkeys(hints))}
        agreed = with_reads[0] if len(set(with_reads)) == 1 else "DEFAULT"
        if chosen == agreed:
            code = "hint-of-its-reductions"
            if len(set(with_reads)) > 1:
                code = "hints-differ"
            elif with_reads != hints:
                code = "contiguous-nodes"
        elif chosen == "DEFAULT":
            code = "non-contiguous-pointwise"
        else:
            code = "coalesced-along-reduction"
            asked = (*scores, *named.values(), getattr(features, "tiling_scores", None))
            score = next((value for value in asked if isinstance(value, dict)), {})
            operands |= {f"score_{key}": size_of(value) for key, value in score.items()}
        self._of_kernel(chosen, Cause(code, operands), call, features, "hint")

    @sees(_TRITON, "TritonKernel.has_persistent_RBLOCK")
    def tile_known(self, call: Call, elements: Any) -> None:
        """Record that a Triton kernel loops, since no tile is known that holds all; one that sorts may not.

        `TritonKernel.has_persistent_RBLOCK` is asked before `should_use_persistent_reduction`.
        """
        features, is_known = inductor_caller().f_locals.get("kernel_features"), call.result
        if features is None or (is_known and not features.contains_op("sort")):
            return
        cause = Cause("sort" if is_known else "symbolic-elements", {"elements": size_of(elements)})
        self._of_kernel("persistent" if is_known else "looped", cause, call, features, "loop")

    @sees("torch._inductor.lowering", "use_two_step_variance", watches=True)
    def variance_decided(self, call: Call, value: Any, axis: Any, *_: Any, **__: Any) -> None:
        """Record whether mean and variance are two passes, or one of Welford's."""
        sizes = list(value.get_size())
        axes = [axis] if isinstance(axis, int) else list(axis or range(len(sizes)))
        code, more = _cause_of_variance(call.path, call.result)
        elements = size_of(math.prod(sizes[one] for one in axes))
        operands = {"elements": elements, "device": value.get_device().type, **more}
        outcome: Outcome = "two-passes" if call.result else "one-pass"
        self._of_node(outcome, Cause(code, operands, tests_of(call.path)), call.place)

    @sees(_IR, "Scan.create")
    def scan_created(self, call: Call, *_: Any, **__: Any) -> Iterator[None]:
        """Record whether several blocks scan a row together."""
        self._open.append(_Question())
        try:
            yield
            self._record_scan(self._open[-1], call.result)
        finally:
            self._open.pop()

    def _record_scan(self, question: _Question, result: Any) -> None:
        """Record the answer of `num_splits` to a scan, which looks at sizes and strides alone."""
        if question.answer is None or question.place is None or result[0] is None:
            return  # a copy of one element, or a call of torch's own kernel
        elements, outputs = math.prod(question.sizes[1]), math.prod(question.sizes[0])
        operands: Operands = {
            "elements": size_of(elements), "outputs": size_of(outputs), "hint": question.answer[0].name,
        }  # fmt: skip
        is_split = type(result[0].data.data.data).__name__ == "SplitScan"
        code, more = _cause(question, question.device)
        if code not in _ONE_PART:
            code, more = _cause_by_size(question.path, question.device)
        parts = int(question.answer[1])
        if len(result) > 1 and parts > 1 and code == "work-for-processors":
            code, more = "several-values", {"values": len(result)}
        if is_split != (code == "work-for-processors" and parts > 1):
            code, more = "unlisted-test", {}
        cause = Cause(code, operands | more)
        self._of_node("split-scan" if is_split else "whole-scan", cause, question.place, result)

    @sees(_TRITON, "TritonKernel.should_use_cooperative_reduction", follows=True)
    def kernel_cooperates(self, call: Call, kernel: Any) -> None:
        """Record whether the blocks of a Triton kernel work on each of its reductions together.

        `TritonKernel.should_use_cooperative_reduction`: where the setting is off, only what it would turn.
        """
        path, answer = call.path_of(_COOPERATIVE), call.result
        features = kernel.features
        if not kernel.inside_reduction:
            return
        operands: Operands = {
            "elements": size_of(features.reduction_numel), "outputs": size_of(features.numel)
        }  # fmt: skip
        code = cause_of_branch(path, "reduction", _COOPERATIVE)
        if code == "cooperation-forced":
            operands = {}
        elif code == "cooperative-reductions-off":
            would, limit = _would_cooperate(kernel)
            if not would:
                return
            operands |= limit
        elif limit := _cooperative_limit(path):
            if not answer and not isinstance(operands["elements"], int):
                return  # torch cannot prove that symbolic elements are many
            code, operands = "work-for-blocks" if answer else "elements-below-limit", operands | limit
        elif path is not None and (most := path.tested("xhint <= ?")) is not None and not most.truth:
            code = "outputs-above-limit"
            operands = {"outputs": operands["outputs"], "outputs_limit": most.values[1]}
        outcome: Outcome = "cooperative" if answer else "not-cooperative"
        self._of_kernel(outcome, Cause(code, operands, tests_of(path)), call, features, "blocks")

    @sees(_CHOICES, _PERSISTENT, watches=True)
    def persistence_decided(self, call: Call, features: Any, *_: object, **__: object) -> None:
        """Record whether a Triton kernel holds all elements of a reduction at once."""
        path, elements = call.path, size_of(features.reduction_numel)
        compared = path.tested("V.graph.sizevars.statically_known_leq(?") if path is not None else None
        operands: Operands = {"elements": elements}
        if compared is not None:
            operands["limit"] = compared.values[1]
        operands["hint"] = features.get_reduction_hint().name
        code = cause_of_branch(path, "reduction", _PERSISTENT)
        if code == "unlisted-test" and path is not None:
            if call.result:
                code = "elements-fit-a-tile" if compared is not None and compared.truth else code
            elif not isinstance(elements, int):
                return  # bounded, but for some of its sizes most of a tile would be empty
            elif compared is not None:
                code = "elements-exceed-a-tile"
        outcome: Outcome = "persistent" if call.result else "looped"
        self._of_kernel(outcome, Cause(code, operands, tests_of(path)), call, features, "loop")


def _within(path: CallPath | None, function: str) -> CallPath | None:
    return inner_path(path.inner, function) if path is not None else None


def _cause(question: _Question, device: Any) -> tuple[CauseCode, Operands]:
    """Return why `num_splits` answered with its hint: by the branch in which it returned."""
    path = question.path
    if path is None:
        return "unlisted-test", {}
    if (reads := path.tested("num_inner > num_outer")) is not None:
        texts = tuple(str(strides).strip("[]") for strides in question.strides)
        return ("contiguous-reads" if reads.truth else "strided-reads"), {
            "reads": len(texts), "inner": reads.values[0], "strides": texts,
        }  # fmt: skip
    if decides(path, _FEW) and (few := path.tested(_FEW)) is not None:
        return "few-elements", {"elements_limit": few.values[1]}
    if decides(path, _MANY) and (many := path.tested(_MANY)) is not None:
        return "many-outputs", {"outputs_limit": many.values[1], "processors": _processors(device) or 0}
    return cause_of_branch(path, "reduction", _NUM_SPLITS), {}


def _cause_of_split(
    question: _Question, of_hint: tuple[CauseCode, Operands], device: Any
) -> tuple[CauseCode, Operands]:
    """Return what decided about the parts: what leaves the hint DEFAULT leaves one part, too."""
    config = sys.modules["torch._inductor.config"]
    parts = question.answer[1] if question.answer is not None else 1
    path = question.path
    if parts == -1:
        return "ranges-of-its-input", {}
    if parts not in (0, 1):
        return "work-for-processors", {"processors": _processors(device) or 0}
    if of_hint[0] == "sizes-not-known":
        return of_hint
    if not is_gpu(device) and config.cpu_backend == "cpp":
        return "cpu-backend", {}
    if of_hint[0] in _ONE_PART or path is None:
        return of_hint
    if limit := _cooperative_limit(_within(path, _COOPERATIVE)) if question.is_cooperative else {}:
        return "cooperative-reduction", limit
    alone = path.tested("V.graph.has_feature(device, BackendFeature.REDUCE_TO_SINGLE_ELEMENT)")
    is_asked = path.tested("V.choices.should_use_cooperative_reduction(?") is not None
    if question.is_cooperative or (alone is not None and alone.truth and not is_asked):
        return "cooperative-reduction", {}
    types = path.tested("reduction_type not in ?")
    if types is not None and not types.truth:
        return "index-reduction", {"type": question.type}
    switch = path.tested("config.split_reductions")
    if switch is not None and not switch.truth:
        return "split-reductions-off", {}
    return _cause_by_size(path, device)


def _cause_by_size(path: CallPath | None, device: Any) -> tuple[CauseCode, Operands]:
    """Return what decided in `reduction_split_factor`."""
    factor, processors = _within(path, _SPLIT_FACTOR), _processors(device) or 0
    if factor is None:
        return "unlisted-test", {}
    outputs, elements = factor.tested(_MANY), factor.tested(_FEW)
    if outputs is not None and outputs.truth:
        return "enough-outputs", {"outputs_limit": outputs.values[1], "processors": processors}
    if elements is not None and elements.truth:
        return "short-reduction", {"elements_limit": elements.values[1]}
    return "work-for-processors", {"processors": processors}


def _cooperative_limit(path: CallPath | None) -> Operands:
    """Return from how many elements on blocks work together, where torch compared them."""
    known = path.tested("V.graph.sizevars.statically_known_geq(?") if path is not None else None
    return {"elements_limit": known.values[1]} if known is not None else {}


def _would_cooperate(kernel: Any) -> tuple[bool, Operands]:
    """Return whether blocks would work together if the setting allowed it, as torch answers with it."""
    ask = inspect.unwrap(type(kernel).should_use_cooperative_reduction)
    with (
        sys.modules["torch._inductor.config"].patch({"triton.cooperative_reductions": True}),
        calls() as made,
    ):
        would = bool(ask(kernel))
    return would, _cooperative_limit(path_of_name(_COOPERATIVE, made))


def _cause_of_variance(path: CallPath | None, is_two_step: bool) -> tuple[CauseCode, Operands]:
    """Return why `use_two_step_variance` answered so, and the threshold that it compared."""
    if path is None:
        return "unlisted-test", {}
    most = path.tested("reduction_numel > ?")
    if (fewer := path.tested("int(reduction_numel) < ?")) is not None:  # torch 2.11
        threshold: Operands = {"threshold": int(fewer.values[1]) - 1}
        is_above = not fewer.truth
    else:
        threshold = {"threshold": most.values[1], **_setting(path, "threshold")} if most is not None else {}
        is_above = most is not None and most.truth
    above_few, below = map(path.tested, _AROUND_MINIMUM)
    if is_two_step:
        if above_few is not None and not above_few.truth:  # as few as that always do
            few = _setting(path, above_few.text.partition(" ")[0])
            return "elements-within-threshold", {"threshold": above_few.values[0], **few}
        return "elements-within-threshold", threshold
    if not threshold:
        return "symbolic-elements", {}
    if is_above:
        return "elements-above-threshold", threshold
    if any(matches(one.text, "sympy_product(ranges) ?") for one in path.deciding()):
        return "single-output", {}
    if above_few is not None and above_few.truth and below is not None and below.truth:
        return "elements-below-minimum", {
            **threshold, "minimum": below.values[1], **_setting(path, "min_numel"),
        }  # fmt: skip
    return "sum-would-be-split", threshold


def _setting(path: CallPath, name: str) -> Operands:
    """Return the setting that a name has the value of, or that it is; none where it has another value."""
    _, is_setting, setting = path.source(name).partition("config.")
    return {"setting": setting} if is_setting else {}


_AROUND_MINIMUM = ("config.unroll_reductions_threshold < reduction_numel", "reduction_numel < min_numel")


def _is_made(result: Any, kind: str) -> bool:
    """Return whether a `TensorBox`, or the first of several, is of a class of ir.py."""
    first = result[0] if isinstance(result, (list, tuple)) else result
    value = getattr(getattr(first, "data", None), "data", None)
    return isinstance(value, getattr(sys.modules["torch._inductor.ir"], kind))


def _is_sizes(value: Any) -> bool:
    """Return whether an argument is a list of sizes, not one of functions or of tensors."""
    sympy = sys.modules["sympy"]
    return isinstance(value, (list, tuple)) and all(isinstance(size, (int, sympy.Expr)) for size in value)


def _processors(device: Any) -> int | None:
    """Return the number of multiprocessors of a GPU, or of a CPU's cores, as torch counts them."""
    hints: Any = sys.modules.get("torch._inductor.runtime.hints")
    count = hints.DeviceProperties.create(device).multi_processor_count if hints else None
    return None if count is None else int(count)


def _name_of(result: Any) -> Callable[[], str | None]:
    """Return what tells the name of the buffer that a `TensorBox` became, once it is one."""

    def name() -> str | None:
        first = result[0] if isinstance(result, (list, tuple)) else result
        buffer = getattr(getattr(first, "data", None), "data", None)  # of the TensorBox's StorageBox
        return getattr(buffer, "name", None)

    return name
