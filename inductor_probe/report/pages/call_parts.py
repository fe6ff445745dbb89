"""The user's own calls: what each takes against eager, and what it consists of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inductor_probe.model.call_parts import CallPart, CallParts, Side
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.report.document import Block, Cell, Column, Line, Name, Table
from inductor_probe.report.pages.overheads import number_columns, overhead_time
from inductor_probe.report.units import counted, duration
from inductor_probe.report.words.own_call import how_timed, own_remark, own_sentence, why_no_own_call
from inductor_probe.report.words.remarks import sentence

_MARGIN = 0.01
_SCALED = 0.98
_SIGNATURE = re.compile(r"^void (?=[\w(])|(?<=[\w>])\(.*", re.DOTALL)
"""What a C++ name has around itself, as the profiler of a GPU writes it: `void f<8>(float*)`."""
PART_NAMES = {
    "guards": "guards",
    "entry": "dynamo's entry",
    "between": "Python between graphs",
    "autograd": "AOTAutograd's runtime",
    "inductor": "inductor's entry",
    "wrapper": "wrapper",
    "launches": "launches",
    "copy": "copies",
    "gap": "gaps",
    "graph": "inductor's call",
    "backend": "what dynamo compiled",
    "backward": "autograd, around graphs of the backward",
    "remainder": "remainder",
}


def own_call_lines(calls: Sequence[OwnCall], why: NoOwnCall | None) -> Iterator[Block]:
    """Yield a sentence for each call and what it consists of, and why others were not timed."""
    for call in calls:
        yield Line((f"{own_sentence(call, _MARGIN)}.", "bold"))
        yield Line((f"{how_timed(call)}.", "dim"))
        for remark in call.remarks:
            yield Line([("warning: ", "yellow"), own_remark(remark)])
        if call.parts is not None:
            yield from call_parts_table(call.parts)
    if why is not None:
        yield Line((f"{why_no_own_call(why)}.", "dim"))


def call_parts_table(parts: CallParts) -> Iterator[Block]:
    """Yield a row for each part of a call, the GPU's first, and remarks."""
    sides: tuple[Side, ...] = ("host",) if parts.device == "cpu" else ("device", "host")
    rows = [_cells(row, parts) for side in sides for row in parts.rows if row.side == side]
    yield Table((Column("", fold="middle"), *number_columns("time", "MAD", "share")), rows)
    if parts.graphs > 1:
        yield Line((f"the call runs {parts.graphs} graphs of dynamo", "dim"))
    if parts.scale < _SCALED:
        more = f"{(1 / parts.scale - 1) * 100:.0f} %"
        yield Line(
            (f"parts, timed one by one, take {more} longer than the call: they are scaled to it", "dim")
        )
    for remark in parts.remarks:
        yield Line((sentence(remark), "dim"))


def call_parts_sentence(parts: CallParts) -> str:
    """Say which parts are the longest: `The call takes 15.2 us: dynamo's entry 8.5 us, wrapper 2.7 us.`"""
    rows = [row for row in parts.rows if row.side == "host" and row.kind not in ("compiled", "remainder")]
    longest = sorted((row for row in rows if row.nonzero), key=lambda row: -row.seconds)[:3]
    whole = parts.row("compiled")
    named = ", ".join(f"{_name(row, parts)} {duration(row.seconds)}" for row in longest)
    text = f"The call takes {duration(whole.seconds if whole else 0.0)}" + (
        " of the host" if parts.wall else ""
    )
    return f"{text}: {named}." if named else f"{text}."


def _name(row: CallPart, parts: CallParts) -> str:
    if row.kind in ("compiled", "call"):
        whose = "" if parts.device == "cpu" else " (GPU)" if row.side == "device" else " (host)"
        return f"The call{whose}"
    name = PART_NAMES.get(row.kind, row.name)
    if row.kind == "wrapper" and parts.allocations:
        return f"{name}, {counted(parts.allocations, 'allocation')}"
    if row.kind in ("kernel", "library"):
        name = _SIGNATURE.sub("", name).replace(", ", ",")
        return name + (f" x{row.launches}" if row.launches > 1 else "")
    return name


def _cells(row: CallPart, parts: CallParts) -> list[Cell]:
    style, name = "bold" if row.kind in ("compiled", "call") else "", Name(_name(row, parts))
    if not row.nonzero:
        return [name, (overhead_time(row), "dim"), "", ""]
    return [
        (name, style),
        (duration(row.seconds), style),
        duration(row.mad),
        (f"{row.share * 100:.1f} %", style),
    ]
