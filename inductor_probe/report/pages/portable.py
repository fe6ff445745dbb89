"""What artifacts assume of a machine, and what it has: a verdict, and a row for each assumption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.portable import Judged, Portability, Standing
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, Table
from inductor_probe.report.units import counted

_STANDINGS: dict[Standing, tuple[str, str]] = {
    "broken": ("BROKEN", "bold red"),
    "unknown": ("not known", "yellow"),
    "holds": ("holds", "green"),
    "caller": ("of the call", "dim"),
}
_WORDS = {
    "vector width": "vectors of {} bits",
    "threads": "{} threads",
    "C library": "glibc {} or later",
    "compute capability": "compute capability {}",
    "multiprocessors": "{} multiprocessors",
    "triton": "triton is {}",
    "torch": "torch {}",
    "driver": "a driver for {}",
    "machine code": "{}, whatever that was there",
}
_MOST_OF_CALL = 6
_STATED = Column("stated in", fold="middle", least=22)


def portable_page(artifacts: Sequence[Portability]) -> Iterator[Block]:
    """Yield for each artifact whether it is portable, then its assumptions, broken ones first."""
    for one in artifacts:
        if len(artifacts) > 1:
            yield Heading((str(one.artifact), "bold"))
        yield Line(_verdict(one))
        rows = [row for row in one.assumptions if row.standing != "caller"]
        of_call = [row for row in one.assumptions if row.standing == "caller"]
        columns = (Column("", fold="never"), Column("assumed"), Column("here", fold="never"), _STATED)
        yield Table(columns, [_row(row) for row in rows])
        if of_call:
            yield Line()
            yield Line("the tensors of a call have to be as these, whatever the machine:")
            shown = [[row.assumption.value, _place(row)] for row in of_call]
            yield Table((Column("assumed"), _STATED), shown, 2, most=_MOST_OF_CALL, more="--json has all")


def _verdict(one: Portability) -> list[str | tuple[str, str]]:
    count = dict.fromkeys(_STANDINGS, 0)
    for row in one.assumptions:
        count[row.standing] += 1
    rest = f", {count['unknown']} not known" if count["unknown"] else ""
    total = counted(len(one.assumptions) - count["caller"], "assumption")
    if one.portable:
        return [("no assumption is broken", "bold green"), f" on {one.host}: {total} of a {one.kind}{rest}"]
    what = f"{count['broken']} of {total} of a {one.kind} broken{rest}"
    return [("not portable", "bold red"), f" to {one.host}: {what}"]


def _row(row: Judged) -> list[Cell]:
    one = row.assumption
    exactly = "exactly " if one.exact and one.about == "vector width" else ""
    text = _WORDS.get(one.about, f"{one.about} {{}}").format(f"{exactly}{one.value}")
    return [_STANDINGS[row.standing], text, row.here, _place(row)]


def _place(row: Judged) -> Name:
    """The last part of a path, which the artifact has above it; JSON has all of it."""
    more = f" +{row.assumption.places - 1}" if row.assumption.places > 1 else ""
    return Name(f"{row.assumption.place.rpartition('/')[2]}{more}")
