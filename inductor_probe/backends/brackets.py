"""Cutting expressions at brackets and commas."""

from __future__ import annotations

import re

_OPENING = "([{"
_BRACKET_OR_QUOTE = re.compile(r"[()\[\]{}\"']")
_BRACKET_OR_COMMA = re.compile(r"[()\[\]{},]")
_DEEPEST = 100
"""No expression of inductor's is nested deeper; a text made to be slow is."""


def inside(text: str, opening: int) -> str | None:
    """Return what stands between the bracket at `opening` and its partner; None when there is none near.

    `tl.load(in_ptr0 + (x0), mask)` with the position of the first `(` gives `in_ptr0 + (x0), mask`.
    """
    depth = 0
    quote = ""
    for match in _BRACKET_OR_QUOTE.finditer(text, opening):
        letter = match[0]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _OPENING:
            depth += 1
            if depth > _DEEPEST:
                return None
        else:
            depth -= 1
            if depth == 0:
                return text[opening + 1 : match.start()]
    return None


def split_arguments(text: str) -> list[str]:
    """Split at the commas outside of brackets: `a, f(b, c)` gives `a` and `f(b, c)`."""
    parts: list[str] = []
    depth = start = 0
    for match in _BRACKET_OR_COMMA.finditer(text):
        letter = match[0]
        if letter in _OPENING:
            depth += 1
        elif letter != ",":
            depth -= 1
        elif depth == 0:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def unwrapped(text: str) -> str:
    """Remove brackets around all of `text`: `((a) + b)` gives `(a) + b`."""
    text = text.strip()
    while text.startswith("(") and (inner := inside(text, 0)) is not None and len(inner) == len(text) - 2:
        text = inner.strip()
    return text
