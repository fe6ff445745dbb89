"""Graphs as Model Explorer opens them: its JSON of graph collections.

That one, of the forms that viewers of graphs read: it nests nodes and shows attributes and arrows, its makers
maintain it, and a file of it opens in a browser. A trace for Perfetto has times and no arrows, and
`probe profile --chrome` writes one already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from inductor_probe.model.code import Pairs
from inductor_probe.model.report import ReportBuffer, ReportGraph, ReportNode


def model_explorer_text(graphs: Sequence[ReportGraph]) -> str:
    """Return graphs as JSON: inputs and nodes, those that are fused in a group of their node after fusion."""
    return (
        json.dumps({"label": "inductor_probe", "graphs": [_graph(graph) for graph in graphs]}, indent=1)
        + "\n"
    )


def _graph(graph: ReportGraph) -> dict[str, Any]:
    buffers = {row.buffer: row for row in graph.buffers}
    writer = {name: node.node for node in graph.nodes for name in node.writes}
    slots = {name: str(number) for node in graph.nodes for number, name in enumerate(node.writes)}
    inputs = [row for row in graph.buffers if row.buffer not in writer and row.readers]
    known = {row.buffer for row in inputs}
    fused = {node.top for node in graph.nodes if node.top != node.node}

    def edges(names: Sequence[str]) -> list[dict[str, str]]:
        return [
            {
                "sourceNodeId": writer.get(name, name),
                "sourceNodeOutputId": slots.get(name, "0"),
                "targetNodeInputId": str(number),
            }
            for number, name in enumerate(names)
            if name in writer or name in known
        ]

    def node(row: ReportNode) -> dict[str, Any]:
        facts = (
            ("loops", row.loops),
            ("kernel", row.kernel),
            ("FX nodes", ", ".join(row.fx)),
            ("computes", "\n".join(row.body)),
            ("lines", ", ".join(str(graph.sources[place]) for place in row.sources)),
            ("seconds", "" if row.seconds is None else f"{row.seconds:.3g}"),
        )
        outputs = [_tensor(str(number), buffers.get(name)) for number, name in enumerate(row.writes)]
        space = row.top if row.top in fused else ""
        label = f"{row.node} {row.does}"
        return _node(row.node, label, space=space, facts=facts, edges=edges(row.reads), outputs=outputs)

    return {
        "id": f"{graph.side}: {graph.graph}" if graph.side == "b" else graph.graph,
        "nodes": [
            *(_node(row.buffer, f"{row.role} {row.buffer}", outputs=[_tensor("0", row)]) for row in inputs),
            *map(node, graph.nodes),
        ],
    }


def _node(
    name: str,
    label: str,
    *,
    space: str = "",
    facts: Pairs = (),
    edges: Sequence[dict[str, str]] = (),
    outputs: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "id": name,
        "label": label,
        "namespace": space,
        "attrs": _pairs(facts),
        "incomingEdges": [*edges],
        "outputsMetadata": [*outputs],
    }


def _tensor(slot: str, row: ReportBuffer | None) -> dict[str, Any]:
    if row is None:
        return {"id": slot, "attrs": []}
    size = "" if row.bytes is None else str(row.bytes)
    facts = (("buffer", row.buffer), ("tensor_shape", row.layout), ("format", row.format), ("bytes", size))
    return {"id": slot, "attrs": _pairs(facts)}


def _pairs(facts: Pairs) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in facts if value]
