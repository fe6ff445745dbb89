"""What causes mean: a page of a code, the list of all, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.catalogue.templates import listed
from inductor_probe.model.explanation import ExplainedChange, Explanation
from inductor_probe.model.record import grouped
from inductor_probe.report.document import (
    Block,
    Column,
    Facts,
    Heading,
    Inline,
    Line,
    RemarkLine,
    Table,
    apart,
)

_OPERANDS = (
    Column("operand", fold="never"),
    Column("type", fold="never"),
    Column("what it is", most=60),
)
_CODES = (
    Column("code", fold="never"),
    Column("leads to", most=24),
    Column("on the screen", most=60),
)


def explanation_pages(rows: Sequence[Explanation]) -> Iterator[Block]:
    """Yield a page for each meaning of a code."""
    yield from apart(_page(row) for row in rows)


def explanation_list(rows: Sequence[Explanation]) -> Iterator[Block]:
    """Yield the codes of each kind, and how to see one of them."""
    for members in grouped(rows, lambda row: row.kind).values():
        first = members[0]
        decides = f": torch decides {first.decides}" if first.kind else ": whatever torch decides"
        yield Heading([(first.kind or "any kind", "bold"), decides], 2)
        yield Table(
            _CODES,
            [
                [row.code, listed([one.outcome for one in row.outcomes] or "-", 2), row.short or row.sentence]
                for row in members
            ],
        )
        yield Line()
    yield Line(("probe explain CODE shows what is compared, where, and what changes it", "dim"))


def _page(row: Explanation) -> Iterator[Block]:
    yield Heading([(row.code, "bold"), f"  {row.kind}" if row.kind else "  of decisions of every kind"])
    if row.decides:
        yield Line(f"torch decides {row.decides}", 2)
    for one in row.outcomes:
        yield RemarkLine(one.kind, f"{one.outcome}: {one.sentence}")
    yield Facts([*_facts(row), *_changes(row.changes)])
    if row.operands:
        yield Line()
        yield Table(
            _OPERANDS,
            [[one.name, ", ".join(filter(None, (one.type, one.unit))), one.text] for one in row.operands],
        )


def _facts(row: Explanation) -> Iterator[tuple[str, Inline]]:
    yield "cause", row.sentence
    yield "in short", row.short
    yield "decided in", f"{row.function} ({row.file})" if row.function else ""
    yield "by the test", "\nor ".join(row.tests).replace("?", "…")  # whatever torch compares there
    yield "example", row.example


def _changes(changes: Sequence[ExplainedChange]) -> Iterator[tuple[str, Inline]]:
    for number, change in enumerate(changes):
        yield "or by" if number else "changed by", change_line(change)
    if changes:
        others = [change for change in changes if not change.differs]
        of = "" if len(others) == len(changes) else "of other changes "
        text = f"{of}not known to differ but by rounding: probe whatif compares them"
        yield "results", text if others else ""


def change_line(change: ExplainedChange) -> str:
    """`torch._inductor.config.cpp.simdlen = None: lets inductor ...`."""
    remarks = [
        *(["offered where the graph allows for it"] if change.sometimes else []),
        *(["results may differ"] if change.differs else []),
    ]
    more = f" [{', '.join(remarks)}]" if remarks else ""
    match change.type:
        case "setting":
            value = f" = {change.value}" if change.value is not None else ""
            return f"{change.name}{value}: {change.text}{more}"
        case "source":
            return f"{change.text}{more}"
        case "flip":
            return f"probe whatif SCRIPT {change.name}: for these names alone{more}"
