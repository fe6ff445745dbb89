"""Characters that act on a terminal instead of showing, made visible: `\\x1b[31m` is shown, not obeyed.

Names and text in a dump come from strangers. An escape sequence in them could recolour or erase what was
printed before, set the clipboard, or make a link that lies; a bidi override shows text in another order than
it has; a lone surrogate (a byte of a file's name that is not UTF-8) cannot be printed at all.
"""

from __future__ import annotations

import re

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
