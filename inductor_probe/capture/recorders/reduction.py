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

import functools
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.branches import CallPath, calls, matches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    UnknownPathError,
    cause_of_branch,
    decides,
    hint_of,
    inductor_caller,
    inner_path,
    is_gpu,
    path_of_name,
    place_of,
    size_of,
    tests_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "reduction"

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


@dataclass
class _Recorder:
    log: DecisionLog
    open: list[_Question] = field(default_factory=list)

    def around_create(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """Return `Reduction.create`, or that of a subclass, so that what it decided is recorded."""
        place = place_of(create)

        def create_and_record(cls: Any, *args: Any, **kwargs: Any) -> Any:
            self.open.append(_Question())
            try:
                result = create(cls, *args, **kwargs)
                self.log.safely(self._record, place, self.open[-1], result, args, kwargs)
            finally:
                self.open.pop()
            return result

        return create_and_record

    def splits_counted(
        self, place: TorchFrame, path: CallPath | None, answer: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Remember the hint and the number of parts that `num_splits` answered."""
        if self.open:
            self.open[-1].place, self.open[-1].path, self.open[-1].answer = place, path, answer
            self.open[-1].type = str(args[_TYPE] if len(args) > _TYPE else kwargs.get("reduction_type"))
            self.open[-1].sizes = kwargs.get("ranges", ()), kwargs.get("reduction_ranges", ())
            self.open[-1].device = kwargs.get("device")

    def cooperation_decided(self, _: TorchFrame, is_cooperative: bool, *__: Any, **___: Any) -> None:
        """Remember that all blocks work on a reduction together, so that it is not split."""
        if self.open and is_cooperative:
            self.open[-1].is_cooperative = True

    def strides_seen(self, _: TorchFrame, strides: Any, *__: Any, **___: Any) -> None:
        """Remember the strides of a read, which `num_splits` asks for one by one."""
        if self.open and inductor_caller().f_code.co_name == "num_splits":
            self.open[-1].strides.append([int(stride) for stride in strides])

    def _record(self, place: TorchFrame, question: _Question, result: Any, args: Any, kwargs: Any) -> None:
        # create(device, dst_dtype, src_dtype, inner_fn, ranges, reduction_ranges, ...); WelfordReduction
        # takes one dtype and several functions. The first two lists of sizes are the ranges.
        ranges = [list(value) for value in (*args, *kwargs.values()) if _is_sizes(value)]
        if len(ranges) < 2:
            return
        elements, outputs = math.prod(ranges[1]), math.prod(ranges[0])
        device = args[0] if args else kwargs["device"]
        operands: dict[str, Operand] = {
            "elements": size_of(elements), "outputs": size_of(outputs), "device": str(device.type),
        }  # fmt: skip
        if question.answer is None:
            if _is_made(result, "Reduction"):
                raise UnknownPathError("a reduction whose parts nobody asked for")  # config.numerics
            if _is_made(result, "Pointwise"):  # torch 2.11 asks about an online softmax before it makes one
                self._record_unrolled(place, result, elements, operands)
            return
        if question.type == "welford_combine":
            return  # the second layer of a reduction that was split: that was decided with it
        hint, parts = question.answer[0].name, int(question.answer[1])
        operands |= {"hint": hint, "parts": parts}
        cause, more = _cause(question, device)
        decided = question.place or place
        name = _name_of(result)
        self.log.record(
            KIND, _fx_node(), hint, cause, decided, operands=operands | more, subject_type="fx", named=name,
            tests=tests_of(question.path),
        )  # fmt: skip
        outcome: Outcome = "not-split" if parts in (0, 1) else "split"
        cause, more = _cause_of_split(question, (cause, more), device)
        self.log.record(
            KIND, _fx_node(), outcome, cause, decided, operands=operands | more, subject_type="fx",
            named=name, tests=tests_of(_within(question.path, _SPLIT_FACTOR)),
        )  # fmt: skip

    def _record_unrolled(
        self, place: TorchFrame, result: Any, elements: Any, operands: dict[str, Operand]
    ) -> None:
        cause: CauseCode = "single-element"
        if hint_of(elements, 0) > 1:
            config = sys.modules["torch._inductor.config"]
            cause = "below-unroll-threshold"
            operands["threshold"] = int(config.unroll_reductions_threshold)
        self.log.record(
            KIND, _fx_node(), "unrolled", cause, place, operands=operands, subject_type="fx",
            named=_name_of(result),
        )  # fmt: skip

    def hint_chosen(self, place: TorchFrame, chosen: Any, features: Any, *scores: Any, **named: Any) -> None:
        """Record the hint that a Triton kernel is generated with. Others ask what it would be, too."""
        caller = inductor_caller()
        reductions = features.reduction_nodes()
        if not caller.f_code.co_filename.endswith("codegen/triton.py") or not reductions:
            return
        hints = [node.node.data.reduction_hint.name for node in reductions]
        with_reads = [features.reduction_hint(node).name for node in reductions]
        names = tuple(node.get_name() for node in features.scheduler_nodes())
        operands: dict[str, Operand] = {"hints": tuple(dict.fromkeys(hints))}
        agreed = with_reads[0] if len(set(with_reads)) == 1 else "DEFAULT"
        if chosen.name == agreed:
            cause: CauseCode = "hint-of-its-reductions"
            if len(set(with_reads)) > 1:
                cause = "hints-differ"
            elif with_reads != hints:
                cause = "contiguous-nodes"
        elif chosen.name == "DEFAULT":
            cause = "non-contiguous-pointwise"
        else:
            cause = "coalesced-along-reduction"
            asked = (*scores, *named.values(), getattr(features, "tiling_scores", None))
            score = next((value for value in asked if isinstance(value, dict)), {})
            operands |= {f"score_{key}": size_of(value) for key, value in score.items()}
        self.log.record(KIND, (names,), chosen.name, cause, place, operands=operands, key=(names, "hint"))

    def tile_known(self, place: TorchFrame, is_known: bool, elements: Any) -> None:
        """Record that a Triton kernel loops, since no tile is known that holds all; one that sorts may not.

        `TritonKernel.has_persistent_RBLOCK` is asked before `should_use_persistent_reduction`.
        """
        frame = inductor_caller()
        features = frame.f_locals.get("kernel_features")
        if features is None or (is_known and not features.contains_op("sort")):
            return
        names = tuple(node.get_name() for node in features.scheduler_nodes())
        operands: dict[str, Operand] = {"elements": size_of(elements)}
        outcome: Outcome = "persistent" if is_known else "looped"
        cause: CauseCode = "sort" if is_known else "symbolic-elements"
        self.log.record(KIND, (names,), outcome, cause, place, operands=operands, key=(names, "loop"))

    def variance_decided(
        self, place: TorchFrame, path: CallPath | None, is_two_step: bool, value: Any, axis: Any, *_: Any,
        **__: Any,
    ) -> None:  # fmt: skip
        """Record whether mean and variance are two passes, or one of Welford's."""
        sizes = list(value.get_size())
        axes = [axis] if isinstance(axis, int) else list(axis or range(len(sizes)))
        device = value.get_device().type
        cause, more = _cause_of_variance(path, is_two_step)
        operands: dict[str, Operand] = {
            "elements": size_of(math.prod(sizes[one] for one in axes)), "device": device, **more,
        }  # fmt: skip
        outcome: Outcome = "two-passes" if is_two_step else "one-pass"
        self.log.record(
            KIND,
            _fx_node(),
            outcome,
            cause,
            place,
            operands=operands,
            subject_type="fx",
            tests=tests_of(path),
        )

    def around_scan(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """Return `Scan.create` so that it is recorded whether several blocks scan a row together."""

        def create_and_record(cls: Any, *args: Any, **kwargs: Any) -> Any:
            self.open.append(_Question())
            try:
                result = create(cls, *args, **kwargs)
                self.log.safely(self._record_scan, self.open[-1], result)
            finally:
                self.open.pop()
            return result

        return create_and_record

    def _record_scan(self, question: _Question, result: Any) -> None:
        """Record the answer of `num_splits` to a scan, which looks at sizes and strides alone."""
        if question.answer is None or question.place is None or result[0] is None:
            return  # a copy of one element, or a call of torch's own kernel
        elements, outputs = math.prod(question.sizes[1]), math.prod(question.sizes[0])
        hint = question.answer[0].name
        operands: dict[str, Operand] = {
            "elements": size_of(elements), "outputs": size_of(outputs), "hint": hint,
        }  # fmt: skip
        is_split = type(result[0].data.data.data).__name__ == "SplitScan"
        cause, more = _cause(question, question.device)
        if cause not in _ONE_PART:
            cause, more = _cause_by_size(question.path, question.device)
        parts = int(question.answer[1])
        if len(result) > 1 and parts > 1 and cause == "work-for-processors":
            cause, more = "several-values", {"values": len(result)}
        if is_split != (cause == "work-for-processors" and parts > 1):
            raise UnknownPathError(f"a scan of {len(result)} values in {parts} parts, though {cause}")
        outcome: Outcome = "split-scan" if is_split else "whole-scan"
        self.log.record(
            KIND, _fx_node(), outcome, cause, question.place, operands=operands | more, subject_type="fx",
            named=_name_of(result),
        )  # fmt: skip

    def kernel_cooperates(self, place: TorchFrame, path: CallPath | None, answer: bool, kernel: Any) -> None:
        """Record whether the blocks of a Triton kernel work on each of its reductions together.

        `TritonKernel.should_use_cooperative_reduction`: where the setting is off, only what it would turn.
        """
        features = kernel.features
        if not kernel.inside_reduction:
            return
        operands: dict[str, Operand] = {
            "elements": size_of(features.reduction_numel), "outputs": size_of(features.numel)
        }  # fmt: skip
        cause = cause_of_branch(path, "reduction", _COOPERATIVE)
        if cause == "cooperation-forced":
            operands = {}
        elif cause == "cooperative-reductions-off":
            would, limit = _would_cooperate(kernel)
            if not would:
                return
            operands |= limit
        elif limit := _cooperative_limit(path):
            if not answer and not isinstance(operands["elements"], int):
                return  # torch cannot prove that symbolic elements are many
            cause, operands = "work-for-blocks" if answer else "elements-below-limit", operands | limit
        elif path is not None and (most := path.tested("xhint <= ?")) is not None and not most.truth:
            cause = "outputs-above-limit"
            operands = {"outputs": operands["outputs"], "outputs_limit": most.values[1]}
        names = tuple(node.get_name() for node in features.scheduler_nodes())
        outcome: Outcome = "cooperative" if answer else "not-cooperative"
        self.log.record(
            KIND, (names,), outcome, cause, place, operands=operands, key=(names, "blocks"),
            tests=tests_of(path),
        )  # fmt: skip

    def persistence_decided(
        self, place: TorchFrame, path: CallPath | None, is_persistent: bool, features: Any, *_: object,
        **__: object,
    ) -> None:  # fmt: skip
        """Record whether a Triton kernel holds all elements of a reduction at once."""
        names = tuple(node.get_name() for node in features.scheduler_nodes())
        elements = size_of(features.reduction_numel)
        compared = path.tested("V.graph.sizevars.statically_known_leq(?") if path is not None else None
        operands: dict[str, Operand] = {"elements": elements}
        if compared is not None:
            operands["limit"] = compared.values[1]
        operands["hint"] = features.get_reduction_hint().name
        cause = cause_of_branch(path, "reduction", _PERSISTENT)
        if cause == "unlisted-test" and path is not None:
            if is_persistent:
                cause = "elements-fit-a-tile" if compared is not None and compared.truth else cause
            elif not isinstance(elements, int):
                return  # bounded, but for some of its sizes most of a tile would be empty
            elif compared is not None:
                cause = "elements-exceed-a-tile"
        outcome: Outcome = "persistent" if is_persistent else "looped"
        self.log.record(
            "reduction", (names,), outcome, cause, place, operands=operands, key=(names, "loop"),
            tests=tests_of(path),
        )  # fmt: skip


def _within(path: CallPath | None, function: str) -> CallPath | None:
    return inner_path(path.inner, function) if path is not None else None


def _cause(question: _Question, device: Any) -> tuple[CauseCode, dict[str, Operand]]:
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
    question: _Question, of_hint: tuple[CauseCode, dict[str, Operand]], device: Any
) -> tuple[CauseCode, dict[str, Operand]]:
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


def _cause_by_size(path: CallPath | None, device: Any) -> tuple[CauseCode, dict[str, Operand]]:
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


def _cooperative_limit(path: CallPath | None) -> dict[str, Operand]:
    """Return from how many elements on blocks work together, where torch compared them."""
    known = path.tested("V.graph.sizevars.statically_known_geq(?") if path is not None else None
    return {"elements_limit": known.values[1]} if known is not None else {}


def _would_cooperate(kernel: Any) -> tuple[bool, dict[str, Operand]]:
    """Return whether blocks would work together if the setting allowed it, as torch answers with it."""
    ask = inspect.unwrap(type(kernel).should_use_cooperative_reduction)
    with (
        sys.modules["torch._inductor.config"].patch({"triton.cooperative_reductions": True}),
        calls() as made,
    ):
        would = bool(ask(kernel))
    return would, _cooperative_limit(path_of_name(_COOPERATIVE, made))


def _cause_of_variance(path: CallPath | None, is_two_step: bool) -> tuple[CauseCode, dict[str, Operand]]:
    """Return why `use_two_step_variance` answered so, and the threshold that it compared."""
    if path is None:
        return "unlisted-test", {}
    most = path.tested("reduction_numel > ?")
    if (fewer := path.tested("int(reduction_numel) < ?")) is not None:  # torch 2.11
        threshold: dict[str, Operand] = {"threshold": int(fewer.values[1]) - 1}
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


def _setting(path: CallPath, name: str) -> dict[str, Operand]:
    """Return the setting that a name has the value of, or that it is; none where it has another value."""
    _, is_setting, setting = path.source(name).partition("config.")
    return {"setting": setting} if is_setting else {}


_AROUND_MINIMUM = ("config.unroll_reductions_threshold < reduction_numel", "reduction_numel < min_numel")


def _fx_node() -> tuple[tuple[str, ...], ...]:
    """Return the name of the FX node that is being lowered."""
    node = sys.modules["torch._inductor.virtualized"].V.graph.current_node
    return ((node.name,),) if node is not None else ()


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


_recorder = functools.cache(_Recorder)
"""One a log: its hooks are called when each module is imported, in an order that is torch's own."""


def _hook_ir(ir: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    wrap(ir, "Reduction.create", recorder.around_create)
    wrap(ir, "WelfordReduction.create", recorder.around_create)
    wrap(ir, "Scan.create", recorder.around_scan)
    for name in ("ArgReduction", "OnlineSoftmaxReduction"):
        if hasattr(ir, name):  # torch 2.11 makes one kind of both
            wrap(ir, f"{name}.create", recorder.around_create)
    log.watch(ir, "Reduction.num_splits")
    wrap(ir, "Reduction.num_splits", log.followed(recorder.splits_counted))


def _hook_sizes(sizevars: Any, log: DecisionLog) -> None:
    wrap(sizevars, "SizeVarAllocator.stride_hints", log.observed(_recorder(log).strides_seen))


def _hook_choices(choices: Any, log: DecisionLog) -> None:
    recorder, persistence = _recorder(log), "InductorChoices.should_use_persistent_reduction"
    for place in (persistence, _COOPERATIVE, _SPLIT_FACTOR):
        log.watch(choices, place)
    wrap(choices, persistence, log.followed(recorder.persistence_decided))
    wrap(choices, _COOPERATIVE, log.observed(recorder.cooperation_decided))


def _hook_triton(triton: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    wrap(triton, "TritonKernel.has_persistent_RBLOCK", log.observed(recorder.tile_known))
    cooperates = log.followed(recorder.kernel_cooperates, _COOPERATIVE)
    wrap(triton, "TritonKernel.should_use_cooperative_reduction", cooperates)


def _hook_lowering(lowering: Any, log: DecisionLog) -> None:
    log.watch(lowering, "use_two_step_variance")
    wrap(lowering, "use_two_step_variance", log.followed(_recorder(log).variance_decided))


def _hook_features(features: Any, log: DecisionLog) -> None:
    wrap(features, "SIMDKernelFeatures.get_reduction_hint", log.observed(_recorder(log).hint_chosen))


HOOKS = {
    "torch._inductor.ir": _hook_ir,
    "torch._inductor.sizevars": _hook_sizes,
    "torch._inductor.choices": _hook_choices,
    "torch._inductor.lowering": _hook_lowering,
    "torch._inductor.codegen.triton": _hook_triton,
    "torch._inductor.codegen.simd_kernel_features": _hook_features,
}
