"""Where a fact was read, and what was wrong there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Span:
    """Lines of a file, 1-based, both ends included."""

    path: Path
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.path}:{self.first}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a dump that could not be read; the rest was read all the same."""

    message: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.span}: {self.message}" if self.span else self.message


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's program, as inductor recorded it."""

    path: str
    line: int
    function: str | None
    code: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"
