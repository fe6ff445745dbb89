"""What records are made of: `msgspec.Struct`, whose classes are made without compiling methods from text.

A reading verb imports some 290 records. As dataclasses, whose methods are compiled one by one, they took half
of its processor time, which `benchmarks/cost/verb_start.py` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from msgspec import NODEFAULT, Struct

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Compared(Struct, frozen=True, eq=False):
    """A record that equals another where all fields but `uncompared` do: the same, in another place.

    For example, a node of one dump and that of another are equal though they stand in other lines. A record
    of which more, or something else, does not count says so.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span", "lines", "evidence")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in self.uncompared)


def defaults(kind: type[Struct]) -> dict[str, Any]:
    """Return the defaults of the fields that have one, without evaluating any annotation."""
    pairs = zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False)
    return {name: value for name, value in pairs if value is not NODEFAULT}


def docstring_parts(text: str) -> tuple[str, list[str]]:
    """Return what a record's docstring says of the whole, and the entries below `Attributes:`.

    An entry is `name: text`, whose further lines stand below it, without what indents them.
    """
    whole, _, attributes = text.partition("\nAttributes:\n")
    entries: list[str] = []
    for line in attributes.partition("\n\n")[0].splitlines():
        if line.startswith(" " * 8) and entries:
            entries[-1] += f"\n{line.strip()}"
        else:
            entries.append(line.strip())
    return whole.partition("\nRaises:")[0].strip(), entries


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def grouped(values: Iterable[_Value], key: Callable[[_Value], _Key]) -> dict[_Key, list[_Value]]:
    """Return values by what `key` says of each; groups and what is in them keep their order."""
    return {name: [*group] for name, group in collected((key(value), value) for value in values).items()}


def collected(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, tuple[_Value, ...]]:
    """Return the values of each key, keys and values in their order."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}
