"""Records of the page of `probe report`, in the words of other pages; and what the verb prints beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.model.cause import Cause
from inductor_probe.model.code import CppFacts
from inductor_probe.model.compile_time import CompileTimes
from inductor_probe.model.formula import Formula
from inductor_probe.model.ir import Dim
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.nodes import NodeBuffer, NodeRow
from inductor_probe.model.profile import Profile
from inductor_probe.model.report import (
    KernelLine,
    ReportBuffer,
    ReportDecision,
    ReportGraph,
    ReportKernel,
    ReportNode,
    ReportOutput,
    ReportProcess,
    Side,
)
from inductor_probe.model.span import SourceLine, own_lines
from inductor_probe.report.document import Block, Column, Line, Name, Table
from inductor_probe.report.formula import formula_lines
from inductor_probe.report.pages.kernels import how
from inductor_probe.report.pages.nodes import buffer_text, does, kernel_text, ranges_text
from inductor_probe.report.pages.why import cause_sentence, row_text
from inductor_probe.report.units import counted
from inductor_probe.report.words.decisions import change_text
from inductor_probe.report.words.layouts import format_text
from inductor_probe.report.words.remarks import folded

_WIDTH = 76
"""Columns of what a node computes: a third of a wide window."""


def report_graph(
    graph: str,
    side: Side,
    *,
    nodes: Sequence[NodeRow],
    buffers: Sequence[LayoutRow],
    kernels: Sequence[KernelRow],
    causes: Sequence[Cause],
    bodies: Mapping[str, Formula],
    lines: Mapping[str, Mapping[int, tuple[str, ...]]],
    seconds: Mapping[str, float],
    profile: Profile | None,
    missing: tuple[str, ...],
) -> ReportGraph:
    """Return a graph as the page shows it.

    Args:
        bodies: what nodes compute. lines: of kernels by name, the nodes that each line computes for.
        seconds: of nodes after fusion. missing: sentences.
    """
    of_nodes = [line for row in nodes for line in _sources(row)]
    of_rows = dict.fromkeys([*of_nodes, *(line for cause in causes for line in _sources(cause))])
    places = {line: number for number, line in enumerate(sorted(of_rows, key=_place))}
    return ReportGraph(
        graph,
        side,
        tuple(_node(row, places, bodies.get(row.node), seconds) for row in nodes),
        tuple(map(_buffer, buffers)),
        tuple(_kernel(row, lines.get(row.name, {}), profile) for row in kernels),
        tuple(places),
        tuple(_decision(cause, places, kernels) for cause in causes),
        profile,
        missing,
    )


def _place(line: SourceLine) -> tuple[bool, str, int]:
    return line.installed, line.path, line.line


def _sources(row: NodeRow | Cause) -> Sequence[SourceLine]:
    return own_lines(row.link.sources if isinstance(row, NodeRow) else row.sources)


def _node(
    row: NodeRow, places: Mapping[SourceLine, int], body: Formula | None, seconds: Mapping[str, float]
) -> ReportNode:
    top = row.top or row.node
    return ReportNode(
        row.node,
        top,
        does(row),
        ranges_text(row.ranges),
        kernel_text(row.link),
        tuple(buffer.name for buffer in row.writes),
        row.reads,
        tuple(places[line] for line in _sources(row)),
        row.link.fx or row.link.fx_candidates,
        tuple(formula_lines(body, _WIDTH)) if body is not None else (),
        seconds.get(top),
    )


def _known(size: Dim | None, recorded: int | None) -> int | None:
    return recorded if recorded is not None else size if isinstance(size, int) else None


def _buffer(row: LayoutRow) -> ReportBuffer:
    return ReportBuffer(
        row.buffer,
        row.role,
        buffer_text(NodeBuffer(row.buffer, row.layout)).partition(" ")[2],
        format_text(row, always=True),
        _known(row.size_bytes, row.recorded_bytes),
        row.producer,
        tuple(dict.fromkeys(access.node for access in row.reads)),
        tuple(text for _, text in folded(row.remarks, row.buffer)),
    )


def _kernel(row: KernelRow, lines: Mapping[int, tuple[str, ...]], profile: Profile | None) -> ReportKernel:
    read = _known(row.bytes_read, row.recorded_read)
    written = _known(row.bytes_written, row.recorded_written)
    side = "host" if profile is None or profile.device == "cpu" else "device"
    timed = [
        one.seconds for one in (profile.parts if profile else ()) if (one.name, one.side) == (row.name, side)
    ]
    return ReportKernel(
        row.name,
        how(row),
        row.nodes,
        len(row.launches),
        None if read is None or written is None else read + written,
        row.source,
        tuple(KernelLine(line, nodes) for line, nodes in lines.items()),
        sum(timed) if timed else None,
    )


def _decision(cause: Cause, places: Mapping[SourceLine, int], kernels: Sequence[KernelRow]) -> ReportDecision:
    nest = None
    if cause.nest is not None and len(cause.kernels) == 1:
        facts = next((row.details for row in kernels if row.name == cause.kernels[0]), None)
        nests = facts.data_nests if isinstance(facts, CppFacts) else ()
        nest = nests[cause.nest - 1] if cause.nest <= len(nests) else None
    decision = cause.decision
    return ReportDecision(
        cause.kind,
        cause.topic,
        ", ".join(subject.name for subject in cause.subjects),
        cause_sentence(cause),
        row_text(cause),
        decision.cause if decision else "",
        tuple(change_text(change, decision) for change in cause.changes) if decision else (),
        cause.seconds,
        cause.cost,
        cause.nodes,
        cause.kernels,
        tuple(places[line] for line in _sources(cause)),
        (nest.line, nest.last) if nest else None,
    )


def without_guards(times: CompileTimes) -> CompileTimes:
    """Return where compiling took its time; guards, thousands for a network, are of `probe compile-time`."""
    return replace(times, compiles=tuple(replace(one, guards=()) for one in times.compiles))


def processes_table(processes: Sequence[ReportProcess]) -> Table:
    """Return the processes of a dump side by side."""
    columns = [Column("process"), Column("ended"), *(Column(title, right=True) for title in _NUMBERS)]
    return Table(
        columns,
        [
            [
                (Name(one.name), "bold"), one.outcome,
                *map(str, (one.graphs, one.kernels, one.collectives)),
                f"{one.compile_s:.1f} s" if one.compile_s is not None else "-",
            ]
            for one in processes
        ],
    )  # fmt: skip


_NUMBERS = ("graphs", "kernels", "collectives", "compiling")


def lead(record: ReportOutput) -> str:
    """Return what a page is about, for somebody who was sent it."""
    sides = [[graph for graph in record.graphs if graph.side == side] for side in ("a", "b")]
    programs = dict.fromkeys(Path(run.script).name or run.name for run in record.runs)
    texts = [
        f"{counted(len(graphs), 'graph')}, {counted(sum(len(one.nodes) for one in graphs), 'node')}, "
        f"{counted(sum(len(one.kernels) for one in graphs), 'kernel')}, "
        f"{counted(_missed(graphs), 'missed optimisation')}"
        for graphs in sides
        if graphs
    ]
    of_each = texts[0] if len(texts) == 1 else "; ".join(f"{'AB'[n]} {text}" for n, text in enumerate(texts))
    return f"What torch.compile (TorchInductor) made of {' and '.join(programs)}: {of_each}."


def _missed(graphs: Sequence[ReportGraph]) -> int:
    return sum(one.kind == "missed" for graph in graphs for one in graph.decisions)


def report_page(record: ReportOutput) -> Iterator[Block]:
    """Yield what is on a page, and what is not."""
    names = " and ".join(run.name for run in record.runs)
    yield Line((f"a page about {names}: {counted(len(record.graphs), 'graph')}", "bold"))
    columns = (Column("graph", fold="middle"), *(Column(title, right=True) for title in ("nodes", "kernels")))
    more = Column("missed", right=True)
    yield Table(
        (*columns, more),
        [
            [
                Name(graph.graph),
                *map(str, (len(graph.nodes), len(graph.kernels))),
                str(_missed([graph])),
            ]
            for graph in record.graphs
        ],
        2, 12, "the page has all",
    )  # fmt: skip
    if record.left_out:
        names = ", ".join(record.left_out[:3])
        yield Line(f"no room on the page for {counted(len(record.left_out), 'graph')}: {names} ...", 2)
    for text in (*record.missing, *dict.fromkeys(text for graph in record.graphs for text in graph.missing)):
        yield Line((text, "dim"), 2)
