"""Torch's reasons not to fuse: the form of one, and the operands that stand in it."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from inductor_probe.model.fusion_reasons import REASONS

_FIXED = ("node1 is not TritonTemplateBuffer",)
"""Reasons without operands that a form with a `%s` would fit as well."""


@lru_cache(maxsize=4096)
def explain(reason: str) -> tuple[str, tuple[tuple[str, int | str], ...]]:
    """Return the form of a reason, as torch's source has it, and the operands that stand in it by name.

    One of an unknown form is its own form.
    """
    headline = reason.partition("\n")[0].strip()
    for pattern, form in _PATTERNS if headline not in _FIXED else ():
        if match := pattern.fullmatch(headline):
            values = (_plain(value) for group in match.groups() for value in _values(group))
            return form, tuple(zip(REASONS[form].numbers, values, strict=False))
    return headline, ()


def _pattern(form: str) -> re.Pattern[str]:
    """Make a form a pattern: the `%s` of a tuple are one group, to be split at its commas."""
    text = re.sub(r"%s(?:, %s)+", "%s", form)
    return re.compile("(.*?)".join(re.escape(part) for part in text.split("%s")), re.DOTALL)


_PATTERNS = tuple((_pattern(form), form) for form, reason in REASONS.items() if reason.numbers)


def _plain(text: str) -> int | str:
    """Return a number as such; of a mapping of torch's `{'x': 4}` what stands in it: `x: 4`."""
    return int(text) if text.isdecimal() else re.sub(r"[{}']", "", text) if text.startswith("{") else text


def _values(group: str) -> list[str]:
    """Split `256, 1280`, the numbers of a tuple: one may be `Max(1, s0)`, so it is parsed."""
    if "," not in group:
        return [group]
    encoded = f"({group})".encode()
    try:
        node = ast.parse(encoded, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [group]
    if not isinstance(node, ast.Tuple) or not node.elts:
        return [group]
    return [encoded[part.col_offset : part.end_col_offset].decode() for part in node.elts]
