"""Runs a loop body operation by operation, and evaluates its formula: two ways to the same numbers.

Both use the same operations. One that is not among them (`lgamma`, a reduction that inductor adds tomorrow)
gives a number that depends on its name and arguments alone.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from typing import Any

from inductor_probe.analysis.expression import evaluate, parse_expression
from inductor_probe.model.formula import (
    Access,
    Binary,
    Call,
    Chain,
    Definition,
    Expression,
    Formula,
    Name,
    Number,
    Over,
    Part,
    Store,
    Text,
    Unary,
)
from inductor_probe.model.ir import Block, BufferLayout, Dotted, LoopBody, Op, Ref, SchedulerNode

_INTEGERS = {f"{kind}{bits}" for kind in ("int", "uint", "i", "u") for bits in (8, 16, 32, 64)}


def made_up(*parts: object) -> float:
    """Return a number that depends on `parts` alone."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=4).digest(), "big") / 2**29 - 3.0


def _safely(function: Callable[..., Any]) -> Callable[..., Any]:
    def _run(*args: Any) -> Any:
        try:
            result = function(*args)
        except ZeroDivisionError:
            return math.nan
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
        return math.nan if isinstance(result, complex) else result

    return _run


def _extreme(choose: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """NaN goes before all numbers; of equal numbers the first is taken."""
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else choose(a, b)


def cast(value: Any, dtype: str) -> Any:
    if dtype in _INTEGERS:
        return int(value) if math.isfinite(value) else 0
    if dtype == "bool":
        return bool(value)
    if dtype in {"float32", "f32"}:
        try:
            return struct.unpack("f", struct.pack("f", float(value)))[0]
        except OverflowError:
            return math.inf
    return float(value)


BINARY: dict[str, Callable[..., Any]] = {
    name: _safely(function)
    for name, function in {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
        "div": operator.truediv, "floordiv": operator.floordiv, "remainder": operator.mod,
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge, "pow": operator.pow, "maximum": _extreme(max), "minimum": _extreme(min),
        "logical_and": lambda a, b: bool(a) and bool(b), "logical_or": lambda a, b: bool(a) or bool(b),
        "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift,
        "and_": operator.and_, "or_": operator.or_, "xor": operator.xor, "bitwise_and": operator.and_,
        "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    }.items()
}  # fmt: skip
OTHERS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "abs": abs, "square": lambda x: x * x, "floor": lambda x: float(math.floor(x)),
    "where": lambda c, a, b: a if c else b, "Max": max, "Min": min, "isnan": math.isnan, "isinf": math.isinf,
    "logical_not": lambda x: not x, "bitwise_not": operator.invert, "exp": math.exp, "sqrt": math.sqrt,
    "reciprocal": lambda x: 1.0 / x, "relu": lambda x: max(x, 0.0),
}  # fmt: skip
OPERATIONS = {**BINARY, **{name: _safely(function) for name, function in OTHERS.items()}}


_PARTS = {
    "welford": ("mean", "m2", "weight"),
    "welford_combine": ("mean", "m2", "weight"),
    "online_softmax": ("max", "sum"),
}
_WRITTEN = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "remainder", "^": "xor",
    "and": "logical_and", "or": "logical_or", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
    "&": "and_", "|": "or_", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
    "**": "pow", "min": "minimum", "max": "maximum",
}  # fmt: skip
_CASTS = {*_INTEGERS, "f64", "f32", "f16", "bf16", "bool"}


def operate(name: str, args: Sequence[Any]) -> Any:
    """Apply one of inductor's operations."""
    return OPERATIONS[name](*args) if name in OPERATIONS else made_up(name, list(args))


def number_text(value: Any) -> str:
    """Write a stored value so that equal bits are equal text; 0 and 0.0 are one value of a float buffer."""
    return repr(float(value)) if abs(value) < 2**53 or math.isnan(value) else repr(value)


def reduce_all(kind: str, columns: Sequence[Any], at: int, part: str | None) -> Any:
    """Return the result of a reduction, scan or sort over what it was given at all points."""
    if kind == "sum":
        return _safely(lambda: sum(column[0] for column in columns))()
    return made_up(kind, list(columns), at if kind in {"scan", "sort"} else None, part)


class NotEvaluatedError(Exception):
    """An index with a function that only sympy knows."""


@dataclass
class World:
    """What stands in memory.

    Attributes:
        layouts: of the buffers, as far as printed.
        loaded: the places that were loaded from.
    """

    layouts: dict[str, BufferLayout]
    loaded: set[tuple[str, int]] = field(default_factory=set)

    def load(self, buffer: str, place: int) -> Any:
        self.loaded.add((buffer, place))
        layout = self.layouts.get(buffer)
        dtype = layout.dtype if layout else None
        number = made_up(buffer, place)
        if dtype == "bool":
            return number > 0
        if dtype in _INTEGERS or dtype is None:
            return abs(int(number * 3))
        return cast(number, "f32")

    def size(self, size: int | str) -> int:
        return size if isinstance(size, int) else self.index(size, {})

    def index(self, text: str, values: dict[str, Any]) -> int:
        node = parse_expression(text)
        names = {name: int(value) for name, value in values.items()}
        result = evaluate(node, _Symbols(names))
        if result is None:
            raise NotEvaluatedError(text)
        return result


class _Symbols(dict[str, int]):
    """Gives each unknown symbol a value of its own."""

    def __missing__(self, name: str) -> int:
        return 5 + int(abs(made_up(name)) * 8)


Stored = tuple[str, int, str, str | None]


def points(world: World, node: SchedulerNode) -> Iterator[tuple[dict[str, int], list[dict[str, int]]]]:
    """Yield a few points of the outer loops, each with a few points of the reduced ones."""
    assert node.body is not None
    sizes = [(name, world.size(size)) for name, size in node.body.var_ranges]
    reduced = len(node.sizes[1]) if node.sizes and len(node.sizes) > 1 else 0
    outer, inner = sizes[: len(sizes) - reduced], sizes[len(sizes) - reduced :]
    for turn in range(4):
        point = {name: _pick(size, turn, name) for name, size in outer}
        yield (
            point,
            [{name: _pick(size, at, name) for name, size in inner} for at in range(3 if inner else 1)],
        )


def _pick(size: int, turn: int, name: str) -> int:
    return (0, size - 1)[turn] if turn < 2 else int(abs(made_up(name, turn)) * 1e6) % max(size, 1)


class BodyMachine:
    """Runs the operations of a body one by one at one point."""

    def __init__(self, world: World, body: LoopBody) -> None:
        self._world = world
        self._body = body
        self._blocks = {block.name: block for block in body.blocks}
        self._indexes = dict(body.indexes)

    def run(self, outer: dict[str, int], inner: list[dict[str, int]]) -> list[Stored]:
        collected: list[dict[int, Any]] = []
        for point in inner:
            self._collecting: dict[int, Any] = {}
            self._results: list[dict[int, Any]] | None = None
            self._start({**outer, **point})
            collected.append(self._collecting)
        stored: list[Stored] = []
        for at, point in enumerate(inner):
            self._results, self._at = collected, at
            self._start({**outer, **point})
            stored += self._stored
        return stored

    def _start(self, point: dict[str, int]) -> None:
        self._point: dict[str, Any] = dict(point)
        self._stored: list[Stored] = []
        self._block(self._body.blocks[0])

    def _block(self, block: Block) -> Any:
        names: dict[str, Any] = {}
        for op in block.ops:
            names[op.result] = self._op(op, names)
        return self._value(block.result, names)

    def _value(self, arg: Any, names: dict[str, Any]) -> Any:
        return names[arg.name] if isinstance(arg, Ref) else arg

    def _op(self, op: Op, names: dict[str, Any]) -> Any:
        args = [self._value(arg, names) for arg in op.args]
        name = op.target.removeprefix("ops.")
        if op.target == "self.get_index":
            text = self._indexes[args[0]]
            return lambda: self._world.index(text, self._point)
        if op.target.startswith("self.set_indirect"):
            self._point[op.target.removeprefix("self.set_")] = args[0]
            return args[0]
        if op.target.startswith("self.masked_subblock"):
            return self._block(self._blocks[op.target.removeprefix("self.")]) if args[0] else args[1]
        if op.target == "[]":
            return args[0][args[1]] if isinstance(args[0], tuple) else made_up("item", args[0], args[1])
        args = [arg() if callable(arg) else arg for arg in args]
        if name == "constant":
            return cast(args[0], args[1].text.removeprefix("torch."))
        if name in {"to_dtype", "index_expr", "value_expr"}:
            return self._cast(args, dict(op.kwargs))
        if name == "load":
            return self._world.load(args[0], args[1])
        if name in {"store", "store_reduction"}:
            self._stored.append((args[0], args[1], number_text(args[2]), args[3] if len(args) > 3 else None))
            return None
        if name in {"reduction", "sort"} or op.target.startswith("self.scan"):
            return self._reduction(op, args, names)
        return operate(
            name, list(_numbers(op.args, names)) + list(_numbers([v for _, v in op.kwargs], names))
        )

    def _cast(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        source = kwargs.get("src_dtype")
        dtype = args[1].text.removeprefix("torch.")
        return args[0] if source == args[1] else cast(args[0], dtype)

    def _reduction(self, op: Op, args: list[Any], names: dict[str, Any]) -> Any:
        kind = str(args[2]).removesuffix("_reduce") if op.target == "ops.reduction" else "scan"
        given = op.args[3] if op.target == "ops.reduction" else op.args[1]
        if op.target == "ops.sort":
            kind, given = "sort", op.args[1]
        values = list(_numbers(given if isinstance(given, tuple) else (given,), names))
        if self._results is None:
            self._collecting[op.line] = values
            return tuple([math.nan] * 3) if _has_parts(kind) else math.nan
        columns = [result[op.line] for result in self._results]
        if not _has_parts(kind):
            return reduce_all(kind, columns, self._at, None)
        parts = _PARTS.get(kind, ("0", "1", "2"))
        return tuple(reduce_all(kind, columns, self._at, part) for part in parts)


def _has_parts(kind: str) -> bool:
    return kind in {*_PARTS, "scan", "sort"}


def _numbers(args: Sequence[Any], names: dict[str, Any]) -> Iterator[Any]:
    """Yield the numbers among arguments, those in tuples too."""
    for arg in args:
        value = names[arg.name] if isinstance(arg, Ref) else arg
        value = value() if callable(value) else value
        if isinstance(value, tuple):
            yield from _numbers(value, names)
        elif not isinstance(value, Dotted | str | None):
            yield value


class FormulaMachine:
    """Evaluates a formula at one point; a definition only when it is asked for."""

    def __init__(self, world: World, formula: Formula) -> None:
        self._world = world
        self._formula = formula
        self._strides = {
            view.buffer: _strides(view, world.layouts.get(view.buffer)) for view in formula.views
        }
        self._definitions = {s.name: s for s in formula.statements if isinstance(s, Definition)}

    def run(self, outer: dict[str, int], inner: list[dict[str, int]]) -> list[Stored]:
        stored: list[Stored] = []
        self._inner = inner
        for at, point in enumerate(inner):
            self._at = at
            self._outer = outer
            names = {**outer, **point}
            self._known: dict[tuple[Any, ...], Any] = {}
            for statement in self._formula.statements:
                if isinstance(statement, Definition) or (
                    statement.under is not None and not self.value(statement.under, names)
                ):
                    continue
                if isinstance(statement, Store):
                    place = self._place(statement.target, names)
                    value = self.value(statement.value, names)
                    stored.append((statement.target.buffer, place, number_text(value), statement.mode))
        return stored

    def value(self, expression: Expression, names: dict[str, Any]) -> Any:  # noqa: PLR0912 - an arm a record
        match expression:
            case Number(text=text):
                return _number(text, expression.dtype)
            case Name(name=name):
                if name in names:
                    return names[name]
                if name in self._definitions:
                    return self._call(name, [], names)
                return self._world.index(name, {})
            case Access(buffer=buffer):
                return self._world.load(buffer, self._place(expression, names))
            case Unary(operator=sign, operand=operand):
                name = {"-": "neg", "~": "bitwise_not", "not": "logical_not"}[sign]
                return operate(name, [self.value(operand, names)])
            case Binary(operator=sign, left=left, right=right):
                return operate(_WRITTEN[sign], [self.value(left, names), self.value(right, names)])
            case Chain(first=first, rest=rest):
                value = self.value(first, names)
                for sign, term in rest:
                    value = operate(_WRITTEN[sign], [value, self.value(term, names)])
                return value
            case Part(of=Over() as over, part=part):
                return self._over(over, names, part)
            case Part(of=of, part=part):
                return made_up("item", self.value(of, names), int(part))
            case Over():
                return self._over(expression, names, None)
            case Text(text=text):
                return self._world.index(text, names)
            case Call():
                return self._function(expression, names)

    def _function(self, call: Call, names: dict[str, Any]) -> Any:
        name = call.function
        if name in self._definitions:
            return self._call(name, [self.value(arg, names) for arg in call.arguments], names)
        if name == "masked":
            mask, inside, other = call.arguments
            return self.value(inside if self.value(mask, names) else other, names)
        args = [self.value(arg, names) for arg in _flat(call)]
        if name in _CASTS:
            return cast(args[0], name)
        if name in {"max", "min"} and len(args) > 1:
            return reduce(BINARY[_WRITTEN[name]], args)
        if name == "clamp":
            return operate("minimum", [operate("maximum", args[:2]), args[2]])
        return operate(_WRITTEN.get(name, name.removeprefix("ops.")), args)

    def _call(self, name: str, args: list[Any], names: dict[str, Any]) -> Any:
        definition = self._definitions[name]
        loops = {loop.variable: names[loop.variable] for loop in self._formula.loops}
        key = (name, *map(repr, args), *loops.values())
        if key not in self._known:
            inside = {**loops, **dict(zip(definition.parameters, args, strict=True))}
            self._known[key] = self.value(definition.value, inside)
        return self._known[key]

    def _place(self, access: Access, names: dict[str, Any]) -> int:
        places = [self.value(subscript, names) for subscript in access.subscripts]
        offset, strides = self._strides[access.buffer]
        return int(offset + sum(s * self._world.size(t) for s, t in zip(places, strides, strict=True)))

    def _over(self, over: Over, names: dict[str, Any], part: str | None) -> Any:
        columns = [[self.value(value, {**names, **point}) for value in over.values] for point in self._inner]
        return reduce_all(over.kind, columns, self._at, part)


def _number(text: str, dtype: str | None) -> Any:
    number = {"True": True, "False": False}.get(text)
    if number is None:
        number = float(text) if any(c in text for c in ".enf") else int(text)
    return number if dtype is None else cast(number, dtype)


def _flat(call: Call) -> Iterator[Expression]:
    for arg in (*call.arguments, *(value for _, value in call.keywords)):
        if isinstance(arg, Call) and not arg.function:
            yield from _flat(arg)
        elif not isinstance(arg, Text):
            yield arg


def _strides(view: Any, layout: BufferLayout | None) -> tuple[Any, list[Any]]:
    """Return the offset and the strides of what the subscripts run over, from the layout alone."""
    if view.shape is None or layout is None:
        return 0, [1]
    sizes, strides = list(layout.size or ()), list(layout.stride or ())
    if view.order is not None:
        sizes, strides = [sizes[dim] for dim in view.order], [strides[dim] for dim in view.order]
    if tuple(sizes) == view.shape:
        return layout.offset, strides
    kept = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    found = []
    for length in view.shape:
        whole = 1
        while whole < length:
            size, stride = kept.pop(0)
            whole *= size
        assert whole == length
        found.append(stride)
    assert not kept
    return layout.offset, found
