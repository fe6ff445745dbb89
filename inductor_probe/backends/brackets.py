"""Cutting expressions at brackets and commas."""

from __future__ import annotations

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 100
"""No expression of inductor's is nested deeper; a text made to be slow is."""


def inside(text: str, opening: int) -> str | None:
    """Return what stands between the bracket at `opening` and its partner; None when there is none near."""
    depth = 0
    quote = ""
    for at in range(opening, len(text)):
        letter = text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _CLOSING:
            depth += 1
            if depth > _DEEPEST:
                return None
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return text[opening + 1 : at]
    return None


def split_arguments(text: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        if letter in _CLOSING:
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def unwrapped(text: str) -> str:
    """Remove brackets around the whole of `text`."""
    text = text.strip()
    while text.startswith("(") and (inner := inside(text, 0)) is not None and len(inner) == len(text) - 2:
        text = inner.strip()
    return text
