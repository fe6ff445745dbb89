"""The page that a name asks for."""

from __future__ import annotations

from typing import TypeAlias

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.links import links
from inductor_probe.analysis.pages.node import buffer_page, node_page
from inductor_probe.analysis.pages.subject import subject
from inductor_probe.analysis.pages.trace import fx_trace, line_trace
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.pages import BufferPage, NodePage, TracePage

Page: TypeAlias = NodePage | BufferPage | KernelRow | TracePage


def page_of(graph: CompiledGraph, name: str) -> Page:
    """Return the page about `name`: see `subject`.

    Raises:
        NotFoundError: the graph has nothing of that name; near names are offered.
        ProbeError: several kernels start so.
    """
    meant = subject(graph, name)
    if meant.kind == "kernel":
        return next(row for row in kernel_rows(graph) if row.name == meant.name)
    linked = links(graph)
    match meant.kind:
        case "node":
            return node_page(graph, meant.name, linked)
        case "buffer":
            return buffer_page(graph, meant.name, linked)
        case "fx":
            return fx_trace(graph, meant.name, linked)
        case "line":
            return line_trace(graph, meant.name, linked)
