"""What symbolic sizes were when the graph was dumped, and what expressions of them are worth."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dim

_EXAMPLE = re.compile(r"^    (?P<name>\w+) = (?P<value>-?\d{1,18})$", re.MULTILINE)
_TAIL = re.compile(r"^def (?:get_args|benchmark_compiled_module)\(", re.MULTILINE)
_LONGEST = 2000
_MOST = 1 << 62


def _exact(a: int, b: int) -> int:
    if a % b:
        raise ValueError(f"{a} / {b} is no whole number")
    return a // b


def _too_large() -> int:
    raise ValueError("too large for a size")


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: _exact,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: a**b if 0 <= b < 16 else _too_large(),
}
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "Max": max,
    "max": max,
    "Min": min,
    "min": min,
    "abs": abs,
    "FloorDiv": operator.floordiv,
    "CeilDiv": lambda a, b: -(-a // b),
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "ModularIndexing": lambda a, b, c: a // b % c,
    "floor": math.floor,
    "math.floor": math.floor,
}


def recorded_sizes(graph: CompiledGraph, output_code: str) -> dict[str, int]:
    """Return the values that the names of sizes had: `{"s77": 5}`.

    They come from the manifest, or else from the example inputs at the end of `output_code`. A size that is
    known only when the graph runs (`u0 = buf1.item()`) is missing.
    """
    found: dict[str, int] = {}
    if tail := _TAIL.search(output_code):
        for example in _EXAMPLE.finditer(output_code, tail.end()):
            found[example["name"]] = int(example["value"])
    for fact in graph.record.inputs if graph.record else ():
        if fact.kind == "symint" and fact.value is not None:
            found[fact.name] = fact.value
    for symbol in graph.code.symbols if graph.code else ():
        value = evaluated(symbol.value, found)
        if value is not None:
            found[symbol.name] = value
    return found


def evaluated(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    """Return what a size, stride or offset is worth; None where it names something unknown, or is no such."""
    if isinstance(dim, int):
        return dim
    if len(dim) > _LONGEST:
        return None
    try:
        value = _value(ast.parse(dim, mode="eval").body, sizes)
    except (SyntaxError, ValueError, ArithmeticError, TypeError, KeyError, RecursionError, MemoryError):
        return None
    return value if abs(value) < _MOST else None


def value_of(dim: Dim, sizes: Mapping[str, int], what: str) -> int:
    """Return what a size is worth.

    Raises:
        ProbeError: it names a size whose value the dump does not tell.
    """
    value = evaluated(dim, sizes)
    if value is not None:
        return value
    unknown = [name for name in dict.fromkeys(re.findall(r"\b[a-z]\w*\d+\b", str(dim))) if name not in sizes]
    named = " and ".join(unknown) or str(dim)
    raise ProbeError(
        f"{what} is {dim}, and the dump does not tell what {named} was",
        f"give it: --size {unknown[0]}=16" if unknown else None,
    )


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            made = _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
            return made if abs(made) < _MOST else _too_large()
        case ast.Call(func=func, args=args, keywords=[]):
            return _FUNCTIONS[ast.unparse(func)](*(_value(arg, sizes) for arg in args))
    raise ValueError(ast.dump(node))
