"""Where a fact was read, and what was wrong there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from inductor_probe.model.codec import written


class Span(Struct, frozen=True):
    """Lines of a file, 1-based, both ends included."""

    path: Path
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.path}:{self.first}"


class Problem(Struct, frozen=True):
    """Something in a dump that could not be read; the rest was read all the same."""

    message: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.span}: {self.message}" if self.span else self.message


MOST_PROBLEMS = 10_000
"""Of a file, before its reader stops: each takes memory, and no dump is misunderstood as often."""


def too_many_problems(path: Path, line: int, text: str) -> Problem:
    """Return the problem of a file whose reader stopped before `line`: the rest of it is not read."""
    message = f"not read from here on: more than {MOST_PROBLEMS:,} lines before are not understood"
    return Problem(message, Span(path, line, max(line, text.count("\n") + 1)))


_INSTALLED = re.compile(
    r"(?:^|/)(?:(?:site|dist)-packages|lib/python3\.\d+|torch/(?:_\w+|nn|optim|fx|utils))/"
)


class SourceLine(Struct, frozen=True):
    """A line that FX nodes came from, as inductor recorded it: the innermost frame that dynamo traced.

    That is the user's, or one of a package that it calls: `torch/optim/adam.py`.
    """

    path: str
    line: int
    function: str | None
    code: str

    @property
    def place(self) -> tuple[str, int]:
        """Where it is."""
        return self.path, self.line

    @property
    def short(self) -> str:
        """`net.py:12`, whatever folder it is in."""
        return f"{self.path.rpartition('/')[2]}:{self.line}"

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
