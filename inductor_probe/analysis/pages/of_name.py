"""The page that a name asks for."""

from __future__ import annotations

from typing import TypeAlias

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.names import resolve
from inductor_probe.analysis.pages.node import buffer_page, node_page
from inductor_probe.analysis.pages.trace import fx_trace, line_trace
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.pages import BufferPage, NodePage, TracePage

Page: TypeAlias = NodePage | BufferPage | KernelRow | TracePage


def page_of(graph: CompiledGraph, name: str) -> Page:
    """Return the page about `name`: see `names.resolve`.

    Raises:
        NotFoundError: the graph has nothing of that name; near names are offered.
        ProbeError: several kernels start so.
    """
    subject = resolve(graph, name)
    match subject.type:
        case "node":
            return node_page(graph, subject.name)
        case "buffer":
            return buffer_page(graph, subject.name)
        case "kernel":
            return next(row for row in kernel_rows(graph) if row.name == subject.name)
        case "fx":
            return fx_trace(graph, subject.name)
    return line_trace(graph, subject.name)
