"""Words for layouts, access patterns and the remarks about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inductor_probe.model.layouts import GeneratedAccess, LayoutRow, Pattern
from inductor_probe.model.remark import Number, Remark, RemarkCode
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.subjects import names, verb

_TELLING_ORDER = ("transposed", "padded", "other")
"""Formats whose name does not tell the order of the dimensions."""


def format_text(row: LayoutRow, always: bool = False) -> str:
    """`transposed [0, 2, 1, 3]`: the memory format, with the order where the name does not tell it.

    With `always` the order is said of every format that has one.
    """
    order = None if row.dim_order is None else str(list(row.dim_order))
    return _format(row.memory_format, order, always)


def _format(name: Number | None, order: Number | None, always: bool = False) -> str:
    return f"{name} {order}" if order is not None and (always or name in _TELLING_ORDER) else str(name)


def pattern_text(pattern: Pattern) -> str:
    """`contiguous in runs of 3, reversed along p1`; `strided by 32`; `indirect`."""
    text = pattern.kind.replace("_", " ")
    if pattern.kind == "contiguous" and pattern.run is not None:
        text += f" in runs of {pattern.run}"
    elif pattern.kind == "strided":
        text += f" by {pattern.stride}"
    elif pattern.kind == "reversed" and pattern.stride != -1:
        text += f", strided by {str(pattern.stride).removeprefix('-')}"
    return text + (f", reversed along {', '.join(pattern.reversed_loops)}" if pattern.reversed_loops else "")


def generated_text(made: GeneratedAccess) -> str:
    """How the generated kernel makes an access: `vector along x0 (32 steps)`, `stride 5 along x2`."""
    if made.form == "none":
        return "no access: the value stays in registers"
    steps = f" ({made.steps} steps)" if made.steps is not None else ""
    along = f" along {made.loop}{steps}" if made.loop else ""
    if made.form == "vector":
        return f"vector{along}"
    if made.stride == "indirect":
        return f"one element at a time{along}, indirect" if made.form == "element" else "indirect"
    if made.stride is None:
        return "one element" if made.form == "element" and made.contiguous else "not known"
    return f"{'coalesced, ' if made.form == 'block' and made.contiguous else ''}stride {made.stride}{along}"


def _noncontiguous_access(remark: Remark) -> str:
    """`op1 reads arg0_1 non-contiguously (stride 816 along innermost loop x2, 256 steps; 4 MiB)`."""
    numbers = dict(remark.numbers)
    loop, steps = numbers.get("loop"), numbers.get("steps")
    where = f" along innermost loop {loop}, {steps} steps" if steps is not None else ""
    where = where or (f" along {loop}" if loop is not None else "")
    how = "indirect index" if numbers["pattern"] == "indirect" else f"stride {numbers['stride']}"
    inside = [f"{_count(remark)}{how}{where}"]
    if "unit_stride_loop" in numbers:
        unit_steps = numbers.get("unit_stride_steps")
        inside.append(
            f"stride 1 along {numbers['unit_stride_loop']}"
            + (f", {unit_steps} steps" if unit_steps is not None else "")
        )
    buffer = numbers["buffer"]
    text = f"{_does(remark)} {buffer} non-contiguously ({_with_cost(remark, inside)})"
    if "written" in numbers:
        own = _format(numbers["format"], numbers.get("dim_order"))
        other = _format(numbers["written_format"], numbers.get("written_dim_order"))
        text += f"; {buffer} is {own}, {remark.subject.name} writes {numbers['written']} as {other}"
    return f"{text}{_guess(remark)}"


def _short_contiguous_runs(remark: Remark) -> str:
    """`op0 reads arg0_1 in contiguous runs of 3 elements (12 bytes along x2; 588 KiB)`."""
    numbers = dict(remark.numbers)
    inside = [f"{_count(remark)}{numbers.get('run_bytes', '?')} bytes along {numbers.get('loop')}"]
    runs = counted(int(str(numbers["steps"])), "element")
    cost = _with_cost(remark, inside)
    return f"{_does(remark)} {numbers['buffer']} in contiguous runs of {runs} ({cost}){_guess(remark)}"


def _layout_change(remark: Remark) -> str:
    """`op0 reads arg2_1 as contiguous and writes buf0 as channels_last (96 KiB)`."""
    numbers = dict(remark.numbers)
    own = _format(numbers["format"], numbers.get("dim_order"))
    other = _format(numbers["written_format"], numbers.get("written_dim_order"))
    cost = f" ({bytes_text(remark.cost)})" if remark.cost is not None else ""
    node, buffer, written = remark.subject.name, numbers["buffer"], numbers["written"]
    return f"{node} reads {buffer} as {own} and writes {written} as {other}{cost}{_guess(remark)}"


def _guess(remark: Remark) -> str:
    return " (inferred from the IR: no kernel is linked)" if remark.knowledge == "inferred" else ""


def _does(remark: Remark) -> str:
    """`op1 reads`; `op1, op5, op8 and 4 more read`."""
    direction = remark.number("direction")
    return f"{names(remark)} {verb(remark, f'{direction}s')}"


def _count(remark: Remark) -> str:
    """`5 loads, `; nothing for one."""
    number = remark.number("accesses")
    what = "store" if remark.number("direction") == "write" else "load"
    return f"{counted(number, what)}, " if isinstance(number, int) and number > 1 else ""


def _with_cost(remark: Remark, inside: list[str]) -> str:
    return "; ".join([*inside, *([bytes_text(remark.cost)] if remark.cost is not None else [])])


SENTENCES: Mapping[RemarkCode, Callable[[Remark], str]] = {
    "noncontiguous-access": _noncontiguous_access,
    "short-contiguous-runs": _short_contiguous_runs,
    "layout-change": _layout_change,
}
