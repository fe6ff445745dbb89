"""Why a program was compiled in pieces, or more than once: graph breaks, recompiles, what avoids them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

InterruptionKind: TypeAlias = Literal["recompile", "graph-break", "recompile-limit"]
InterruptionCause: TypeAlias = Literal[
    "size", "rank", "dtype", "stride", "requires-grad", "device", "dispatch-keys",
    "integer", "integer-attribute", "number", "flag", "length", "object", "type", "grad-mode",
    "branch", "scalar", "output-size", "call", "limit", "other",
]  # fmt: skip
"""Of a recompile what differed in a value, of a graph break what dynamo does not trace:

- `size`, `rank`, `dtype`, `stride`, `requires-grad`, `device`, `dispatch-keys` of a tensor;
- `integer`, of an nn.Module `integer-attribute`; `number`; `flag`: a bool, None or text; the `length` of a
  list or dict; another `object` or function; another `type`; `grad-mode`: autograd was on or off;
- `branch`: on a tensor's values; `scalar`: of `Tensor.item()`; `output-size`: of an operator such as
  `nonzero`; `call`: of what cannot be traced;
- `limit`: of recompiles of a function, after which it ran eagerly; `other`: in the words of dynamo alone.
"""

RemedyCode: TypeAlias = Literal[
    "mark-dynamic", "dynamic", "tensor", "buffer", "same-form", "contiguous", "one-value", "unspecialise",
    "one-length", "define-once", "one-mode", "where", "capture-scalars", "capture-sizes", "move-out",
    "raise-limit",
]  # fmt: skip


class Remedy(Struct, frozen=True):
    """What would avoid it.

    Attributes:
        code: what to do; `report/words/interruptions.py` has its sentence.
        setting: of torch and its value, that does the same to all of the program (`dynamo.` ...), where there
            is one.
        checked: whether it was gone when the program was dumped with the settings of all remedies; None where
            that was not tried.
        text: what to do, in a sentence; empty before `report/words` made it.
    """

    code: RemedyCode
    setting: tuple[str, str] | None = None
    checked: bool | None = None
    text: str = ""


class Interruption(Struct, frozen=True):
    """A graph break, or a guard that made dynamo compile again.

    Attributes:
        value: what is guarded, as the user calls it (`self.temperature`, `x`); empty of a graph break.
        reason: in dynamo's words. where: the line (`model.py:17`); empty where dynamo does not say.
        code: of that line, as far as dynamo says.
        times: how often. graphs: that were compiled for it.
        text: a sentence of it; empty before `report/words` made it.
    """

    kind: InterruptionKind
    cause: InterruptionCause
    value: str
    reason: str
    where: str = ""
    code: str = ""
    times: int = 1
    graphs: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    text: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same in another dump of the program."""
        return self.kind, self.cause, self.value or f"{self.where} {self.reason}"
