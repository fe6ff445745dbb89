"""The forms that nearly all values have, by pattern, which takes far less time than parsing them.

Every function returns None for a value of another form, which `values` then parses. A test holds both ways of
reading against each other.
"""

from __future__ import annotations

import re

from inductor_probe.model.ir import BufferLayout, MemoryDep, NodeUser, Ref, StarDep, Value

_NUMBERS = r"(?:\d{1,18}(?:, \d{1,18})*)?"
_MEMORY_DEP = re.compile(
    r"MemoryDep\('(?P<name>\w+)', (?P<index>[\w*+ -]+), \{(?P<ranges>(?:\w+: \d{1,18}(?:, (?=\w))?)*)\}\)"
)
_LAYOUT = re.compile(
    r"(?P<kind>\w+)\('(?P<device>[\w:]+)', torch\.(?P<dtype>\w+), "
    rf"size=\[(?P<size>{_NUMBERS})\], stride=\[(?P<stride>{_NUMBERS})\]\)"
)
_USER = re.compile(
    r"NodeUser\(node=(?:(?P<kind>\w+)\(name='(?P<name>\w+)'\)|(?P<output>OUTPUT)), "
    r"can_inplace=(?P<inplace>True|False), is_weak=(?P<weak>True|False)\)"
)
_STAR_DEP = re.compile(r"StarDep\(name='(?P<name>\w+)', mode=None\)")
_QUOTED = re.compile(r"\['\w+'(?:, '\w+')*\]")
_OPERAND = r"(?:[A-Za-z_]\w*|'\w*')"
_OPERANDS = re.compile(rf"{_OPERAND}(?:, {_OPERAND})*")
_NOT_NAMES = frozenset(("True", "False", "inf", "nan"))


def memory_dep(text: str) -> MemoryDep | None:
    """Read `MemoryDep('buf0', 3*c0 + c1, {c0: 256, c1: 3})`."""
    match = _MEMORY_DEP.fullmatch(text)
    if match is None:
        return None
    pairs = (pair.split(": ") for pair in match["ranges"].split(", ") if pair)
    return MemoryDep(match["name"], match["index"], tuple((name, int(size)) for name, size in pairs))


def star_dep(text: str) -> StarDep | None:
    """Read `StarDep(name='buf0', mode=None)`."""
    match = _STAR_DEP.fullmatch(text)
    return StarDep(match["name"]) if match else None


def layout(text: str) -> BufferLayout | None:
    """Read `FixedLayout('cpu', torch.float32, size=[2, 3], stride=[3, 1])`."""
    match = _LAYOUT.fullmatch(text)
    if match is None:
        return None
    size, stride = _numbers(match["size"]), _numbers(match["stride"])
    return BufferLayout(match["kind"], match["device"], match["dtype"], size, stride)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(", "))) if text else ()


def users(text: str) -> tuple[NodeUser, ...] | None:
    """Read `[NodeUser(node=SchedulerNode(name='op1'), can_inplace=False, is_weak=False)]`."""
    if not text.startswith("[") or _USER.sub("", text).strip("[], \n"):
        return None
    return tuple(
        NodeUser(name or output, kind or None, inplace == "True", weak == "True")
        for kind, name, output, inplace, weak in _USER.findall(text)
    )


def names(text: str) -> tuple[str, ...] | None:
    """Read `['buf0', 'buf2']`."""
    return tuple(text[2:-2].split("', '")) if _QUOTED.fullmatch(text) else None


def operands(text: str) -> tuple[Value, ...] | None:
    """Read the arguments of an operation, where all are names or None: `'buf0', index, load, None`."""
    if not _OPERANDS.fullmatch(text):
        return None
    found = text.split(", ")
    return None if _NOT_NAMES.intersection(found) else tuple(map(_operand, found))


def _operand(text: str) -> Value:
    if text[0] == "'":
        return text[1:-1]
    return None if text == "None" else Ref(text)
