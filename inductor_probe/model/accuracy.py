"""Whether a compiled program is right; and of what is wrong the operator, the element, the layer."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall, OwnPair
from inductor_probe.model.timing import Element

Verdict: TypeAlias = Literal["right", "rounding", "wrong", "undecided"]
"""- `right`: each element is within the tolerance of its dtype (`torch.testing.assert_close`) of eager's.
- `rounding`: it is not, and is no further from the float64 value than rounding explains.
- `wrong`: neither. `undecided`: eager itself gives other values each time.
"""

Why: TypeAlias = Literal["", "form", "values", "tied", "draws", "varies", "elided-cast"]
"""Of a value that is not right: another size or dtype; other values; which of nearly equal ones is chosen;
eager gives others with other random numbers, or each time; casts between floats are left out of the code."""

Layer: TypeAlias = Literal[
    "dynamo", "joint-graph", "decomposition", "pass", "lowering", "scheduling", "codegen", "compiler"
]
"""Who makes a value wrong, in the order of a compile: dynamo traced another program; AOTAutograd made another
graph of it; the decomposition of an operator; a pass over a graph of FX; the lowering, whose loop body
computes it so; what is fused, in which order, in which memory; the generated code, of a loop body that is
right; g++ or Triton, of code that is right without optimisation."""

FREEZING, PARTITION = "freezing", "partition"
"""Causes that are no pass: parameters became constants; a joint graph was divided."""
ALONE, BESIDE = "its nodes compiled alone", "computed in it"
"""Steps: the nodes of a kernel without the rest of the graph; the operators of which a value is made in the
same loops, each of which it may be."""
StepVerdict: TypeAlias = Literal["right", "wrong", "unknown"]


class CodeLine(Struct, frozen=True):
    """A line of a file."""

    file: str
    line: int
    text: str = ""


class Off(Struct, frozen=True):
    """An error: in units in the last place of the float64 value, in the value's dtype, and relative.

    Infinite as a text.
    """

    ulp: Element
    relative: Element


class _Values(Struct, frozen=True, kw_only=True):
    elements: int = 0
    wrong: int = 0
    index: tuple[int, ...] = ()
    eager: Element = None
    compiled: Element = None
    reference: Element = None
    eager_off: Off | None = None
    compiled_off: Off | None = None


class CheckedValue(_Values, frozen=True, kw_only=True):
    """An output, a gradient, or an input after the call, compared.

    Attributes:
        name: `output 0`, `gradient of weight`, `argument 1 after the call`.
        elements, wrong: how many there are, and are wrong.
        why: see `Why`; `elided-cast` was compiled with casts kept (`emulate_precision_casts`).
        index: of the first wrong element, or of that with the largest error.
        eager, compiled, reference: there.
        eager_off, compiled_off: errors there, of floats.
        form: what eager has, and what compiled code gives.
    """

    name: str
    verdict: Verdict
    why: Why = ""
    form: tuple[str, str] | None = None


class RightWhen(Struct, frozen=True):
    """A change that makes a value right.

    Attributes:
        kind: `setting` of torch, `variable` of the environment, `flip` of a decision, `decomposition` or
            `pattern` left out, `fallback` (the operator is called as a function of a library).
        setting: `inductor.cpp.simdlen=1`; of another kind the operator: `aten.gelu`. flip: `scalar op0`.
        cost: of the program's own call, A as it is, B with the change; `not_timed`: why there is none.
        checked: whether it was compiled so and compared. by: the user's own call (`program`), or the nodes
            of the kernel alone (`kernel`).
    """

    kind: Literal["setting", "variable", "flip", "decomposition", "pattern", "fallback"]
    setting: str | None = None
    flip: str | None = None
    checked: bool = True
    by: Literal["program", "kernel"] = "program"
    cost: OwnPair | None = None
    not_timed: NoOwnCall | None = None

    @property
    def name(self) -> str:
        """The change in a few words."""
        return self.flip or self.setting or ""


class AccuracyStep(Struct, frozen=True):
    """What was computed on the way from the user's program to the kernel: where, which value, is it right."""

    place: str
    value: str
    verdict: StepVerdict


class WrongValue(_Values, frozen=True, kw_only=True):
    """Something wrong, at the first place where it is seen. What follows from it is not listed.

    Attributes:
        operator: `aten.argmax`. part_of: the operator that it was decomposed from.
        fx: its FX node. node, buffer, kernel: inductor's, where it has them.
        index: of the first wrong element. eager, compiled, reference: its values.
        elements, wrong: how many there are, and are wrong.
        user_line: of the program. kernel_line: of `output_code.py`, where the operator is computed.
        layer: who makes it so. cause: the pass, or the pattern of one, by its name in torch.
        steps: values on the way. right_when: changes that make it right; `not_right_when` that do not;
            `not_tried` those for which there was no time.
    """

    operator: str
    part_of: str = ""
    fx: str = ""
    node: str = ""
    buffer: str = ""
    kernel: str = ""
    user_line: CodeLine | None = None
    kernel_line: CodeLine | None = None
    layer: Layer
    cause: str = ""
    is_pattern: bool = False
    steps: tuple[AccuracyStep, ...] = ()
    right_when: tuple[RightWhen, ...] = ()
    not_right_when: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()


class GraphAccuracy(Struct, frozen=True, kw_only=True):
    """A graph that was compiled and called.

    `compared`: buffers that launches wrote, of wrong graphs; `not_compared`: those that stand for no FX node.
    """

    graph: str
    verdict: Verdict
    wrong: tuple[WrongValue, ...] = ()
    compared: int = 0
    not_compared: tuple[str, ...] = ()


class CheckedCall(Struct, frozen=True, kw_only=True):
    """A call of the user's compiled callable: the worst of those that were judged.

    Attributes:
        name, where: of the callable. graphs: that were compiled of it.
        call: which one. calls: how many were judged.
        values: those that are not right; all of them where all are right.
        elements: that were compared, in all.
        inputs: how they differ from those that the script has (`size 17 for 40`); empty for those.
        remarks: `strides` (a value's memory is laid out otherwise than eager's), each with the value.
        not_in_float64: operators that refuse it: their results count as exact.
    """

    name: str
    where: str = ""
    graphs: tuple[str, ...] = ()
    call: int
    calls: int
    verdict: Verdict
    values: tuple[CheckedValue, ...] = ()
    elements: int = 0
    inputs: str = ""
    remarks: tuple[tuple[str, str], ...] = ()
    not_in_float64: tuple[str, ...] = ()


class AccuracyOutput(Output, frozen=True, kw_only=True):
    """Whether a program computes the same when it is compiled.

    Attributes:
        run: its dump.
        verdict: of the script: the worst of its calls. None where none could be judged.
        calls: for each callable. graphs: each that was called.
        wrong: what is wrong above all graphs, or was found in none: layers `dynamo` and `joint-graph`.
        not_judged: calls that could not be, and why. problem: why nothing was judged.
        simulated: the GPU, where it was, and triton's interpreter ran the kernels.
        seconds: it took.
    """

    verb: Literal["accuracy"] = "accuracy"
    run: Path
    verdict: Verdict | None = None
    calls: tuple[CheckedCall, ...] = ()
    graphs: tuple[GraphAccuracy, ...] = ()
    wrong: tuple[WrongValue, ...] = ()
    not_judged: tuple[str, ...] = ()
    problem: str = ""
    simulated: str = ""
    seconds: float = 0.0
