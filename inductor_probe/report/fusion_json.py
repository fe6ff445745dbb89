"""Fusion as JSON with stable keys: one object a graph.

Of a whole graph: `graph`, `log`, `nodes_before`, `nodes_after`, `rounds`, `steps`, `groups`, `refusals`,
`apart`.
Of a node: `graph`, `log`, `name`, `nodes`, `group`, `steps`, `apart`.
Of a pair: `graph`, `log`, `outcome`, `group`, `step`, `same_kernel`, `refusal`, `because`, `first`, `second`,
`order`, `direct`, `path`, `loops`, `shared`, `attempts`, `next_steps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inductor_probe.model.fusion import (
    ApartPair,
    FusionDecision,
    FusionGroup,
    FusionStep,
    GraphFusion,
    LogMatch,
    NodeFusion,
    PairAttempt,
    Refusal,
    SharedBuffer,
    Side,
)
from inductor_probe.model.span import Span


def fusion_json(rows: Iterable[GraphFusion | NodeFusion | FusionDecision]) -> list[dict[str, Any]]:
    """Return the answers ready for `json.dumps`."""
    return [_json(row) for row in rows]


def _json(row: GraphFusion | NodeFusion | FusionDecision) -> dict[str, Any]:
    found: dict[str, Any] = {"graph": row.graph, "log": _log(row.log)}
    match row:
        case GraphFusion():
            found |= {
                "nodes_before": row.nodes_before,
                "nodes_after": row.nodes_after,
                "rounds": [
                    {
                        "round": part.number,
                        "nodes_before": part.nodes_before,
                        "nodes_after": part.nodes_after,
                        "found": part.found,
                        "fused": part.fused,
                        "refused": part.refused,
                    }
                    for part in row.rounds
                ],
                "steps": [_step(step) for step in row.steps],
                "groups": [_group(group) for group in row.groups],
                "refusals": [
                    _refusal(count.refusal)
                    | {"pairs": count.pairs, "lines": count.lines, "standing": count.standing}
                    for count in row.refusals
                ],
                "apart": [_apart(pair) for pair in row.apart],
            }
        case NodeFusion():
            found |= {
                "name": row.name,
                "nodes": list(row.nodes),
                "group": _group(row.group),
                "steps": [_step(step) for step in row.steps],
                "apart": [_apart(pair) for pair in row.apart],
            }
        case FusionDecision():
            facts = row.facts
            found |= {
                "outcome": row.outcome,
                "group": _group(row.group),
                "step": _step(row.step) if row.step else None,
                "same_kernel": row.same_kernel,
                "refusal": _refusal(row.refusal) if row.refusal else None,
                "because": list(row.because),
                "first": _side(facts.first),
                "second": _side(facts.second),
                "order": facts.order,
                "direct": facts.direct,
                "path": list(facts.path),
                "loops": {"fit": facts.loops_fit, "text": facts.loops},
                "shared": [_shared(buffer) for buffer in facts.shared],
                "attempts": [_attempt(attempt) for attempt in row.attempts],
                "next_steps": list(row.next_steps),
            }
    return found


def _log(match: LogMatch) -> dict[str, Any]:
    return {"state": match.state, "how": match.how} | _place(match.span)


def _place(span: Span | None) -> dict[str, Any]:
    return {"path": str(span.path) if span else None, "line": span.first if span else None}


def _step(step: FusionStep) -> dict[str, Any]:
    return {
        "step": step.number,
        "round": step.round,
        "first": step.first,
        "second": step.second,
        "nodes": list(step.nodes),
        "shared_bytes": step.shared,
    } | _place(step.span)


def _group(group: FusionGroup | None) -> dict[str, Any] | None:
    if group is None:
        return None
    return {
        "name": group.name,
        "kind": group.kind,
        "nodes": list(group.nodes),
        "kernel": group.kernel,
        "steps": list(group.steps),
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "reason": refusal.reason,
        "form": refusal.form,
        "meaning": refusal.meaning,
        "numbers": dict(refusal.numbers),
        "knobs": [
            {"name": knob.name, "default": knob.default, "effect": knob.effect, "gpu_only": knob.gpu_only}
            for knob in refusal.knobs
        ],
    }


def _apart(pair: ApartPair) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "shared_bytes": pair.shared,
        "reasons": [refusal.reason for refusal in pair.refusals],
        "refused_silently": pair.silent,
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "nodes": list(side.nodes),
        "buffers": list(side.buffers),
        "fused_into": side.top,
        "kind": side.kind,
        "device": side.device,
        "iteration": _listed(side.iteration),
        "sizes": _listed(side.sizes),
        "origins": list(side.origins),
        "kernel": side.kernel,
    } | _place(side.span)


def _listed(value: Any) -> Any:
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def _shared(buffer: SharedBuffer) -> dict[str, Any]:
    return {
        "buffer": buffer.buffer,
        "relation": buffer.relation,
        "first": list(buffer.first),
        "second": list(buffer.second),
        "matches": buffer.matches,
        "bytes": buffer.bytes,
    }


def _attempt(attempt: PairAttempt) -> dict[str, Any]:
    return {
        "round": attempt.round,
        "first": attempt.first,
        "second": attempt.second,
        "what": attempt.what,
        "reason": attempt.refusal.reason if attempt.refusal else None,
        "shared_bytes": attempt.shared,
        "applying": attempt.applying,
        "refused_silently": attempt.silent,
    } | _place(attempt.span)
