"""The form of the rows: the templates of the outcomes, causes and changes of a kind of decision.

Templates are those of `report/words/templates.py`. Their values are the operands of the decision by name, and

| value | what it is |
|---|---|
| `{subject}` | the nodes or buffers that it is about: `op0`, `op0, op1 and 3 more` |
| `{first}`, `{second}` | the two sides of a pair |
| `{others}` | all sides but the first: `op1, op2 and 3 more` |
| `{n}` | how many subjects: `{n:?is/are}` |
| `{function}` | the function of torch that decided: `TilingSelect.select_tiling` |
| `{reads_limit}` ... | an operand; a missing one may stand in brackets only: `[ of {loop}]` |

An operand whose name ends with `bytes` is text with its unit (`144 KiB`). What an operand does not say
outright is made by `derived`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

POINTWISE_CAT = (
    "computes the concatenation element by element, with its operands inlined; time it: each element "
    "evaluates every operand, under a mask, and torch leaves it off on CPUs, where it was slower"
)
"""What `force_pointwise_cat` does, wherever it is offered: `cat` in torch/_inductor/lowering.py."""


class CauseWords(Struct, frozen=True):
    """The words of a cause.

    Attributes:
        sentence: goes on behind the outcome and a colon: `its inner loop {loop} has {range} steps, ...`.
        short: for a line in a table or behind a remark: `inner range {range} < {factor}/4`.
    """

    sentence: str
    short: str


class KindWords(Struct, frozen=True):
    """The words of a kind of decision.

    Attributes:
        outcomes: by outcome what is true of the subject: `{subject} {n:?is/are} scalar`; a row may also be
            for an outcome and a cause: `("scalar", "no-loops")`. Without a cause's sentence it stands alone.
        causes: by cause. changes: by the code of a change what it does: settings by their name below
            `torch._inductor.config`, changes of source by their own. It goes on behind `NAME = VALUE`.
        derived: further values, made of the operands.
    """

    outcomes: Mapping[str | tuple[str, str], str]
    causes: Mapping[str, CauseWords]
    changes: Mapping[str, str] = field(default_factory=dict)
    derived: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
