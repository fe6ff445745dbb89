"""Where a fact was read, and what was wrong there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.model.codec import written


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


_INSTALLED = re.compile(
    r"(?:^|/)(?:(?:site|dist)-packages|lib/python3\.\d+|torch/(?:_\w+|nn|optim|fx|utils))/"
)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line that FX nodes came from, as inductor recorded it: the innermost frame that dynamo traced.

    That is the user's, or one of a package that it calls: `torch/optim/adam.py`.
    """

    path: str
    line: int
    function: str | None
    code: str

    @property
    @written
    def installed(self) -> bool:
        """Whether it is a line of an installed package, or of torch itself, and not of the user's."""
        return _INSTALLED.search(self.path) is not None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def own_lines(sources: Sequence[SourceLine]) -> Sequence[SourceLine]:
    """Return the lines of the user's; those of installed packages where there are no others."""
    return [source for source in sources if not source.installed] or sources
