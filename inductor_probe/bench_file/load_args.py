"""`load_args` of `fx_graph_runnable.py`: inputs with sizes in symbols, and where torch kept their bytes."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_FUNCTION = re.compile(r"^def load_args\(reader\):\n((?:[ \t].*\n|\"\"\"\n|\n)*)", re.MULTILINE)
_NAME = re.compile(r"#\s*(\w+)\s*$")
_OPERATORS: dict[str, type[ast.operator]] = {
    "FloorDiv": ast.FloorDiv,
    "CleanDiv": ast.FloorDiv,
    "Mod": ast.Mod,
    "PythonMod": ast.Mod,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda base, power: int(base ** min(power, 8)),
}


@dataclass(frozen=True, slots=True)
class LoadedInput:
    """An input as `load_args` makes it; sizes are texts of Python, in which size symbols may stand.

    Attributes:
        symbol: of a whole number: what it is called in the sizes of others, if it is said.
        size, stride, offset: of a tensor, in elements; `stride` is None where it is contiguous.
        storage: name of the file in `storages/` with the bytes of its memory, if torch saved them.
    """

    name: str
    symbol: str | None = None
    size: tuple[str, ...] | None = None
    stride: tuple[str, ...] | None = None
    offset: str = "0"
    storage: str | None = None


def parse_load_args(runnable: str | None) -> dict[str, LoadedInput]:
    """Return the inputs in the text of `fx_graph_runnable.py` by name; none where it has no such function."""
    found = _FUNCTION.search(runnable or "")
    if found is None:
        return {}
    body = found[0]
    try:
        tree = ast.parse(body)
    except (SyntaxError, ValueError):  # an old torch wrote what is no Python for some inputs
        return {}
    lines = body.split("\n")
    storages: dict[str, str | None] = {}
    loaded = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=buffer)],
                value=ast.Call(func=ast.Attribute(attr="storage"), args=[ast.Constant(value=digest), *_]),
            ):
                storages[buffer] = digest if isinstance(digest, str) else None
            case ast.Call(func=ast.Attribute(attr="tensor" | "symint" as kind)):
                name = _NAME.search(lines[(node.end_lineno or node.lineno) - 1])
                if name:
                    read = _tensor if kind == "tensor" else _symint
                    loaded[name[1]] = read(name[1], node, storages)
    return loaded


def python_of(text: str, symbols: Mapping[str, int]) -> tuple[str, int] | None:
    """Turn a size as sympy prints it into Python, with its value; None if it needs more than `symbols`."""
    try:
        tree = _Python().visit(ast.parse(text.strip(), mode="eval")).body
        return ast.unparse(tree), _value(tree, symbols)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError):
        return None


class _Python(ast.NodeTransformer):
    """Writes sympy's functions as Python's operators."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        arguments = [self.visit(argument) for argument in node.args]
        if name in _OPERATORS and len(arguments) == 2:
            return ast.BinOp(arguments[0], _OPERATORS[name](), arguments[1])
        return ast.Call(ast.Name(name.lower()), arguments, [])


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    """Evaluate whole numbers; nothing of a dump is executed.

    Raises:
        KeyError: neither a number, nor in `symbols`, nor an operation that sizes are made with.
    """
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, symbols)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
            return _ARITHMETIC[type(sign)](_value(left, symbols), _value(right, symbols))
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[_, *_] as arguments):
            return (max if name == "max" else min)(_value(argument, symbols) for argument in arguments)
    raise KeyError(ast.dump(node))


def _tensor(name: str, call: ast.Call, storages: Mapping[str, str | None]) -> LoadedInput:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    buffer = ast.unparse(call.args[0]) if call.args else ""
    size = _texts(call.args[1]) if len(call.args) > 1 else None
    stride = _texts(call.args[2]) if len(call.args) > 2 else None
    offset = ast.unparse(named["storage_offset"]) if "storage_offset" in named else "0"
    return LoadedInput(name, None, size, stride, offset, storages.get(buffer))


def _symint(name: str, call: ast.Call, _storages: Mapping[str, str | None]) -> LoadedInput:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    match named.get("expr"):
        case ast.Constant(value=str() as symbol):
            return LoadedInput(name, symbol)
    return LoadedInput(name, ast.unparse(call.args[0]) if call.args else None)


def _texts(node: ast.expr) -> tuple[str, ...] | None:
    return tuple(ast.unparse(each) for each in node.elts) if isinstance(node, ast.Tuple) else None
