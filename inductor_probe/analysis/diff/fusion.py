"""What was fused on one side and is apart on the other."""

from __future__ import annotations

from typing import Literal

from inductor_probe.analysis.diff.components import components
from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.model.diff import FusionChange


def fusion_changes(found: Matching) -> tuple[FusionChange, ...]:
    """Return the fused groups whose nodes stand in other groups on the other side, in the order of A."""
    a, b = found.a.side, found.b.side
    members_a, members_b = _members(a), _members(b)
    changes = []
    for part in components((a.group[mine], b.group[other]) for mine, other in found.nodes.items()):
        if len(part.a) == len(part.b) == 1:
            continue
        relation: Literal["split", "merged", "regrouped"] = "regrouped"
        if len(part.a) == 1:
            relation = "split"
        elif len(part.b) == 1:
            relation = "merged"
        changes.append(
            FusionChange(
                relation,
                tuple(members_a[name] for name in part.a),
                tuple(members_b[name] for name in part.b),
            )
        )
    return tuple(changes)


def _members(side: ComparedGraph) -> dict[str, tuple[str, ...]]:
    members: dict[str, list[str]] = {}
    for name, group in side.group.items():
        members.setdefault(group, []).append(name)
    return {group: tuple(names) for group, names in members.items()}
