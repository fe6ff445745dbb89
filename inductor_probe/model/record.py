"""What records are made of: `msgspec.Struct`, whose classes are made in a tenth of a dataclass's time.

A reading verb imports some 290 records. As dataclasses, whose methods are compiled one by one from text, they
took half of its processor time.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct


class Compared(Struct, frozen=True, eq=False):
    """A record that equals another where all fields but `uncompared` do: the same, in another place.

    For example, a node of one dump and that of another are equal though they stand in other lines.
    """

    uncompared: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in self.uncompared)
