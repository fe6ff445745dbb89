"""A call of an operator in an FX graph, and what may be needed of the values of its arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from inductor_probe.analysis.tensor_type import TensorType
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Form


@dataclass(frozen=True, slots=True)
class Need:
    """Bounds of a value, both allowed; None is no bound."""

    low: Dim | None = None
    high: Dim | None = None
    operator: str = ""
    form: Form = "any"

    def both(self, other: Need) -> Need:
        """Return the need that satisfies both; the first if none can (a branch that is not taken)."""
        low = _tighter(self.low, other.low, "max")
        high = _tighter(self.high, other.high, "min")
        if isinstance(low, int) and isinstance(high, int) and low > high:
            return self
        form = other.form if self.form == "any" else self.form
        return Need(low, high, self.operator or other.operator, form)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator: its name and overload, its arguments parsed, and the types of the graph."""

    op: str
    overload: str
    args: tuple[ast.expr, ...]
    named: Mapping[str, ast.expr]
    types: Mapping[str, TensorType]
    result: TensorType | None

    def argument(self, at: int, name: str = "") -> ast.expr | None:
        """Return an argument by its place, or by its name."""
        return self.args[at] if at < len(self.args) else self.named.get(name)

    def names(self, argument: ast.expr | None) -> tuple[str, ...]:
        """Return the tensors that an argument names: one, several in a list, or none."""
        match argument:
            case ast.Name(id=name):
                return (name,) if name in self.types else ()
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return tuple(name for element in elements for name in self.names(element))
        return ()

    def number(self, argument: ast.expr | None) -> int | None:
        """Return the whole number that an argument is."""
        match argument:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return -value
        return None

    def type(self, at: int) -> TensorType | None:
        """Return the type of the tensor at a place."""
        names = self.names(self.argument(at))
        return self.types[names[0]] if names else None


def _tighter(one: Dim | None, other: Dim | None, choose: str) -> Dim | None:
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other) if choose == "max" else min(one, other)
    return f"{choose}({one}, {other})"
