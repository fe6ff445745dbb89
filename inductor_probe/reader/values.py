"""Values as inductor prints them: deps, layouts, users, sizes, operands.

Values are read by their brackets and commas, and never evaluated: `MemoryDep('buf0', 3*c0, {c0: 256})` is a
kind with arguments. What is symbolic in them (an index, a size that is no number), and the operands of a
loop body, must be Python expressions, which `ast` checks. Every function raises ValueError on a form it does
not know.

A dump says the same things many times (in the file before fusion and the one after, of a fused node and of
each of its children, for every graph of a run), so what was read is remembered by its text. The records
are frozen: sharing them saves memory as well.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from inductor_probe.backends.brackets import unwrapped
from inductor_probe.model.ir import (
    PRINTED_STRIDE,
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
    as_dim,
)
from inductor_probe.reader.python_text import check_length, parse_expression

_CALL = re.compile(r"(?P<kind>\w+)\((?P<arguments>.*)\)", re.DOTALL)
_STRING = re.compile(r"'([^'\\]*)'")
_SUM = re.compile(r"[\w*+ -]+")
"""Most indices: `3*c0 + c1`. To parse each takes longer than all the rest of a dep."""
_BETWEEN_DEPS = re.compile(r",\s+(?=\w+Dep\()")
_BETWEEN_USERS = re.compile(r",\s+(?=NodeUser\()")


def balance(text: str) -> int:
    """Return how many more brackets a text opens than it closes."""
    count = text.count
    return count("(") + count("[") + count("{") - count(")") - count("]") - count("}")


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets: `size=[2, 3], offset=5` gives `size=[2, 3]` and `offset=5`.

    Split at every comma, then joined again until brackets balance: `size=[2` opens one, ` 3]` closes it.
    """
    pieces = text.split(",")
    parts: list[str] = []
    start = depth = 0
    for end, piece in enumerate(pieces, 1):
        depth += balance(piece)
        if not depth:
            parts.append(",".join(pieces[start:end]).strip())
            start = end
    if depth:
        raise ValueError(f"brackets do not match: {shorten(text)}")
    return parts if parts[-1] else parts[:-1]


def _items(text: str, brackets: str, what: str) -> list[str]:
    """Return what a list, tuple or dictionary holds."""
    check_length(text)
    if not (text.startswith(brackets[0]) and text.endswith(brackets[1])):
        raise ValueError(f"not {what}: {shorten(text)}")
    return _split(text[1:-1])


def _call(text: str) -> tuple[str, list[str], dict[str, str]]:
    """Take `Kind(1, key=2)` apart: kind, positional and keyword arguments."""
    check_length(text)
    match = _CALL.fullmatch(text)
    if match is None:
        raise ValueError(f"not of the form Kind(...): {shorten(text)}")
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for argument in _split(match["arguments"]):
        name, equals, value = argument.partition("=")
        if equals and name.isidentifier():
            keywords[name] = value
        else:
            positional.append(argument)
    return match["kind"], positional, keywords


def _one_line(text: str) -> str:
    """Join a value that `pprint` broke into lines."""
    return " ".join(text.split("\n")).strip() if "\n" in text else text.strip()


@lru_cache(maxsize=8192)
def dim(text: str) -> Dim:
    """Read a size or stride: an int, or the text of a symbolic expression (`s77*s27`, `2*u0`)."""
    if text.isdecimal():
        return as_dim(text)
    parse_expression(text)
    return unwrapped(text)


def _index(text: str) -> str:
    """Read the index of a dep: `100*c0 + 50*((c1//3)) + (ModularIndexing(c1, 1, 3))`."""
    if not _SUM.fullmatch(text):
        parse_expression(text)
        return unwrapped(text)
    return text


def dims(text: str) -> tuple[Dim, ...]:
    """Read a list or tuple of sizes or strides: `[8, s77]`, `(8, 3)`, `(8,)`, `()`."""
    if not (text.startswith("[") or _is_tuple(text)):
        raise ValueError(f"not a list of sizes: {shorten(text)}")
    return tuple(map(dim, _items(text, "()" if text[0] == "(" else "[]", "a list of sizes")))


def _is_tuple(text: str) -> bool:
    """Distinguish `(8, 3)`, `(8,)` and `()` from `((s0//2))`, which is one size."""
    return text == "()" or (text.startswith("(") and (text.endswith(",)") or len(_split(text[1:-1])) > 1))


@lru_cache(maxsize=8192)
def ranges(text: str) -> tuple[tuple[str, Dim], ...]:
    """Read `{c0: 256, c1: s77}` in its order."""
    pairs = [part.partition(":") for part in _items(_one_line(text), "{}", "ranges")]
    if not all(colon and name.isidentifier() for name, colon, _ in pairs):
        raise ValueError(f"not ranges: {shorten(text)}")
    return tuple((name, dim(size.strip())) for name, _, size in pairs)


@lru_cache(maxsize=8192)
def deps(text: str) -> tuple[Dep, ...]:
    """Read `[MemoryDep('buf0', c0, {c0: 256}), StarDep(name='buf1', mode=None)]`."""
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError(f"not a list of deps: {shorten(text)}")
    inner = inner[1:-1].strip()
    return tuple(map(_dep, _BETWEEN_DEPS.split(inner))) if inner else ()


@lru_cache(maxsize=8192)
def _dep(text: str) -> Dep:
    """Read one dep; torch/_inductor/dependencies.py prints it."""
    kind, args, kwargs = _call(_one_line(text))
    match kind:
        # MemoryDep.__repr__: the mode unquoted; torch 2.4 and 2.5 print `None`, too.
        case "MemoryDep":
            if len(args) < 3:
                raise ValueError(f"a MemoryDep without name, index or ranges: {shorten(text)}")
            mode = _mode(args[3]) if len(args) > 3 else None
            return MemoryDep(_string(args[0]), _index(args[1]), ranges(args[2]), mode)
        # Of the dataclasses, by their fields: the mode quoted. `mode` since torch 2.4, `mutating_buf` since
        # 2.5, `is_fake` since 2.9.
        case "StarDep":
            return StarDep(_string(_argument(kwargs, "name", kind)), _mode(kwargs.get("mode", "None")))
        case "WeakDep":
            mutating, is_fake = kwargs.get("mutating_buf"), kwargs.get("is_fake")
            return WeakDep(
                _string(_argument(kwargs, "name", kind)),
                None if mutating is None else _string(mutating),
                None if is_fake is None else _bool(is_fake),
            )
    raise ValueError(f"unknown dep {kind}")


_LAYOUT_KEYS = ("device", "size", "stride", "offset")


@lru_cache(maxsize=8192)
def layout(text: str) -> BufferLayout:
    """Read `FixedLayout('cpu', torch.float32, size=[2, 3], stride=[3, 1])` (torch/_inductor/ir.py,
    Layout.__str__).

    MultiOutputLayout and NoneLayout are dataclasses: `MultiOutputLayout(device=device(type='cpu'))`.
    """
    kind, args, kwargs = _call(_one_line(text))
    device = args[0] if args else kwargs.get("device")
    size, stride, offset = kwargs.get("size"), kwargs.get("stride"), kwargs.get("offset")
    return BufferLayout(
        kind=kind,
        device=None if device is None else _device(device),
        dtype=args[1].removeprefix("torch.") if len(args) > 1 else None,
        size=None if size is None else dims(size),
        stride=None if stride is None else dims(stride),
        offset=0 if offset is None else dim(offset),
        extras=tuple((key, value) for key, value in kwargs.items() if key not in _LAYOUT_KEYS),
    )


@lru_cache(maxsize=8192)
def users(text: str) -> tuple[NodeUser, ...]:
    """Read `[NodeUser(node=SchedulerNode(name='op1'), can_inplace=False, is_weak=False)]`, or `None`.

    torch/_inductor/scheduler.py, SchedulerBuffer.debug_str; several users are on lines of their own.
    """
    text = text.strip()
    if text == "None":
        return ()  # fused nodes of torch 2.1
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"not a list of users: {shorten(text)}")
    inner = text[1:-1].strip().removesuffix(",")
    return tuple(map(_user, _BETWEEN_USERS.split(inner))) if inner else ()


@lru_cache(maxsize=8192)
def _user(text: str) -> NodeUser:
    user, _, kwargs = _call(text)
    node, kind = _argument(kwargs, "node", user), None
    if node.endswith(")"):  # BaseSchedulerNode.__repr__; of fused nodes `FusedSchedulerNode(nodes=op0_op1)`
        kind, _, arguments = _call(node)
        node = _string(arguments["name"]) if "name" in arguments else _argument(arguments, "nodes", kind)
    if not node.isidentifier():
        raise ValueError(f"not a name: {shorten(node)}")
    can_inplace, is_weak = (_bool(_argument(kwargs, name, user)) for name in ("can_inplace", "is_weak"))
    return NodeUser(node, kind, can_inplace, is_weak)


def count(text: str) -> int:
    """Read a whole number that is not negative."""
    if not (text.isdecimal() and len(text) < 19):
        raise ValueError(f"not a count: {shorten(text)}")
    return int(text)


def names(text: str) -> tuple[str, ...]:
    """Read `['buf0', 'buf2']`."""
    return tuple(map(_string, _items(_one_line(text), "[]", "a list of names")))


@lru_cache(maxsize=8192)
def sizes(text: str) -> tuple[tuple[Dim, ...], ...]:
    """Read `([1024], [768])` or `((1024,), (768,))`: iteration sizes, then reduction sizes."""
    return tuple(map(dims, _items(_one_line(text), "()", "sizes")))


@lru_cache(maxsize=8192)
def iteration(text: str) -> tuple[Dim | tuple[Dim, ...], ...]:
    """Read a group's `((1024,), (768,))` (C++) or `(1024, 768)` (Triton; `((s0//2))` is one size)."""
    parts = _items(_one_line(text), "()", "a group's sizes")
    return tuple(dims(part) if part.startswith("[") or _is_tuple(part) else dim(part) for part in parts)


@lru_cache(maxsize=8192)
def operand_text(text: str) -> Value:
    """Read the text of an operand, as behind the `return` of a block."""
    return operand(parse_expression(text))


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


def _argument(kwargs: dict[str, str], key: str, of: str) -> str:
    """Return a keyword argument that every form of a value has."""
    if key not in kwargs:
        raise ValueError(f"{of} without {key}")
    return kwargs[key]


def _mode(text: str) -> str | None:
    return None if text == "None" else text.strip("'")


def _device(text: str) -> str:
    """`'cuda:0'`, or `device(type='cuda', index=0)`."""
    if text.startswith("'"):
        return _string(text)
    _, args, kwargs = _call(text)
    kind = _string(args[0] if args else _argument(kwargs, "type", "device"))
    return f"{kind}:{kwargs['index']}" if "index" in kwargs else kind


def _string(text: str) -> str:
    if match := _STRING.fullmatch(text):
        return match[1]
    raise ValueError(f"not a name: {shorten(text)}")


def _bool(text: str) -> bool:
    if text in ("True", "False"):
        return text == "True"
    raise ValueError(f"not a bool: {shorten(text)}")


def listed_names(text: str) -> tuple[str, ...]:
    """Return the names of `arg0_1, arg1_1, `."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def shorten(text: str) -> str:
    """Cut a text for a message."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def constant_layout(
    device: str | None,
    dtype: str | None,
    size: tuple[Dim, ...] | None,
    stride: tuple[Dim, ...] | None,
    extras: tuple[tuple[str, str], ...] = (),
) -> BufferLayout:
    """Return the layout of a constant of the module.

    Of a weight that freezing packed for a library torch prints the stride `(1, 0, 0, 0)`, which says nothing
    of its memory: the layout has no stride then, and the printed one in `extras`.
    """
    pairs = zip(size or (), stride or (), strict=False)
    if any(length not in (0, 1) and step == 0 for length, step in pairs):
        stride, extras = None, (*extras, (PRINTED_STRIDE, str(list(stride or ()))))
    return BufferLayout("Constant", device, dtype, size, stride, extras=extras)
