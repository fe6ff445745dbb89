"""The records of the catalogue: a kind of decision, its outcomes, its causes, and what changes each.

A cause is one entry, data only:

    Cause("few-shared-bytes", "refused", _HORIZONTAL, "threshold",
        "neither reads what the other writes, and what both read is {shared_bytes}, fewer than ...",
        "{shared_bytes} shared < {threshold} B",
        changes=(By("score_fusion_memory_threshold", number("shared_bytes"), "..."), Turn("fuse")),
        example="(x + scalar, y * scalar)"),

Its sentences are templates (`catalogue/templates.py`), whose values are the operands that the entry names and

| value | what it is |
|---|---|
| `{subject}` | the nodes or buffers that it is about: `op0`, `op0, op1 and 3 more` |
| `{first}`, `{second}` | the two sides of a pair |
| `{others}` | all sides but the first: `op1, op2 and 3 more` |
| `{n}` | how many subjects: `{n:?is/are}` |
| `{function}` | the function of torch that decided: `TilingSelect.select_tiling` |
| `{reads_limit}` ... | an operand; a missing one may stand in brackets only: `[ of {loop}]` |

What an operand does not say outright is made by `Kind.derived`. Of a change only what applies is offered:
`applies` looks at the decision, or is the name of a condition of `analysis/causes/conditions.py`, which looks
at the graph as well; a setting that has the offered value already is left out by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.decision import Decision, DecisionKind
from inductor_probe.model.decision import Outcome as OutcomeCode
from inductor_probe.model.flip import FlipKind
from inductor_probe.model.remark import RemarkKind

OperandType: TypeAlias = Literal["flag", "int", "size", "number", "text", "names"]
TYPES: Mapping[OperandType, tuple[type, ...]] = {
    "flag": (bool,),
    "int": (int,),
    "size": (int, str),
    "number": (int, float),
    "text": (str,),
    "names": (tuple,),
}
"""What an operand may be. A size is a number, or the text of a symbolic one; `names` are texts."""
Condition: TypeAlias = Callable[[Decision], bool]
GraphCondition: TypeAlias = Literal["longer-loop", "copy-unchanged", "same-elements", "same-loops"]
"""What needs the graph: `analysis/causes/conditions.py` has a function for each."""
OF_ANY_KIND: Mapping[str, str] = {
    "turned": "a flip asked for it (--scalar op0), so that torch's own rules did not count",
    "unlisted-test": "a test of torch's decided that has no code here: it is the last of `tests`",
}
"""Causes that decisions of each kind have, with operands as of any cause of the kind, and their sentences."""


def always(_: Decision) -> bool:
    """Whether a change applies that has no condition."""
    return True


class Operand(Struct, frozen=True):
    """A value that torch compared, or that says what was compared; `unit` of a number that has one."""

    name: str
    type: OperandType
    meaning: str
    unit: str = ""


def alike(names: str, kind: OperandType, meaning: str, unit: str = "") -> tuple[Operand, ...]:
    """Return operands that differ in their names alone, as of the two sides of a pair."""
    return tuple(Operand(name, kind, meaning, unit) for name in names.split())


FLIP = Operand("flip", "text", "that turned it")


class Outcome(Struct, frozen=True):
    """What torch chose, as a sentence about the subject, and LLVM's word for it."""

    code: OutcomeCode
    sentence: str
    remark: RemarkKind = "analysis"


class By(Struct, frozen=True):
    """A setting that changes a decision.

    Attributes:
        code: the setting, by its name below `torch._inductor.config`.
        value: to try, as Python writes it, or what makes it of the decision (None: nothing would help).
        effect: what it does; goes on behind `NAME = VALUE: `.
        present: the operand that holds the present value, where torch compared with it: `reads_limit`.
        is_default: `value` is the default of torch: it is offered only where the dump sets another.
        differs: whether it changes results by more than rounding. applies: see above.
    """

    code: str
    value: str | Callable[[Decision], str | None]
    effect: str
    present: str | None = None
    is_default: bool = False
    differs: bool = False
    applies: Condition | GraphCondition = always


class Source(Struct, frozen=True):
    """A change of the user's source that changes a decision; the rest is as of `By`."""

    code: str
    effect: str
    differs: bool = False
    applies: Condition | GraphCondition = always


class Turn(Struct, frozen=True):
    """A flip that turns the decision for its subject alone, as torch's test compares nothing but cost."""

    flip: FlipKind
    applies: Condition | GraphCondition = always


class Cause(Struct, frozen=True):
    """Why torch chose an outcome.

    Attributes:
        code: as recorded. outcomes: those that it leads to.
        at: the function of torch that decides: `codegen/cpp.py:TilingSelect.select_tiling`.
        operands: names of those that it has, beside those that are common to its kind.
        sentence: goes on behind the outcome and a colon. short: for a line in a table, or behind a remark.
        changes: what changes it, surest first.
        test: the condition of torch in whose branch the function returned, as `capture.branches.matches`
            takes it; several where releases differ. Empty where it is an event, or known in another way.
        values: the operands that are what it compares, in its order.
        remark: LLVM's word, where it is not that of the outcome.
        outcome_words: by outcome a sentence in the place of the outcome's own.
        example: a program that shows it.
    """

    code: str
    outcomes: str
    at: str
    operands: str
    sentence: str
    short: str
    changes: tuple[By | Source | Turn, ...] = ()
    test: str | tuple[str, ...] = ()
    values: str = ""
    remark: RemarkKind | None = None
    outcome_words: Mapping[str, str] = {}
    example: str = ""


class Kind(Struct, frozen=True):
    """A kind of decision.

    Attributes:
        code: as recorded. decides: what is decided, behind "torch decides ".
        operands: all that its causes have. common: the names of those that each cause may have.
        derived: further values of the templates, made of the operands by name; `derives` are their names.
    """

    code: DecisionKind
    decides: str
    outcomes: tuple[Outcome, ...]
    operands: tuple[Operand, ...]
    causes: tuple[Cause, ...]
    common: str = ""
    derived: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    derives: str = ""

    def operands_of(self, cause: Cause) -> tuple[Operand, ...]:
        """Return the operands that decisions with a cause have: its own, then those common to the kind."""
        declared = {operand.name: operand for operand in self.operands}
        return tuple(declared[name] for name in f"{cause.operands} {self.common}".split())
