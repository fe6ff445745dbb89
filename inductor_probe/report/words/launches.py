"""Words for launches whose arguments do not fit their kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inductor_probe.model.remark import Number, Remark, RemarkCode


def _told(text: str) -> Callable[[Remark], str]:
    """Return what puts the numbers of a remark into `text`; names are joined by commas."""
    return lambda remark: text.format(**{name: _joined(value) for name, value in remark.numbers})


def _joined(value: Number) -> Number:
    return ", ".join(value) if isinstance(value, tuple) else value


def _argument_count(remark: Remark) -> str:
    grid = remark.number("grid")
    more = f" and {grid} for the grid" if grid else ""
    return f"it takes {remark.number('parameters')} arguments{more}, and is passed {remark.number('passed')}"


def _argument_type(remark: Remark) -> str:
    numbers = dict(remark.numbers)
    name, kind, passed = numbers["argument"], str(numbers["type"]), numbers["passed"]
    if "dtype" in numbers:
        return f"{name} is {kind} and is passed {passed} of {numbers['dtype']}"
    if kind.startswith("*"):
        return f"{name} is a pointer ({kind}) and is passed the number {passed}"
    return f"{name} is a number ({kind}) and is passed the buffer {passed}"


def _other_points(remark: Remark) -> str:
    numbers = dict(remark.numbers)
    reduced = f" that reduce {numbers['reduced']} each" if numbers["reduced"] != 1 else ""
    passed = _joined(numbers["passed"])
    return f"it is passed {passed}, but {numbers['node']} has {numbers['points']} points{reduced}"


SENTENCES: Mapping[RemarkCode, Callable[[Remark], str]] = {
    "argument-count": _argument_count,
    "argument-type": _argument_type,
    "other-buffer": _told("{argument} is passed {buffer}, which its nodes do not {access}"),
    "swapped-buffers": _told(
        "{argument} is passed {buffer} and {other_argument} {other_buffer}, "
        "but its nodes {access} {other_buffer} first: they may be swapped"
    ),
    "other-size": _told("{argument} is passed {passed}, and its text is written for {compiled}"),
    "block-too-small": _told("{argument} is passed {passed}, but it reduces {block}={limit} at most"),
    "other-points": _other_points,
    "grid-size-missing": _told("its grid is {grid}, which needs {argument}"),
    "grid-too-large": _told("{sizes}: more than {limit} blocks in y or z are needed"),
    "other-grid-blocks": _told(
        "its grid has {blocks} blocks in x; {rows}x{columns} in tiles of {block_rows}x{block_columns} are "
        "{needed}"
    ),
    "other-grid-batches": _told(
        "its grid has {blocks} blocks in y and z, but its output holds {batches} matrices"
    ),
    "other-grid-sizes": _told("its grid is made of {grid}, and it is passed {passed}"),
    "not-divisible": _told("{argument} is promised to be divisible by {divisor}, and is passed {passed}"),
    "not-aligned": _told(
        "{argument} is promised to be aligned to {alignment} bytes, and {passed} starts {offset} bytes into "
        "its memory"
    ),
    "int32-overflow": _told("{argument} is a 32-bit number, and is passed {passed}"),
    "int32-extent": _told("{argument} has indices of 32 bits, and {passed} spans {elements} elements"),
}
