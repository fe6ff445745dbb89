"""From a reason in the log to what it means."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from inductor_probe.analysis.fusion.backend_reasons import BACKEND_REASONS
from inductor_probe.analysis.fusion.knobs import KNOBS
from inductor_probe.analysis.fusion.reasons import REASONS, ReasonRow
from inductor_probe.model.fusion import Refusal

ALL_REASONS = (*REASONS, *BACKEND_REASONS)


@lru_cache(maxsize=4096)
def explain(reason: str) -> Refusal:
    """Return what a reason means; one of an unknown form is kept verbatim, without a meaning."""
    headline = reason.partition("\n")[0].strip()
    if row := _FIXED.get(headline):
        return _refusal(reason, row, ())
    for pattern, row in _OPEN:
        if match := pattern.fullmatch(headline):
            return _refusal(reason, row, _values(match.groups()))
    return Refusal(reason, headline, None)


def _refusal(reason: str, row: ReasonRow, values: tuple[str, ...]) -> Refusal:
    numbers = tuple(zip(row.numbers, values, strict=False))
    return Refusal(reason, row.form, row.meaning, numbers, tuple(KNOBS[name] for name in row.knobs))


def _values(groups: tuple[str, ...]) -> tuple[str, ...]:
    """Take apart `256, 1280`: the numbers of a tuple; one may be `Max(1, s0)`, so commas do not tell."""
    values: list[str] = []
    for group in groups:
        parts = _tuple_parts(group) if "," in group else None
        values.extend(parts or [group])
    return tuple(values)


def _tuple_parts(text: str) -> list[str] | None:
    encoded = f"({text})".encode()
    try:
        node = ast.parse(encoded, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Tuple):
        return None
    return [encoded[part.col_offset : part.end_col_offset].decode() for part in node.elts]


def _pattern(form: str) -> re.Pattern[str]:
    """Make a form a pattern: the `%s` of a tuple are one group, to be taken apart by its commas."""
    text = re.sub(r"%s(?:, %s)+", "%s", form)
    return re.compile("(.*?)".join(re.escape(part) for part in text.split("%s")), re.DOTALL)


_FIXED = {row.form: row for row in ALL_REASONS if "%s" not in row.form}
_OPEN = tuple((_pattern(row.form), row) for row in ALL_REASONS if "%s" in row.form)
