"""A program that was reduced: what it shows, the program, and how many were tried; or why there is none."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.model.reduction import ReduceOutput
from inductor_probe.report.document import Block, Code, Facts, Heading, Line, RemarkLine
from inductor_probe.report.units import counted


def reduce_page(record: ReduceOutput) -> Iterator[Block]:
    """Yield what is left, what that shows, and what was asked for it."""
    if record.file is None:
        yield Line((_why_none(record), "bold"))
        for graph in record.graphs:
            yield RemarkLine("missed", f"graph {graph.name}, {counted(graph.nodes, 'node')}")
            for text in graph.says:
                yield Line(text, 4)
        return
    yield Heading(
        f"{counted(record.nodes, 'node')} became {counted(record.left, 'call')} of torch: {record.file}"
    )
    for text in record.says:
        yield RemarkLine("passed" if record.holds else "hazard", text)
    if record.back:
        steps = counted(record.back, "smaller program")
        which = "this is the last that does" if record.holds else "no other was left to be asked"
        yield RemarkLine("hazard", f"{steps} did not show it when run alone: {which}")
    yield Code(record.text, "python", 2)
    yield Facts(
        (
            ("tried", f"{counted(record.asked, 'program')}, {record.known} more by their text"),
            ("graph", f"{record.graph} of {record.script}"),
            ("budget", "it was over before all was tried: --resume goes on" if record.over_budget else ""),
        )
    )


def _why_none(record: ReduceOutput) -> str:
    keep = " and ".join(record.keep)
    if not record.graphs:
        why = f": {record.ending}" if record.ending else ""
        return f"dynamo handed no graph of {record.script} to inductor{why}"
    return f"no graph of {record.script} shows {keep}"
