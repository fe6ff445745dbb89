"""The memory that a kernel is passed: how much, what for, and which integers may stand in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from inductor_probe.backends import backend_called
from inductor_probe.cpp_program.ranges import Bounds, bounds
from inductor_probe.cpp_program.sizes import evaluated, value_of
from inductor_probe.errors import ProbeError
from inductor_probe.model.code import CppFacts
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.kernels import KernelLaunch, KernelRow, Passed
from inductor_probe.model.manifest import InputFact

Use: TypeAlias = Literal["in", "out", "inout"]

_INTEGER = re.compile(r"u?int(?:8|16|32|64)_t|(?:unsigned |signed )?(?:int|long(?: long)?|short|char)")
_WHOLE = {"uint8_t": (0, 255), "unsigned char": (0, 255), "int8_t": (-128, 127), "signed char": (-128, 127)}
_POINTER = re.compile(r"(?:const )?(?P<type>[\w:<>, ]+?)\s*\*")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_BITS = re.compile(r"\d+")
_SMALL = 8
"""Integers of which nothing is known go up to this: a count of something, and small enough for most sums."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A parameter of a kernel that points to memory.

    Attributes:
        name: the parameter. type: of its elements, as the kernel's text has it.
        text: what the wrapper passes. layout: how that lies.
        elements: from the first element to the last, gaps of the strides included.
        use: `in`, `out`, or `inout` where the kernel reads what was there before it writes.
        low, high: of the integers in it, both included.
        of, offset: the parameter whose memory it shares, and how many of its own elements further on.
    """

    name: str
    type: str
    text: str
    layout: BufferLayout | None
    elements: int
    use: Use
    low: int = 0
    high: int = 0
    of: str | None = None
    offset: int = 0

    @property
    def integers(self) -> bool:
        """Whether integers are in it."""
        return _INTEGER.fullmatch(self.type) is not None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter of a kernel that is a number."""

    name: str
    type: str
    text: str
    value: str


def arguments(
    row: KernelRow, launch: KernelLaunch, sizes: Mapping[str, int], facts: Mapping[str, InputFact]
) -> tuple[Memory | Scalar, ...]:
    """Return what a launch passes, in order, sizes as numbers.

    Raises:
        ProbeError: a layout or a size is not known.
    """
    found = [_argument(passed, row, sizes) for passed in launch.passed]
    scalars = [each for each in found if isinstance(each, Scalar)]
    numbers = {each.name: int(each.value) for each in scalars if each.value.isdecimal()}
    pointers = frozenset(each.name for each in found if isinstance(each, Memory))
    limits = bounds(row.source, pointers)
    reads_first = _read_before_written(row, pointers)
    owners: dict[str, Memory] = {}
    made: list[Memory | Scalar] = []
    for passed, each in zip(launch.passed, found, strict=True):
        if isinstance(each, Scalar):
            made.append(each)
            continue
        use: Use = "inout" if each.use != "in" and each.name in reads_first else each.use
        low, high = _range(each, limits.get(each.name), facts.get(passed.buffer or ""), numbers)
        memory = replace(each, use=use, low=low, high=high, offset=_offset(passed.text, sizes))
        if passed.buffer in owners:
            memory = replace(memory, of=owners[passed.buffer].name)
        elif passed.buffer is not None:
            owners[passed.buffer] = memory
        made.append(memory)
    return tuple(_shared(made))


def _argument(passed: Passed, row: KernelRow, sizes: Mapping[str, int]) -> Memory | Scalar:
    if passed.arg is None or passed.arg.type is None:
        raise ProbeError(
            f"{row.name} is passed {passed.text}, for which its text has no parameter",
            "the dump may be cut off: probe check tells",
        )
    name, kind = passed.arg.name, passed.arg.type
    pointer = _POINTER.fullmatch(kind)
    if pointer is None:
        value = passed.text if _NUMBER.fullmatch(passed.text) else None
        if value is None:
            value = str(value_of(passed.text, sizes, f"{name} of {row.name}"))
        return Scalar(name, kind, passed.text, value)
    layout = passed.layout
    if layout is None or layout.size is None or layout.stride is None:
        raise ProbeError(f"the dump does not tell how large {passed.text} is, {name} of {row.name}")
    what = f"a size of {passed.text}, {name} of {row.name},"
    size = [value_of(dim, sizes, what) for dim in layout.size]
    stride = [value_of(dim, sizes, what) for dim in layout.stride]
    use: Use = "in" if kind.startswith("const ") else "inout" if passed.arg.role == "inout" else "out"
    last = sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    plain = replace(layout, size=tuple(size), stride=tuple(stride))
    return Memory(name, pointer["type"].strip(), passed.text, plain, 0 if 0 in size else last + 1, use)


def _read_before_written(row: KernelRow, pointers: frozenset[str]) -> set[str]:
    """Return the pointers of which the kernel may read what was there before: it loads or adds first."""
    backend = backend_called("cpp")
    uses = backend.pointer_uses(row.source, pointers) if backend else ()
    first: dict[str, str] = {}
    for use in uses:
        first.setdefault(use.pointer, use.how)
    atomic = isinstance(row.details, CppFacts) and row.details.atomics > 0
    return {name for name in pointers if atomic or first.get(name, "load") != "store"}


def _range(
    memory: Memory, limits: Bounds | None, fact: InputFact | None, numbers: Mapping[str, int]
) -> tuple[int, int]:
    """Return the integers to fill `memory` with: recorded ones, or those that cannot leave a buffer."""
    if not memory.integers:
        return 0, 0
    if fact is not None and fact.minimum is not None and fact.maximum is not None:
        return fact.minimum, fact.maximum
    below = limits.below if limits else None
    if below is not None:
        limit = evaluated(below, numbers)
        return 0, max((1 if limit is None else limit) - 1, 0)
    if limits is not None and limits.index:
        return 0, 0
    return _WHOLE.get(memory.type, (1, _SMALL))  # not 0: something may be divided by it


def _offset(text: str, sizes: Mapping[str, int]) -> int:
    """`reinterpret_tensor(buf0, (4, 3), (3, 1), 12)` starts at element 12 of `buf0`."""
    if "(" not in text:
        return 0
    match ast.parse(text, mode="eval").body:
        case ast.Call(args=[_, ast.Tuple(), ast.Tuple(), offset]):
            return value_of(ast.unparse(offset), sizes, f"the offset of {text}")
    return 0


def _shared(made: list[Memory | Scalar]) -> list[Memory | Scalar]:
    """Where parameters share memory, the first holds all of it, and is put back if any of them is written."""
    sharing = {each.of for each in made if isinstance(each, Memory)} - {None}
    for at, owner in enumerate(made):
        if isinstance(owner, Memory) and owner.name in sharing:
            parts = [each for each in made if isinstance(each, Memory) and owner.name in (each.name, each.of)]
            last = max((part.offset + part.elements) * _bytes(part) for part in parts)
            elements = -(-last // _bytes(owner))
            written = any(part.use != "in" for part in parts)
            made[at] = replace(owner, elements=elements, use="inout" if written else "in")
    return made


def _bytes(memory: Memory) -> int:
    """`bfloat16` has 16 bits, `float8_e5m2` has 8, and `bool` takes 8."""
    bits = _BITS.search(memory.layout.dtype or "") if memory.layout else None
    return int(bits[0]) // 8 if bits else 1
