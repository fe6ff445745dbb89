"""A comparison as JSON with stable keys."""

from __future__ import annotations

from typing import Any

from inductor_probe.model.diff import (
    BufferChange,
    Count,
    DiffSide,
    FactChange,
    GraphDiff,
    KernelMatch,
    NodeChange,
    RunDiff,
    Statement,
)
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.span import Span
from inductor_probe.report.diff_words import headlines, run_words


def diff_json(diff: GraphDiff | RunDiff) -> dict[str, Any]:
    """Return a comparison of two runs, or of two graphs, ready for `json.dumps`.

    Both have `equal`, `summary` and `graphs`: of two graphs, `graphs` holds the one pair.
    """
    if isinstance(diff, GraphDiff):
        return {"equal": diff.equal, "summary": list(headlines(diff)), "graphs": [_graph(diff)]}
    return {
        "equal": diff.equal,
        "summary": [run_words(diff)],
        "a": str(diff.a),
        "b": str(diff.b),
        "label_a": diff.label_a,
        "label_b": diff.label_b,
        "environment": [_fact(fact) for fact in diff.environment],
        "counts": _counts(diff.counts),
        "removed": list(diff.removed),
        "added": list(diff.added),
        "graphs": [_graph(graph) for graph in diff.graphs],
    }


def _graph(diff: GraphDiff) -> dict[str, Any]:
    return {
        "a": _side(diff.a),
        "b": _side(diff.b),
        "equal": diff.equal,
        "summary": list(headlines(diff)),
        "environment": [_fact(fact) for fact in diff.environment],
        "outputs": [_buffer(change) for change in diff.outputs],
        "inputs": [_buffer(change) for change in diff.inputs],
        "nodes": [_node(node) for node in diff.nodes],
        "kernels": [_kernel(match) for match in diff.kernels],
        "calls": [
            {
                "a": call.a,
                "b": call.b,
                "facts": [_fact(fact) for fact in call.facts],
                "line_a": call.span_a.first if call.span_a else None,
                "line_b": call.span_b.first if call.span_b else None,
            }
            for call in diff.calls
        ],
        "fusion": [
            {
                "relation": change.relation,
                "a": [list(group) for group in change.a],
                "b": [list(group) for group in change.b],
            }
            for change in diff.fusion
        ],
        "buffers": [_buffer(change) for change in diff.buffers],
        "operations": [{"operation": name, "a": a, "b": b} for name, a, b in diff.operations],
        "counts": _counts(diff.counts),
        "cosmetic": dict(diff.cosmetic),
        "matched": {"nodes": diff.matched_nodes, "buffers": diff.matched_buffers},
        "unknown": list(diff.unknown),
    }


def _side(side: DiffSide) -> dict[str, Any]:
    return {
        "graph": side.name,
        "label": side.label,
        "path": str(side.path),
        "torch": side.torch_version,
        "kind": side.kind,
        "devices": list(side.devices),
        "backends": list(side.backends),
    }


def _counts(counts: tuple[Count, ...]) -> dict[str, Any]:
    return {count.name: {"a": count.a, "b": count.b} for count in counts}


def _fact(fact: FactChange) -> dict[str, Any]:
    return {"fact": fact.name, "a": fact.a, "b": fact.b, "weight": fact.weight}


def _buffer(change: BufferChange) -> dict[str, Any]:
    return {
        "a": change.a,
        "b": change.b,
        "role": change.role,
        "position_a": change.position_a,
        "position_b": change.position_b,
        "weight": change.weight if change.facts else "major",
        "how": change.how,
        "facts": [_fact(fact) for fact in change.facts],
        "layout_a": _layout(change.layout_a),
        "layout_b": _layout(change.layout_b),
    }


def _layout(layout: BufferLayout | None) -> dict[str, Any] | None:
    if layout is None:
        return None
    return {
        "device": layout.device,
        "dtype": layout.dtype,
        "size": None if layout.size is None else list(layout.size),
        "stride": None if layout.stride is None else list(layout.stride),
        "offset": layout.offset,
    }


def _node(node: NodeChange) -> dict[str, Any]:
    return {
        "a": node.a,
        "b": node.b,
        "kind": node.kind,
        "how": node.how,
        "loops": _fact(node.loops) if node.loops else None,
        "first_a": _statement(node.first_a),
        "first_b": _statement(node.first_b),
        "operations": [{"operation": name, "a": a, "b": b} for name, a, b in node.operations],
    }


def _statement(statement: Statement | None) -> dict[str, Any] | None:
    if statement is None:
        return None
    return {"text": statement.text, "block": statement.block, **_place(statement.span)}


def _place(span: Span | None) -> dict[str, Any]:
    return {"path": str(span.path) if span else None, "line": span.first if span else None}


def _kernel(match: KernelMatch) -> dict[str, Any]:
    return {
        "relation": match.relation,
        "a": list(match.a),
        "b": list(match.b),
        "how": match.how,
        "facts": [_fact(fact) for fact in match.facts],
        "code": {"removed": match.code.removed, "added": match.code.added} if match.code else None,
    }
