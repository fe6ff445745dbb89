"""What makes the difference between two builds, configurations or runs."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.catalogue.templates import listed
from inductor_probe.model.bisection import BisectOutput
from inductor_probe.report.document import Block, Facts, Heading, Line, RemarkLine
from inductor_probe.report.units import counted

_MOST = 8


def bisect_page(record: BisectOutput) -> Iterator[Block]:
    """Yield what makes the difference, and what each side that was asked says."""
    yield Heading(_headline(record))
    for side in record.sides:
        yield RemarkLine("passed" if side.holds else "missed", f"{side.name}: {'; '.join(side.says)}")
    differing = f"{record.differing} {record.kind} differ" if record.differing else ""
    runs = ", ".join(str(side.run) for side in record.sides if side.run)
    asked = f"{counted(record.asked, 'process', 'processes')} of {record.script}"
    yield Facts((("asked", asked), ("differing", differing), ("dumps", runs)))
    if record.pair and record.diff is None:
        yield Line("the pair was not compared: one of its dumps has no graph")


def _headline(record: BisectOutput) -> str:
    keep = " and ".join(record.keep)
    if not record.pair:
        every = "both show it" if record.sides[0].holds else "neither shows it"
        return f"{keep}: {every}, {record.sides[0].name} and {record.sides[-1].name}"
    first = next(side for side in record.sides if side.name == record.pair[0])
    if record.kind == "builds":
        verb = "went" if first.holds else "came"
        return f"{keep}: it {verb} between {record.pair[0]} and {record.pair[1]}"
    what = listed(list(record.changes), _MOST)
    return f"{keep}: {'goes' if first.holds else 'comes'} with {what}"
