"""Values as inductor prints them: deps, layouts, users, sizes. Nearly all of them are Python expressions.

They are read with `ast` and never evaluated. `parse` gives an `Expression`; the functions below turn its
nodes into records. Every one raises ValueError on a form it does not know.

A dump says the same things many times (in the file before fusion and the one after, of a fused node and of
each of its children, for every graph of a run), so what was parsed is remembered by its text. The records
are frozen: sharing them saves memory as well.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from inductor_probe.model.ir import (
    BufferLayout,
    Dep,
    Dim,
    Dotted,
    MemoryDep,
    NodeUser,
    Ref,
    StarDep,
    Value,
    WeakDep,
    dim_of,
)
from inductor_probe.reader import usual
from inductor_probe.reader.python_text import parse_expression


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression together with its text, so that parts can be quoted verbatim."""

    text: str
    encoded: bytes
    node: ast.expr

    def quote(self, node: ast.expr) -> str:
        """Return the text of `node`, which is part of this expression."""
        return self.encoded[node.col_offset : node.end_col_offset].decode()


def parse(text: str) -> Expression:
    """Parse one expression; line breaks inside it do not matter.

    Raises:
        ValueError: see `parse_expression`.
    """
    line = " ".join(text.split("\n")).strip()
    return Expression(line, line.encode(), parse_expression(line))


def dim(expression: Expression, node: ast.expr) -> Dim:
    """Read a size or stride: an int, or the text of a symbolic expression."""
    text = expression.quote(node)
    return dim_of(node.value, text) if isinstance(node, ast.Constant) and type(node.value) is int else text


def dims(expression: Expression, node: ast.expr) -> tuple[Dim, ...]:
    """Read a list or tuple of sizes or strides."""
    if not isinstance(node, ast.List | ast.Tuple):
        raise ValueError(f"not a list of sizes: {expression.quote(node)}")
    return tuple(dim(expression, element) for element in node.elts)


def ranges(expression: Expression, node: ast.expr | None = None) -> tuple[tuple[str, Dim], ...]:
    """Read `{c0: 256, c1: s77}` in its order; `node` is the part of the expression, all of it if None."""
    node = expression.node if node is None else node
    if not isinstance(node, ast.Dict):
        raise ValueError(f"not ranges: {shorten(expression.quote(node))}")
    return tuple(
        (expression.quote(key), dim(expression, value))
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None
    )


@lru_cache(maxsize=8192)
def ranges_text(text: str) -> tuple[tuple[str, Dim], ...]:
    """Read the text of ranges: `{p0: 256, p1: s77}`."""
    return ranges(parse(text))


@lru_cache(maxsize=8192)
def deps(text: str) -> tuple[Dep, ...]:
    """Read `[MemoryDep('buf0', c0, {c0: 256}), StarDep(name='buf1', mode=None)]`."""
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError(f"not a list of deps: {shorten(text)}")
    inner = inner[1:-1].strip()
    return tuple(map(dep, _BETWEEN_DEPS.split(inner))) if inner else ()


_BETWEEN_DEPS = re.compile(r",\s+(?=\w+Dep\()")


@lru_cache(maxsize=8192)
def dep(text: str) -> Dep:
    """Read one dep."""
    if known := usual.memory_dep(text) or usual.star_dep(text):
        return known
    expression = parse(text)
    return _dep(expression, expression.node)


def _dep(expression: Expression, node: ast.expr) -> Dep:
    name, args, kwargs = _call(expression, node)
    match name:
        case "MemoryDep":
            if len(args) < 3:
                raise ValueError(
                    f"a MemoryDep without name, index or ranges: {shorten(expression.quote(node))}"
                )
            mode = _mode(expression, args[3]) if len(args) > 3 else None
            return MemoryDep(_string(args[0]), expression.quote(args[1]), ranges(expression, args[2]), mode)
        case "StarDep":
            return StarDep(_string(_argument(kwargs, "name", name)), _mode(expression, kwargs.get("mode")))
        case "WeakDep":
            mutating, fake = kwargs.get("mutating_buf"), kwargs.get("is_fake")
            return WeakDep(
                _string(_argument(kwargs, "name", name)),
                None if mutating is None else _string(mutating),
                None if fake is None else _bool(fake),
            )
    raise ValueError(f"unknown dep {name}")


_LAYOUT_KEYS = ("device", "size", "stride", "offset")


@lru_cache(maxsize=8192)
def layout(text: str) -> BufferLayout:
    """Read `FixedLayout('cpu', torch.float32, size=[2, 3], stride=[3, 1])` and its kin."""
    if known := usual.layout(text):
        return known
    expression = parse(text)
    kind, args, kwargs = _call(expression, expression.node)
    device = args[0] if args else kwargs.get("device")
    size, stride, offset = kwargs.get("size"), kwargs.get("stride"), kwargs.get("offset")
    return BufferLayout(
        kind=kind,
        device=None if device is None else _device(expression, device),
        dtype=expression.quote(args[1]).removeprefix("torch.") if len(args) > 1 else None,
        size=None if size is None else dims(expression, size),
        stride=None if stride is None else dims(expression, stride),
        offset=0 if offset is None else dim(expression, offset),
        extras=tuple((key, expression.quote(at)) for key, at in kwargs.items() if key not in _LAYOUT_KEYS),
    )


@lru_cache(maxsize=8192)
def users(text: str) -> tuple[NodeUser, ...]:
    """Read `[NodeUser(node=SchedulerNode(name='op1'), can_inplace=False, is_weak=False)]`, or `None`."""
    if (known := usual.users(text)) is not None:
        return known
    expression = parse(text)
    if isinstance(expression.node, ast.Constant) and expression.node.value is None:
        return ()  # fused nodes of torch 2.1
    if not isinstance(expression.node, ast.List):
        raise ValueError(f"not a list of users: {shorten(text)}")
    found = []
    for element in expression.node.elts:
        user, _, kwargs = _call(expression, element)
        node = _argument(kwargs, "node", user)
        kind: str | None = None
        if isinstance(node, ast.Call):
            kind, _, inner = _call(expression, node)
            if "name" in inner:
                name = _string(inner["name"])
            else:
                name = expression.quote(_argument(inner, "nodes", kind))
        else:
            name = expression.quote(node)
        weak = kwargs.get("is_weak")  # torch 2.1 and later
        can_inplace = _bool(_argument(kwargs, "can_inplace", user))
        found.append(NodeUser(name, kind, can_inplace, None if weak is None else _bool(weak)))
    return tuple(found)


def count(text: str) -> int:
    """Read a whole number that is not negative."""
    if not (text.isdecimal() and len(text) < 19):
        raise ValueError(f"not a count: {shorten(text)}")
    return int(text)


def names(text: str) -> tuple[str, ...]:
    """Read `['buf0', 'buf2']`."""
    if known := usual.names(text):
        return known
    expression = parse(text)
    if not isinstance(expression.node, ast.List):
        raise ValueError(f"not a list of names: {shorten(text)}")
    return tuple(_string(element) for element in expression.node.elts)


@lru_cache(maxsize=8192)
def sizes(text: str) -> tuple[tuple[Dim, ...], ...]:
    """Read `([1024], [768])` or `((1024,), (768,))`: iteration sizes, then reduction sizes."""
    expression = parse(text)
    if not isinstance(expression.node, ast.Tuple):
        raise ValueError(f"not sizes: {shorten(text)}")
    return tuple(dims(expression, element) for element in expression.node.elts)


@lru_cache(maxsize=8192)
def iteration(text: str) -> tuple[Dim | tuple[Dim, ...], ...]:
    """Read a group's `((1024,), (768,))` (C++) or `(1024, 768)` (Triton)."""
    expression = parse(text)
    if not isinstance(expression.node, ast.Tuple):
        raise ValueError(f"not a group's sizes: {shorten(text)}")
    return tuple(
        dims(expression, element) if isinstance(element, ast.Tuple | ast.List) else dim(expression, element)
        for element in expression.node.elts
    )


@lru_cache(maxsize=8192)
def operand_text(text: str) -> Value:
    """Read the text of an operand, as behind the `return` of a block."""
    return operand(parse(text).node)


def operand(node: ast.expr) -> Value:
    """Read an argument of an operation in a loop body."""
    match node:
        case ast.Constant(value=int() | float() | str() | None as value):
            return value
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.Name(id=name):
            return Ref(name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            number = operand(inner)
            if isinstance(number, int | float):
                return -number
        case ast.Attribute():
            return Dotted(dotted(node))
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(operand(element) for element in elements)
    raise ValueError(f"unknown operand {shorten(ast.unparse(node))}")


def dotted(node: ast.expr) -> str:
    """Return the text of `ops.load` or `torch.float32` (`ast.unparse` takes twenty times as long)."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ast.unparse(node)


def _call(expression: Expression, node: ast.expr) -> tuple[str, list[ast.expr], dict[str, ast.expr]]:
    if not isinstance(node, ast.Call):
        raise ValueError(f"not of the form Kind(...): {shorten(expression.quote(node))}")
    kwargs = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    return expression.quote(node.func), node.args, kwargs


def _argument(kwargs: dict[str, ast.expr], key: str, of: str) -> ast.expr:
    """Return a keyword argument that every form of a value has."""
    if key not in kwargs:
        raise ValueError(f"{of} without {key}")
    return kwargs[key]


def _mode(expression: Expression, node: ast.expr | None) -> str | None:
    """A mode is printed unquoted in MemoryDep and quoted in StarDep."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    return _string(node) if isinstance(node, ast.Constant) else expression.quote(node)


def _device(expression: Expression, node: ast.expr) -> str:
    """`'cuda:0'`, or `device(type='cuda', index=0)`."""
    if isinstance(node, ast.Constant):
        return _string(node)
    _, args, kwargs = _call(expression, node)
    kind = _string(args[0] if args else _argument(kwargs, "type", "device"))
    return f"{kind}:{expression.quote(kwargs['index'])}" if "index" in kwargs else kind


def _string(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError(f"not a name: {shorten(ast.unparse(node))}")


def _bool(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    raise ValueError(f"not a bool: {shorten(ast.unparse(node))}")


def shorten(text: str) -> str:
    """Cut a text for a message."""
    return text if len(text) <= 80 else f"{text[:77]}..."
