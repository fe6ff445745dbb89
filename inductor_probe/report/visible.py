"""Characters that act on a terminal instead of showing, made visible: `\\x1b[31m` is shown, not obeyed.

Names and text in a dump come from strangers. An escape sequence in them could recolour or erase what was
printed before, set the clipboard, or make a link that lies; a bidi override shows text in another order than
it has; a lone surrogate (a byte of a file's name that is not UTF-8) cannot be printed at all.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

_BYTES = "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, delete, C1
_MARKS = "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
_ACTING = re.compile(f"[{_BYTES}{_MARKS}\ud800-\udfff\U000e0000-\U000e007f]")
_SURROGATE_ESCAPE = range(0xDC80, 0xDD00)
"""How Python decodes a byte of a file's name that is not UTF-8: 0xDC00 above it."""


def visible(text: str) -> str:
    r"""Return `text` with acting characters as escapes: `\x1b`, `\u202e`. Tabs and line ends stay."""
    return _ACTING.sub(_escape, text) if _ACTING.search(text) else text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code in _SURROGATE_ESCAPE:
        return f"\\x{code - 0xDC00:02x}"
    if match[0] == "\r":
        return "\\r"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class VisibleConsole(Console):
    """A console through which no text can act on the terminal. rich's own colours still do."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a string into rich's `Text`, which would drop some acting characters without a trace."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render with acting characters as escapes, before lines are broken where that can be done."""
        if isinstance(renderable, Text) and _ACTING.search(renderable.plain):
            renderable = _visible_text(renderable)
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or not _ACTING.search(segment.text):
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def _visible_text(text: Text) -> Text:
    """Return `text` with escapes in it, its styles where they were."""
    grown = 0
    ends, shifts = [0], [0]
    for match in _ACTING.finditer(text.plain):
        grown += len(_escape(match)) - 1
        ends.append(match.end())
        shifts.append(grown)

    def moved(offset: int) -> int:
        return offset + shifts[bisect_right(ends, offset) - 1]

    shown = text.copy()
    shown.plain = visible(text.plain)
    shown.spans = [Span(moved(span.start), moved(span.end), span.style) for span in text.spans]
    return shown
