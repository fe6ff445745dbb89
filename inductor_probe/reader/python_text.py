"""Python text as a tree, as far as it can be read. Nothing is compiled to code or run."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.model.span import Problem, Span

_MOST_TRIES = 6


@dataclass(frozen=True, slots=True)
class ParsedText:
    """The statements before the first line that is not Python, and that line as a problem."""

    tree: ast.Module
    problems: tuple[Problem, ...] = ()


def parse_readable_part(text: str, path: Path) -> ParsedText:
    """Parse `text`; where it is cut off or damaged, parse what stands before that."""
    readable = text
    damaged = 0
    for _ in range(_MOST_TRIES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an invalid escape in a string is torch's affair
                tree = ast.parse(readable)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            damaged = min(damaged or line, line)
            readable = _before(readable, line)
            continue
        if not damaged:
            return ParsedText(tree)
        return ParsedText(tree, (_cut_off(text, path, damaged, tree),))
    return ParsedText(ast.Module([], []), (_cut_off(text, path, 1, None),))


def _before(text: str, line: int) -> str:
    """Return the lines before `line`; when that is all of them, before the last one as well."""
    lines = text.split("\n")
    return "\n".join(lines[: max(min(line, len(lines)) - 1, 0)])


def _cut_off(text: str, path: Path, line: int, tree: ast.Module | None) -> Problem:
    last = text.count("\n") + 1
    read_to = max((at.end_lineno or 0 for at in tree.body), default=0) if tree else 0
    first = min(max(read_to + 1, 1), last)
    return Problem(f"cut off, or not Python, from line {line} on", Span(path, first, last))
