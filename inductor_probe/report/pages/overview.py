"""An overview on one screen: the call, where its time goes, what cost most, what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.overview import OverviewCost, OverviewOutput, OverviewPart
from inductor_probe.model.profile import WORKS
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, RemarkLine, Table
from inductor_probe.report.pages import call_parts, profile
from inductor_probe.report.pages.compile_time import summary_sentence
from inductor_probe.report.pages.decomposed import operators_page, slower_lines
from inductor_probe.report.pages.kernels import first_of
from inductor_probe.report.units import bytes_text, counted, duration
from inductor_probe.report.words.interruptions import best_remedy
from inductor_probe.report.words.own_call import call_sentence

_BASIS = {
    "time": "where the time goes",
    "bound": "where the time goes at least: bounds of this GPU, nothing was measured",
    "bytes": "which kernels move the bytes",
}
_NAMES = {**profile.PART_NAMES, **call_parts.PART_NAMES}
_MOST_LINES = 3
_TIMED = ("FASTER", "SLOWER", "SAME")
"""Verdicts: without one the machine was too busy to hold a part of the call against eager's."""


def overview_page(record: OverviewOutput) -> Iterator[Block]:
    """Yield the overview, some 25 lines of it at most."""
    yield Line((_sentence(record), "bold"))
    yield from _amiss(record)
    if record.parts:
        yield Heading((_BASIS[record.basis] + _busy(record), "bold"), 2)
        yield _parts(record.parts, record.basis)
    detailed = any(one.figures for one in record.operators)
    if not detailed and record.comparison and record.comparison.verdict in _TIMED:
        yield from slower_lines(record.operators)
    if record.costs:
        yield Heading(("what was missed there", "bold"), 2)
        yield _costs(record.costs)
    elif record.parts:
        yield Line("nothing that was missed has 0.1 % of that")
    if record.try_:
        rest = f" ({record.tries} in all: {record.try_all})" if record.tries else ""
        yield Heading([("what to try", "bold"), rest], 2)
        yield Table(
            (
                Column("gains at most", right=True, fold="never"),
                Column("command", fold="never"),
                Column("what is now", most=60, rank=1),
            ),
            [
                ["?" if one.at_most is None else _share(one.at_most), one.command, one.text]
                for one in record.try_
            ],
        )
    if detailed:
        yield from operators_page(record.operators)
    if record.compiling is not None:
        yield Line(f"{summary_sentence(record.compiling)}: probe compile-time")
    for text in record.left_out:
        yield Line((f"not looked at: {text}", "dim"))


def _amiss(record: OverviewOutput) -> Iterator[Block]:
    """Yield what is wrong, what failed, and what was compiled in pieces or again."""
    for text in record.wrong:
        yield RemarkLine("hazard", f"wrong: {text}")
    for text in record.failed[:_MOST_LINES]:
        yield RemarkLine("missed", text)
    if len(record.failed) > _MOST_LINES:
        yield Line((f"{len(record.failed) - _MOST_LINES} more of these: probe check", "dim"))
    for one in record.interruptions[:_MOST_LINES]:
        remedy = best_remedy(one)
        yield RemarkLine("missed", f"{one.text}: {remedy.text}" if remedy else one.text)
    if (others := len(record.interruptions) - _MOST_LINES) > 0:
        yield Line((f"{others} more causes of recompiles and graph breaks: --json has all", "dim"))


def _sentence(record: OverviewOutput) -> str:
    threads = record.threads or 1
    if record.comparison is not None and record.call is not None and record.eager is not None:
        return f"{call_sentence(record.comparison, record.name, threads, record.call, record.eager)}."
    if record.call is not None:
        with_threads = f"with {counted(threads, 'thread')}"
        return f"A call of {record.name} takes {duration(record.call)} {with_threads}; eager was not timed."
    return f"{record.run.name}: nothing was measured."


def _busy(record: OverviewOutput) -> str:
    """Say how long a GPU works where it waits for the host mostly."""
    if record.busy is None or record.call is None or record.busy > WORKS * record.call:
        return ""
    whose = "parts of the GPU" if record.side == "device" else "parts of the host"
    return f": the GPU works {duration(record.busy)} of it, and waits for the host; {whose}"


def _parts(parts: Sequence[OverviewPart], basis: str) -> Table:
    columns = [
        Column("part", fold="middle", least=30),
        Column("share", right=True, fold="never"),
        Column("time" if basis != "bound" else "at least", right=True, fold="never"),
        Column("bytes", right=True, fold="never", rank=3),
        Column("nodes", fold="never", rank=2),
        Column("slow in it", most=24, fold="end", rank=1),
        Column("from", most=30, fold="path", rank=4),
    ]
    rows: list[list[Cell]] = [
        [
            Name(_NAMES.get(part.name, part.name) + (f" ({part.graph})" if part.graph else "")),
            _share(part.share),
            duration(part.time) if part.time is not None else "-",
            bytes_text(part.bytes) if part.bytes is not None else "-",
            first_of(part.nodes) if part.nodes else "-",
            ", ".join(part.slow) or "-",
            first_of(part.lines) if part.lines else "-",
        ]
        for part in parts
    ]
    shown = [number for number in range(len(columns)) if any(row[number] != "-" for row in rows)]
    return Table([columns[number] for number in shown], [[row[number] for number in shown] for row in rows])


def _costs(costs: Sequence[OverviewCost]) -> Table:
    columns = (
        Column("share", right=True, fold="never"),
        Column("about", most=40, fold="middle", least=14),
        Column("decision", most=100),
        Column("cause", fold="never", rank=1),
    )
    rows: list[list[Cell]] = [
        [
            _share(one.share) if one.share is not None else "?",
            (Name(one.subject + (f" +{one.alike - 1}" if one.alike > 1 else "")), "bold"),
            one.short,
            (f"[{one.cause}]", "dim"),
        ]
        for one in costs
    ]
    return Table(columns, rows)


def _share(share: float) -> str:
    return f"{share * 100:.1f} %"
