"""What became of a line of the user's, or of an FX node, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from inductor_probe.model.fx import FxNode
from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.pages import TracePage
from inductor_probe.report.facts import facts, names, place, source_text, table
from inductor_probe.report.nodes import buffer_text, does, kernel_text, node_json
from inductor_probe.report.units import shorten

_PIPE = 1000
_SHORTEST = 24


def trace_page_json(page: TracePage) -> dict[str, Any]:
    """Return a trace with stable keys, ready for `json.dumps`."""
    return {
        "page": "trace",
        "graph": page.graph,
        "of": page.what,
        "lines": [asdict(line) for line in page.lines],
        "fx_before": [_fx_json(node) for node in page.before],
        "fx": [_fx_json(node) for node in page.fx],
        "buffers": {buffer: node for node, buffer in page.holds},
        "nodes": [node_json(row) for row in page.nodes],
        "maybe": [row.node for row in page.maybe],
        "kernels": [
            {"kernel": kernel, "launches": [{"path": str(span.path), "line": span.first} for span in spans]}
            for kernel, spans in page.kernels
        ],
    }


def _fx_json(node: FxNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "target": node.target,
        "type": node.type,
        "arguments": node.arguments,
        "line": node.span.first if node.span else None,
        "path": str(node.span.path) if node.span else None,
    }


class TracePageText:
    """From the user's line down to the launches."""

    def __init__(self, page: TracePage) -> None:
        self.page = page

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page = self.page
        kind = "line" if ":" in page.what else "FX node"
        shown = page.what if kind == "FX node" or len(page.lines) != 1 else str(page.lines[0])
        yield Text.assemble((shown, "bold"), "  ", (kind, "cyan"))
        yield facts([("graph", page.graph), *(("from", source_text(line)) for line in page.lines)])
        if page.before:
            yield Text("FX nodes before inductor's passes", style="bold")
            yield _fx_table(page.before, {}, options.max_width)
        if page.fx:
            yield Text("FX nodes", style="bold")
            yield _fx_table(page.fx, _holds(page), options.max_width)
        yield from _below(page, options.max_width)


def _holds(page: TracePage) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for node, buffer in page.holds:
        found.setdefault(node, []).append(buffer)
    return {node: ", ".join(buffers) for node, buffers in found.items()}


def _fx_table(nodes: tuple[FxNode, ...], holds: dict[str, str], width: int) -> RenderableType:
    wide = width >= 120
    titles = ["node", "calls", "type", *(["arguments"] if wide else []), *(["value in"] if holds else [])]
    return table(
        titles,
        (
            (
                Text(node.name, style="bold"),
                node.target.removeprefix("torch.ops."),
                node.type or "",
                *([node.arguments] if wide else []),
                *([holds.get(node.name, "-")] if holds else []),
            )
            for node in nodes
        ),
    )


def _below(page: TracePage, width: int) -> Iterator[RenderableType]:
    if page.nodes:
        yield Text("scheduler nodes", style="bold")
        room = max(width // 3, _SHORTEST) if width < _PIPE else width
        yield table(("node", "does", "writes", "kernel", "proof"), (_node(row, room) for row in page.nodes))
    if page.maybe:
        rows = [row.node for row in page.maybe]
        yield facts([("perhaps also", f"{names(rows)}: which of them it is could not be told")])
    if page.kernels:
        yield Text("kernels", style="bold")
        yield table(
            ("launched at", "kernel"),
            ((", ".join(map(place, spans)) or "?", kernel) for kernel, spans in page.kernels),
        )
    elif not page.nodes and not page.maybe:
        yield Text(
            "no scheduler node is known to compute it: it may only be a view, or part of an index", "dim"
        )


def _node(row: NodeRow, room: int) -> tuple[Text | str, ...]:
    return (
        Text(row.node, style="bold"),
        does(row),
        ", ".join(map(buffer_text, row.writes)),
        shorten(kernel_text(row.link), room),
        row.link.fx_how or "",
    )
