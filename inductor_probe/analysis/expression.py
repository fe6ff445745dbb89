"""Integer arithmetic as sympy prints it, evaluated without sympy and without `eval`."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping

from inductor_probe.reader import python_text

_LARGEST_POWER = 8
_LARGEST_BITS = 1024
"""Of a value. An index or size of torch has 64, a product on the way to one has more. A power of powers,
`((2**8)**8)**8`, would grow until the memory is full."""


def parse_expression(text: str) -> ast.expr:
    """Parse an expression.

    Raises:
        ValueError: not an expression, or too long to be one of inductor's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # about text that is read, not run
        return python_text.parse_expression(text.strip())


def evaluate(node: ast.expr, values: Mapping[str, int]) -> int | None:
    """Evaluate `+ - * / // % **`, `FloorDiv`, `CeilDiv`, `Mod`, `PythonMod`, `ModularIndexing`, `Min`, `Max`.

    None for anything but integers, for a division by zero or with a rest, for a name that `values` does not
    hold, and for a value far beyond any size.
    """
    match node:
        case ast.Constant(value=int() as number):
            return _bounded(number)
        case ast.Name(id=name):
            try:
                return values[name]
            except KeyError:
                return None
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _apply("Sub", (0, evaluate(inner, values)))
        case ast.BinOp(left=left, op=op, right=right):
            return _apply(type(op).__name__, (evaluate(left, values), evaluate(right, values)))
        case ast.Call(func=func, args=arguments, keywords=[]):
            name = ast.unparse(func).removeprefix("math.")
            return _apply(name, tuple(evaluate(argument, values) for argument in arguments))
    return None


def _apply(operator: str, operands: tuple[int | None, ...]) -> int | None:
    numbers = [number for number in operands if number is not None]
    if len(numbers) != len(operands):
        return None
    return _bounded(_result(operator, numbers))


def _bounded(number: int | None) -> int | None:
    return None if number is None or number.bit_length() > _LARGEST_BITS else number


def _result(operator: str, numbers: list[int]) -> int | None:
    match operator, numbers:
        case "Add", [left, right]:
            return left + right
        case "Sub", [left, right]:
            return left - right
        case "Mult", [left, right]:
            return left * right
        case ("FloorDiv", [left, right]) if right:
            return left // right
        case ("Div", [left, right]) if right and not left % right:
            return left // right
        case ("CeilDiv", [left, right]) if right:
            return -(-left // right)
        case ("Mod" | "PythonMod", [left, right]) if right:
            return left % right
        case ("Pow", [left, right]) if 0 <= right <= _LARGEST_POWER:
            return int(left**right)
        case ("ModularIndexing", [base, divisor, modulus]) if divisor and modulus:
            return base // divisor % modulus
        case "abs" | "floor", [number]:
            return abs(number) if operator == "abs" else number
        case "Max" | "max" | "Min" | "min", [_, *_]:
            return max(numbers) if operator in ("Max", "max") else min(numbers)
    return None
