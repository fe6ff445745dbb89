"""A function at which to stop, before it has been looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Wanted:
    """A place by name.

    Attributes:
        target: `module:Qualified.name`, or `file.py:LINE`.
        condition, why: see `Stop`.
        at: before its first statement, or before the `return` that it ends with, when
            what it makes has a name.
    """

    target: str
    condition: str | None = None
    why: str | None = None
    at: Literal["entry", "return"] = "entry"
