"""The names of one block of a loop body."""

from __future__ import annotations

from dataclasses import dataclass, field

from inductor_probe.model.ir import Dotted, Op, Ref
from inductor_probe.model.ir import Value as Argument


@dataclass(slots=True)
class Scope:
    """The names of a block while its lines are walked.

    Attributes:
        block: its name.
        under: the mask it stands under.
        names: values by name.
        indexes: what `get_index` was called with, by the name of its result.
        index_lines: the lines of those that no operation took yet.
        no_value: names of what has no value (stores).
    """

    block: str
    under: int | None
    names: dict[str, int] = field(default_factory=dict)
    indexes: dict[str, str] = field(default_factory=dict)
    index_lines: dict[str, int] = field(default_factory=dict)
    no_value: set[str] = field(default_factory=set)

    def take_line(self, name: str) -> set[int]:
        """Return the line of a `get_index` for the first operation that takes it."""
        line = self.index_lines.pop(name, None)
        return set() if line is None else {line}


def dtype_name(value: Argument) -> str | None:
    """Return the dtype that an argument is: `float32` of `torch.float32`."""
    return value.text.removeprefix("torch.") if isinstance(value, Dotted) else None


def dtype_of_call(op: Op) -> str | None:
    """The dtype that a call names: the first of a reduction is that of its result."""
    return next((dtype_name(arg) for arg in op.args if isinstance(arg, Dotted)), None)


def text_of(arg: Argument) -> str:
    """Return an argument as it is printed."""
    if isinstance(arg, Dotted | Ref):
        return arg.text if isinstance(arg, Dotted) else arg.name
    if isinstance(arg, tuple):
        return f"({', '.join(text_of(part) for part in arg)}{',' if len(arg) == 1 else ''})"
    return repr(arg)
