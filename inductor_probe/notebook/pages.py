"""The page about one name: as on a terminal, with the dumped text and the kernel's text to unfold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.pages import BufferPage, GraphPage, NodePage, NodePart, PageRecord, TracePage
from inductor_probe.notebook.code import code, formula
from inductor_probe.notebook.kernels import kernel_html
from inductor_probe.notebook.page import escaped, folded
from inductor_probe.notebook.rich_html import rich_html
from inductor_probe.report.buffer_page import BufferPageText
from inductor_probe.report.graph_page import GraphPageText
from inductor_probe.report.node_page import NodePageText
from inductor_probe.report.trace_page import TracePageText

Lines = Mapping[str, Sequence[tuple[int, str]]]
"""Dumped text by node: numbered lines."""


def page_html(record: PageRecord, lines: Lines, *, raw: bool = False, text: bool = False) -> str:
    """Return a page as parts of an output.

    Args:
        record: what it tells. lines: the dumped text of its nodes.
        raw, text: show the dumped text, and the text of a kernel, unfolded.
    """
    match record:
        case NodePage():
            parts = tuple(replace(part, formula=None) for part in record.parts)
            others = rich_html(NodePageText(replace(record, parts=parts)))
            return _formulas(record.parts) + _dumped(lines, raw) + others
        case BufferPage():
            return rich_html(BufferPageText(record)) + _dumped(lines, raw)
        case TracePage():
            return rich_html(TracePageText(record))
        case KernelRow():
            return kernel_html(record, is_open=text)
        case GraphPage():
            return rich_html(GraphPageText(record))


def _formulas(parts: Sequence[NodePart]) -> str:
    """What a node computes is what is asked for first: it stands above all else."""
    return "".join(
        f"<div><b>{escaped(part.row.node)}</b> computes</div>{formula(part.formula)}"
        for part in parts
        if part.formula is not None
    )


def _dumped(lines: Lines, raw: bool) -> str:
    return "".join(
        folded(f"{node} as dumped, line {text[0][0]} on", _body(text), is_open=raw)
        for node, text in lines.items()
        if text
    )


def _body(text: Sequence[tuple[int, str]]) -> str:
    return code("\n".join(line for _, line in text), "python")
