"""Types as FX prints them: `f32[4, s77]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from inductor_probe.model.ir import Dim, as_dim

INTEGERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}
"""Integer types as FX abbreviates them, and their bits."""

_TYPE = re.compile(r"(?P<dtype>[a-z]+\d\w*)\[(?P<size>[^\]]*)\].*")


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor's type: `dtype` as FX abbreviates it, `size` in numbers and symbolic expressions."""

    dtype: str
    size: tuple[Dim, ...]

    def numel(self) -> Dim:
        """Return the number of elements."""
        if all(isinstance(each, int) for each in self.size):
            return prod(each for each in self.size if isinstance(each, int))
        return "*".join(f"({each})" for each in self.size)


def parse_type(text: str | None) -> TensorType | None:
    """Parse the printed type of an FX node; None for anything but one tensor."""
    match = _TYPE.fullmatch(text or "")
    if match is None:
        return None
    return TensorType(match["dtype"], tuple(_dim(part) for part in _split(match["size"])))


def _dim(text: str) -> Dim:
    size = as_dim(text.removeprefix("-"))
    return text if isinstance(size, str) else -size if text.startswith("-") else size


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses: `s0, Max(1, s1)`."""
    parts, depth, start = [], 0, 0
    for at, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]
