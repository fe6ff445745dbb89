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

from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    UnknownPathError,
    hint_of,
    inductor_caller,
    place_of,
    size_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "reduction"

# Literals of Reduction.num_splits: `min_elements_per_thread`, and 2 * 32 outputs a processor.
_FEW_ELEMENTS = 32
_OUTPUTS_PER_PROCESSOR = 64
_TYPE = 6  # place of `reduction_type` among the arguments of num_splits
_OUTPUTS_FOR_ONE_PART = 2  # literals of reduction_split_factor: outputs a processor, and elements
_SHORT_REDUCTION = 8192
_SHORT_ON_BLACKWELL = 524288  # of torch 2.13; since 2.14 a method says
_BLACKWELL = 10
_ONE_PART = ("sizes-not-known", "few-elements", "many-outputs", "no-strided-read", "matrix-product")
"""With the hint DEFAULT, num_splits answers one part."""
_INDEX_TYPES = ("argmax", "argmin")
_TWO_STEP_LIMIT = 1024
"""Elements that a CPU takes two passes over: a literal of torch's, and since 2.13 a setting's default."""
_TWO_STEP_SETTING = "{}.use_two_step_variance_threshold"
_HALF = ("torch.bfloat16", "torch.float16")
_MOST_COOPERATIVE_OUTPUTS = 16  # a literal of should_use_cooperative_reduction
_PERSISTENT = {"INNER": 1024}
_PERSISTENT_ELSE = 64  # should_use_persistent_reduction: for any other hint


@dataclass
class _Question:
    """What is seen while a reduction is made. `strides`: of each read, along the reduced dimensions.

    sizes, device: of a scan, whose outputs and elements `num_splits` gets by name.
    """

    place: TorchFrame | None = None
    answer: tuple[Any, Any] | None = None
    type: str = ""
    is_cooperative: bool = False
    sizes: tuple[Sequence[Any], Sequence[Any]] = ((), ())
    device: Any = None
    strides: list[list[int]] = field(default_factory=list)


@dataclass
class _Recorder:
    log: DecisionLog
    open: list[_Question] = field(default_factory=list)
    knows_cpu: bool = True

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

    def splits_counted(self, place: TorchFrame, answer: Any, *args: Any, **kwargs: Any) -> None:
        """Remember the hint and the number of parts that `num_splits` answered."""
        if self.open:
            self.open[-1].place, self.open[-1].answer = place, answer
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
            if _is_reduction(result):
                raise UnknownPathError("a reduction whose parts nobody asked for")  # config.numerics
            self._record_unrolled(place, result, elements, operands)
            return
        if question.type == "welford_combine":
            return  # the second layer of a reduction that was split: that was decided with it
        hint, parts = question.answer[0].name, int(question.answer[1])
        operands |= {"hint": hint, "parts": parts}
        cause, more = _cause(question, hint, elements, outputs, device)
        decided = question.place or place
        name = _name_of(result)
        self.log.record(
            KIND, _fx_node(), hint, cause, decided, operands=operands | more, subject_type="fx", named=name
        )
        outcome: Outcome = "not-split" if parts in (0, 1) else "split"
        cause, more = _cause_of_split(question, (cause, more), elements, outputs, device)
        self.log.record(
            KIND, _fx_node(), outcome, cause, decided, operands=operands | more, subject_type="fx", named=name
        )

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
        self,
        place: TorchFrame,
        is_two_step: bool,
        value: Any,
        axis: Any,
        *_: Any,
        **named: Any,
    ) -> None:
        """Record whether mean and variance are two passes, or one of Welford's."""
        sizes = list(value.get_size())
        axes = [axis] if isinstance(axis, int) else list(axis or range(len(sizes)))
        elements = math.prod(sizes[one] for one in axes)
        outputs = math.prod(sizes) // elements
        device = value.get_device().type
        operands: dict[str, Operand] = {"elements": size_of(elements), "device": device}
        few, limit, minimum, setting = self._two_step_limits(device, str(named.get("input_dtype")))
        operands |= {"threshold": limit, **({"setting": setting} if setting else {})}
        elements_known = operands["elements"] if isinstance(operands["elements"], int) else None
        if is_two_step and minimum and elements_known is not None and elements_known <= few:
            operands |= {"threshold": few, "setting": "unroll_reductions_threshold"}
        if is_two_step:
            cause: CauseCode = "elements-within-threshold"
        elif elements_known is None:
            cause = "symbolic-elements"
        elif elements_known > limit:
            cause = "elements-above-threshold"
        elif outputs == 1:
            cause = "single-output"
        elif few < elements_known < minimum:
            cause = "elements-below-minimum"
            operands |= {"minimum": minimum, "setting": "triton.use_two_step_variance_min_numel"}
        elif minimum:
            cause = "sum-would-be-split"
        else:
            raise UnknownPathError("Welford's algorithm below its threshold")
        outcome: Outcome = "two-passes" if is_two_step else "one-pass"
        self.log.record(KIND, _fx_node(), outcome, cause, place, operands=operands, subject_type="fx")

    def _two_step_limits(self, device: str, dtype: str) -> tuple[int, int, int, str]:
        """Return up to how many elements a variance takes two passes, and which setting says so.

        Args:
            dtype: of the values before they were converted to float32, which torch 2.13 tells.

        Returns:
            few: as many always do. limit: as many, if they are not fewer than minimum. setting: of the limit.
        """
        config = sys.modules["torch._inductor.config"]
        few = int(config.unroll_reductions_threshold)
        if not self.knows_cpu:
            return few - 1, few - 1, 0, ""  # torch 2.11: as few as are unrolled, on each device
        if device == "cpu":
            present = getattr(config.cpp, "use_two_step_variance_threshold", None)
            limit = _TWO_STEP_LIMIT if present is None else int(present)
            return few, limit, 0, "" if present is None else _TWO_STEP_SETTING.format("cpp")
        if device == "cuda" and dtype in _HALF and config.cuda_backend == "triton":
            limit = int(config.triton.use_two_step_variance_threshold)
            minimum = int(config.triton.use_two_step_variance_min_numel)
            return few, limit, minimum, _TWO_STEP_SETTING.format("triton")
        return few, few, 0, ""

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
        cause, more = _cause(question, hint, elements, outputs, question.device)
        if cause not in _ONE_PART:
            cause, more = _cause_by_size(hint, elements, outputs, question.device)
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

    def kernel_cooperates(self, place: TorchFrame, is_cooperative: bool, kernel: Any) -> None:
        """Record whether the blocks of a Triton kernel work on each of its reductions together.

        `TritonKernel.should_use_cooperative_reduction`: where the setting is off, only what it would turn.
        """
        features = kernel.features
        if not kernel.inside_reduction:
            return
        config = sys.modules["torch._inductor.config"].triton
        outputs, elements = features.numel, size_of(features.reduction_numel)
        limit = _cooperative_limit(outputs).get("elements_limit")
        if config.force_cooperative_reductions and not is_cooperative:
            raise UnknownPathError("a reduction of one block, where cooperation is forced")  # config.numerics
        if config.force_cooperative_reductions:
            cause: CauseCode = "cooperation-forced"
            operands: dict[str, Operand] = {}
        else:
            count = hint_of(outputs, 2)
            operands = {"elements": elements, "outputs": size_of(outputs), "elements_limit": limit or 0}
            is_large = isinstance(elements, int) and isinstance(limit, int) and elements >= limit
            if is_cooperative:
                cause = "work-for-blocks"
            elif not config.cooperative_reductions:
                if count > _MOST_COOPERATIVE_OUTPUTS or not is_large:
                    return
                cause = "cooperative-reductions-off"
            elif count > _MOST_COOPERATIVE_OUTPUTS:
                cause = "outputs-above-limit"
                operands = {"outputs": size_of(outputs), "outputs_limit": _MOST_COOPERATIVE_OUTPUTS}
            elif isinstance(elements, int) and not is_large:
                cause = "elements-below-limit"
            else:
                return  # torch cannot prove that symbolic elements are many
        names = tuple(node.get_name() for node in features.scheduler_nodes())
        outcome: Outcome = "cooperative" if is_cooperative else "not-cooperative"
        self.log.record(KIND, (names,), outcome, cause, place, operands=operands, key=(names, "blocks"))

    def persistence_decided(
        self, place: TorchFrame, is_persistent: bool, features: Any, cooperative_reduction: bool
    ) -> None:
        """Record whether a Triton kernel holds all elements of a reduction at once."""
        config = sys.modules["torch._inductor.config"]
        hint = features.get_reduction_hint().name
        limit = _PERSISTENT.get(hint, _PERSISTENT_ELSE) * (16 if config.triton.multi_kernel else 1)
        if cooperative_reduction:  # as torch calls it: combo kernels pass it by name
            limit *= 32 // min(hint_of(features.numel, 0), 32)
        elements = size_of(features.reduction_numel)
        names = tuple(node.get_name() for node in features.scheduler_nodes())
        turned = self.log.is_turned("reduction", names)
        if not config.triton.persistent_reductions:
            cause: CauseCode = "persistent-reductions-off"
        elif isinstance(elements, int) and is_persistent != (elements <= limit) and not turned:
            raise UnknownPathError(f"persistent: {is_persistent} for {elements} elements, hint {hint}")
        elif is_persistent:
            cause = "elements-fit-a-tile"
        elif not isinstance(elements, int):
            return  # bounded, but for some of its sizes most of a tile would be empty
        else:
            cause = "elements-exceed-a-tile"
        operands: dict[str, Operand] = {"elements": elements, "limit": limit, "hint": hint}
        outcome: Outcome = "persistent" if is_persistent else "looped"
        self.log.record("reduction", (names,), outcome, cause, place, operands=operands, key=(names, "loop"))


def _cause(
    question: _Question, hint: str, elements: Any, outputs: Any, device: Any
) -> tuple[CauseCode, dict[str, Operand]]:
    """Return what decided about the hint, in the order of `num_splits`."""
    if question.type == "dot":
        return "matrix-product", {}
    processors = _processors(device)
    if question.strides:
        inner = sum(not all(step == 0 or step > 1 for step in strides) for strides in question.strides)
        texts = tuple(str(strides).strip("[]") for strides in question.strides)
        operands: dict[str, Operand] = {"reads": len(texts), "inner": inner, "strides": texts}
        return ("contiguous-reads" if hint == "INNER" else "strided-reads"), operands
    if not (hint_of(elements, 0) and hint_of(outputs, 0)):
        if isinstance(size_of(elements), int) and isinstance(size_of(outputs), int):
            raise UnknownPathError("a reduction of no elements")
        return "sizes-not-known", {}
    if hint_of(outputs, 0) == 1 and hint == "INNER":
        return "single-output", {}
    if hint_of(elements, 0) <= _FEW_ELEMENTS:
        return "few-elements", {"elements_limit": _FEW_ELEMENTS}
    if processors and hint_of(outputs, 0) >= processors * _OUTPUTS_PER_PROCESSOR:
        limit = processors * _OUTPUTS_PER_PROCESSOR
        return "many-outputs", {"outputs_limit": limit, "processors": processors}
    return "no-strided-read", {}


def _cause_of_split(
    question: _Question,
    of_hint: tuple[CauseCode, dict[str, Operand]],
    elements: Any,
    outputs: Any,
    device: Any,
) -> tuple[CauseCode, dict[str, Operand]]:
    """Return what decided about the parts: what leaves the hint DEFAULT leaves one part, too."""
    config = sys.modules["torch._inductor.config"]
    hint, parts = question.answer or (None, 1)
    if parts == -1:
        return "ranges-of-its-input", {}
    if parts not in (0, 1):
        return "work-for-processors", {"processors": _processors(device) or 0}
    if of_hint[0] == "sizes-not-known":
        return of_hint
    if device.type == "cpu" and config.cpu_backend == "cpp":
        return "cpu-backend", {}
    if of_hint[0] in _ONE_PART:
        return of_hint
    if question.is_cooperative or _is_one_part_by_feature():
        limit = _cooperative_limit(outputs)
        least = limit.get("elements_limit", 0)
        if not question.is_cooperative and isinstance(least, int) and hint_of(elements, 0) < least:
            raise UnknownPathError("one part for a cooperative reduction, which is none")
        return "cooperative-reduction", limit
    if question.type.startswith(_INDEX_TYPES):
        return "index-reduction", {"type": question.type}
    if not config.split_reductions:
        return "split-reductions-off", {}
    return _cause_by_size("" if hint is None else hint.name, elements, outputs, device)


def _cause_by_size(
    hint: str, elements: Any, outputs: Any, device: Any
) -> tuple[CauseCode, dict[str, Operand]]:
    """Return what decided in `reduction_split_factor`."""
    processors = _processors(device) or 0
    if hint == "INNER":
        if hint_of(outputs, 0) >= _OUTPUTS_FOR_ONE_PART * processors:
            limit = _OUTPUTS_FOR_ONE_PART * processors
            return "enough-outputs", {"outputs_limit": limit, "processors": processors}
        if hint_of(elements, 0) <= (short := _short_reduction(device, hint_of(outputs, 0), processors)):
            return "short-reduction", {"elements_limit": short}
    return "work-for-processors", {"processors": processors}


def _short_reduction(device: Any, outputs: int, processors: int) -> int:
    """Return up to how many contiguous elements a reduction stays whole on a device."""
    choices = sys.modules["torch._inductor.virtualized"].V.choices
    properties = sys.modules["torch._inductor.runtime.hints"].DeviceProperties.create(device)
    if ask := getattr(choices, "_inner_reduction_no_split_threshold", None):
        return int(ask(properties, outputs, processors))
    constants = inspect.unwrap(type(choices).reduction_split_factor).__code__.co_consts
    is_new = properties.major is not None and properties.major >= _BLACKWELL
    return _SHORT_ON_BLACKWELL if is_new and _SHORT_ON_BLACKWELL in constants else _SHORT_REDUCTION


def _is_one_part_by_feature() -> bool:
    """Return whether the setting alone keeps reductions whole: `num_splits` of torch 2.11 asks no more."""
    triton = sys.modules["torch._inductor.config"].triton
    code = inspect.unwrap(sys.modules["torch._inductor.ir"].Reduction.num_splits).__code__
    is_on = bool(triton.cooperative_reductions or triton.force_cooperative_reductions)
    return is_on and "should_use_cooperative_reduction" not in code.co_names


def _cooperative_limit(outputs: Any) -> dict[str, Operand]:
    """Return from how many elements on blocks work together, by `should_use_cooperative_reduction`."""
    if sys.modules["torch._inductor.config"].triton.force_cooperative_reductions:
        return {}
    count = hint_of(outputs, 2)
    return {"elements_limit": 32768 * count if count <= 8 else 2097152}


def _fx_node() -> tuple[tuple[str, ...], ...]:
    """Return the name of the FX node that is being lowered."""
    node = sys.modules["torch._inductor.virtualized"].V.graph.current_node
    return ((node.name,),) if node is not None else ()


def _is_reduction(result: Any) -> bool:
    """Return whether a `TensorBox`, or the first of several, is a reduction and no sum of its elements."""
    first = result[0] if isinstance(result, (list, tuple)) else result
    value = getattr(getattr(first, "data", None), "data", None)
    return isinstance(value, sys.modules["torch._inductor.ir"].Reduction)


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
    wrap(ir, "Reduction.num_splits", log.observed(recorder.splits_counted))


def _hook_sizes(sizevars: Any, log: DecisionLog) -> None:
    wrap(sizevars, "SizeVarAllocator.stride_hints", log.observed(_recorder(log).strides_seen))


def _hook_choices(choices: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    decided = log.observed(recorder.persistence_decided)
    wrap(choices, "InductorChoices.should_use_persistent_reduction", decided)
    cooperation = log.observed(recorder.cooperation_decided)
    wrap(choices, "InductorChoices.should_use_cooperative_reduction", cooperation)


def _hook_triton(triton: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    wrap(triton, "TritonKernel.has_persistent_RBLOCK", log.observed(recorder.tile_known))
    cooperates = log.observed(recorder.kernel_cooperates)
    wrap(triton, "TritonKernel.should_use_cooperative_reduction", cooperates)


def _hook_lowering(lowering: Any, log: DecisionLog) -> None:
    constants = lowering.use_two_step_variance.__code__.co_consts
    has_setting = hasattr(sys.modules["torch._inductor.config"].cpp, "use_two_step_variance_threshold")
    _recorder(log).knows_cpu = has_setting or _TWO_STEP_LIMIT in constants
    wrap(lowering, "use_two_step_variance", log.observed(_recorder(log).variance_decided))


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
