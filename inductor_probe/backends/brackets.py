"""Cutting expressions at brackets and commas."""

from __future__ import annotations

import re

_OPENING = "([{"
_MARK = re.compile(r"[()\[\]{}\"']")
_MARK_OR_COMMA = re.compile(r"[()\[\]{},]")
_DEEPEST = 100
"""No expression of inductor's is nested deeper; a text made to be slow is."""


def inside(text: str, opening: int) -> str | None:
    """Return what stands between the bracket at `opening` and its partner; None when there is none near."""
    depth = 0
    quote = ""
    for mark in _MARK.finditer(text, opening):
        letter = mark[0]
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
                return text[opening + 1 : mark.start()]
    return None


def split_arguments(text: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts: list[str] = []
    depth = start = 0
    for mark in _MARK_OR_COMMA.finditer(text):
        letter = mark[0]
        if letter in _OPENING:
            depth += 1
        elif letter != ",":
            depth -= 1
        elif depth == 0:
            parts.append(text[start : mark.start()].strip())
            start = mark.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def unwrapped(text: str) -> str:
    """Remove brackets around the whole of `text`."""
    text = text.strip()
    while text.startswith("(") and (inner := inside(text, 0)) is not None and len(inner) == len(text) - 2:
        text = inner.strip()
    return text
