"""How the subjects of a remark are named."""

from __future__ import annotations

from inductor_probe.model.remark import Remark

MOST_NAMED = 3


def names(remark: Remark) -> str:
    """`op7`; `op7 and op19`; `op7, op19, op31 and 21 more`."""
    first = [subject.name for subject in remark.subjects[:MOST_NAMED]]
    more = len(remark.subjects) - len(first)
    *before, last = [*first, *([f"{more} more"] if more else [])]
    return f"{', '.join(before)} and {last}" if before else last


def verb(remark: Remark, one: str) -> str:
    """`reads` of one subject, `read` of several."""
    return one if len(remark.subjects) == 1 else one.removesuffix("s")
