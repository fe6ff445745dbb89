"""The statements of a kernel's text: which values each defines and uses.

Only the names that inductor gives to values count: `tmp3`, `_tmp3`, `tmp_acc0_vec`, `local_buffer_data_0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from msgspec import Struct

_NAMES = r"(?:_|masked_)?(?:tmp|local_buffer)\w*|result\b|offset\b"
_NAME = re.compile(rf"\b(?:{_NAMES})")
_NUMBER = re.compile(r"_?tmp(\d+)")
_CALL = re.compile(r"\b(\w+)\s*(?:<[\w:, ]*>)?\(")
_CONSTANT = re.compile(
    r"(?:=\s*static_cast<\w+>\(|=\s*tl\.full\(\[[^\]]*\], )(-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)[,)]"
)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|//.*')
_DECLARES = re.compile(
    r"(?:alignas\(.*\)\s+|__at_align__\s+)?(?:const\s+)?[\w:]+(?:<.*?>)?[\s&*]+"
    rf"(?P<name>{_NAMES})\s*(?:\[[^\]]*\]\s*)?(?:=|;|$)"
)
_ASSIGNS = re.compile(rf"(?P<name>{_NAMES})(?:\[[^\]]*\])?\s*[-+*/|&^]?=(?!=)")
_STORES_TO = re.compile(rf"\.store\(\s*(?P<name>{_NAMES})")
_TRANSPOSES_TO = re.compile(rf"transpose_mxn<[^;]*>\([^;]*?,[^,;]*,\s*(?P<name>{_NAMES})")
_OWN_NUMBERS = re.compile(r"for\s*\((?!.*_inner\b)|if\s*\(\s*C10_(?:UN)?LIKELY")
_PYTHON_TARGETS = re.compile(r"^(?P<targets>[\w ,]+?)(?:\s*:[^=]+)?\s*=(?!=)(?P<value>.*)", re.DOTALL)


class Statement(Struct, frozen=True):
    """Lines `line` to `last` (1-based) of a kernel's text.

    Attributes:
        defines, uses: values by number; a name means another value in another C++ scope.
        order: number in the name of what it defines (`tmp3`: 3). Inductor counts up while it generates code.
        group: statements of one group share one count.
        unit: which block of the C++ function it stands in; inductor writes a block for each node after fusion
            or for each loop nest of it, in order. 0 for Triton, and outside of blocks.
        calls: names of the functions called. constants: numbers that it makes a value of.
        accumulates: it defines an accumulator, which only reductions have.
        fills: it writes to a local buffer, which stands for the result of a node that is stored nowhere else.
    """

    line: int
    last: int
    defines: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    order: int | None = None
    group: int = 0
    unit: int = 0
    calls: frozenset[str] = frozenset()
    constants: tuple[float, ...] = ()
    accumulates: bool = False
    fills: bool = False


@dataclass(slots=True)
class _Scope:
    """A C++ block: its names, the count it shares, and the lambda whose body it is."""

    group: int
    values: dict[str, int] = field(default_factory=dict)
    returns_to: int | None = None


def cpp_statements(source: str) -> Iterator[Statement]:
    """Yield the statements of a C++ kernel, a line each."""
    return _CppReader().read(source)


class _CppReader:
    def __init__(self) -> None:
        self._numbers = count(1)  # of values
        self._groups = 0
        self._scopes = [_Scope(0)]
        self._header = False  # the next block has a count of its own
        self._lambda: int | None = None  # what the next block computes
        self._region = False  # the next block is a parallel region
        self._base = 2  # so many blocks are open in a unit
        self._unit = 0

    def read(self, source: str) -> Iterator[Statement]:
        for number, line in enumerate(source.split("\n"), 1):
            code = _STRING.sub('""', line).strip() if '"' in line or "//" in line else line.strip()
            if not code or code.startswith("#"):
                self._region = self._region or code.startswith("#pragma omp parallel")
                continue
            if code.startswith(("for", "if")):
                self._header = bool(_OWN_NUMBERS.match(code))
            if "tmp" in code or code.startswith(("local_buffer", "float*", "return")) or _NAME.search(code):
                yield self._statement(number, code)
            self._braces(code)

    def _braces(self, code: str) -> None:
        opened = code.count("{") - code.count("}")
        for _ in range(opened):
            group = self._scopes[-1].group
            if self._header:
                self._groups += 1
                group = self._groups
            self._scopes.append(_Scope(group, {}, self._lambda))
            self._header, self._lambda = False, None
            if self._region:
                self._region, self._base = False, len(self._scopes)
            elif len(self._scopes) == self._base + 1:
                self._unit += 1
        for _ in range(-opened):
            if len(self._scopes) > 1:
                self._scopes.pop()

    def _statement(self, number: int, code: str) -> Statement:
        target = _DECLARES.match(code)
        names = _NAME.findall(code)
        defined: int | None = None
        name = None
        if target and not code.startswith("return"):
            name = target["name"]
            names.remove(name)
        elif assigned := _ASSIGNS.match(code):
            name = assigned["name"]
            if re.match(r"\s*=", code[assigned.end("name") :]):
                names.remove(name)
        elif moved := (_STORES_TO.search(code) or _TRANSPOSES_TO.search(code)):
            name = moved["name"]
            names.remove(name)
        uses = tuple(dict.fromkeys(value for used in names if (value := self._value_of(used)) is not None))
        if name is not None:
            defined = None if target else self._value_of(name)
            if defined is None:
                defined = self._scopes[-1].values[name] = next(self._numbers)
        targets = (scope.returns_to for scope in reversed(self._scopes) if scope.returns_to is not None)
        returns_to = next(targets, None)
        if defined is None and returns_to is not None and code.startswith(("return", "if", "constexpr")):
            defined = returns_to  # `constexpr decltype(tmp1) max_shift` is a name of the lambda alone
        elif defined is not None and (code.endswith(("[&]", "=")) or re.search(r"\[&\]\s*\{?$", code)):
            self._lambda = defined
        order = _NUMBER.match(name) if name else None
        return Statement(
            line=number,
            last=number,
            defines=() if defined is None else (defined,),
            uses=uses,
            order=int(order[1]) if order and target else None,
            group=self._scopes[-1].group,
            unit=self._unit if len(self._scopes) > self._base else 0,
            calls=frozenset(_CALL.findall(code)),
            constants=_constants(code),
            accumulates=name is not None and "tmp_acc" in name,
            fills=name is not None and name.startswith("local_buffer") and target is None,
        )

    def _value_of(self, name: str) -> int | None:
        return next((scope.values[name] for scope in reversed(self._scopes) if name in scope.values), None)


def _constants(code: str) -> tuple[float, ...]:
    return tuple(float(number) for number in _CONSTANT.findall(code))


def triton_statements(source: str) -> Iterator[Statement]:
    """Yield the statements of a Triton kernel; one that goes on over several lines is one."""
    lines = source.split("\n")
    values: dict[str, int] = {}
    number = next((number for number, line in enumerate(lines) if line.startswith("@triton.jit")), 0)
    while number < len(lines):
        first = number
        depth = _depth(lines[number]) if "tmp" in lines[number] else 0
        number += 1
        while depth > 0 and number < len(lines):
            depth += _depth(lines[number])
            number += 1
        if "tmp" in lines[first]:
            yield _triton_statement(first + 1, number, "\n".join(lines[first:number]).strip(), values)


def _depth(line: str) -> int:
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _triton_statement(first: int, last: int, text: str, values: dict[str, int]) -> Statement:
    target = _PYTHON_TARGETS.match(text)
    value = target["value"] if target else text
    uses = tuple(dict.fromkeys(values[name] for name in _NAME.findall(value) if name in values))
    defined = _NAME.findall(target["targets"]) if target else []
    for name in defined:
        values.setdefault(name, len(values))
    numbers = [int(match[1]) for name in defined if (match := _NUMBER.match(name))]
    return Statement(
        line=first,
        last=last,
        defines=tuple(values[name] for name in defined),
        uses=uses,
        order=min(numbers, default=None),
        calls=frozenset(_CALL.findall(value)),
        constants=_constants(text),
        accumulates=any(name.startswith("_tmp") for name in defined),
    )
