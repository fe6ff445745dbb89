"""What a cause means, for whoever reads its code on a screen: an entry of the catalogue without its code."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.decision import DecisionKind, Outcome
from inductor_probe.model.output import Output
from inductor_probe.model.remark import RemarkKind

ChangeType: TypeAlias = Literal["setting", "source", "flip"]


class ExplainedOutcome(Struct, frozen=True):
    """An outcome that a cause leads to: `kind` is LLVM's word; `sentence` has `<name>` for a value."""

    outcome: Outcome
    kind: RemarkKind
    sentence: str


class ExplainedOperand(Struct, frozen=True):
    """A value that is recorded with a cause.

    Attributes:
        type: `flag`, `int`, `size` (a number, or the text of a symbolic one), `number`, `text`, or `names`.
        text: what it is, behind its name. unit: of a number, where it has one.
    """

    name: str
    type: str
    text: str
    unit: str = ""


class ExplainedChange(Struct, frozen=True):
    """What changes a decision.

    Attributes:
        type: a setting of torch, a change of the user's source, or a flip of `probe whatif`.
        name: of the setting, or the flip's option for some names: `--fuse op3,op4`.
        value: to try; None where it depends on the decision.
        text: what it does, or what to write.
        differs: whether it changes results by more than rounding. Of others nothing is claimed: `probe
            whatif` compares their results.
        sometimes: it is offered only where the decision, or its graph, allows for it.
    """

    type: ChangeType
    name: str
    value: str | None = None
    text: str = ""
    differs: bool = False
    sometimes: bool = False


class Explanation(Struct, frozen=True):
    """An entry of the catalogue.

    Attributes:
        code: as on the screen. kind: of the decision; None of a cause that decisions of every kind have.
        decides: what torch decides. outcomes: what the cause leads to.
        sentence: why, with `<name>` for a value. short: the same for a table.
        file, function: of torch, where that decides. tests: the condition of torch, `?` for any text, in the
            spelling of each release; none where it is an event.
        operands: what is recorded with it. changes: what changes the decision, surest first.
        example: a program that shows it.
    """

    code: str
    kind: DecisionKind | None
    decides: str
    outcomes: tuple[ExplainedOutcome, ...]
    sentence: str
    short: str = ""
    file: str = ""
    function: str = ""
    tests: tuple[str, ...] = ()
    operands: tuple[ExplainedOperand, ...] = ()
    changes: tuple[ExplainedChange, ...] = ()
    example: str = ""


class ExplainOutput(Output, frozen=True, kw_only=True):
    """What causes mean: of one code, in each kind that has it, or of all."""

    verb: Literal["explain"] = "explain"
    rows: tuple[Explanation, ...]
