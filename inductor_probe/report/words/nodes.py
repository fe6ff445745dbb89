"""Words for what nodes do to memory, and for how their formulas are read."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.model.formula import Convention
from inductor_probe.model.nodes import NodeRow

_CONVENTIONS: Mapping[Convention, str] = {
    "indirect-index": "an index that is a value itself may be negative and count from the end; "
    "whether it is wrapped and checked is not printed in the dump",
    "masked": "masked(m, a, b) is a where m holds, else b; nothing in a is loaded elsewhere",
    "mod": "mod(a, b) has the sign of a, a % b that of b",
    "scan": "how a scan combines two values is not printed in the dump",
    "atomic-add": "+= is atomic: several iterations may add to one place, in any order",
}


def memory_text(row: NodeRow) -> str:
    """`mutates arg0_1, atomic_add`; `reuses buf1`; empty where it only writes buffers of its own."""
    effects = [f"{effect.kind.replace('_', ' ')} {effect.buffer}" for effect in row.effects]
    return ", ".join([*effects, *row.store_modes])


def convention_text(convention: Convention) -> str:
    """Return what a reader of a formula has to know beyond its statements."""
    return _CONVENTIONS[convention]
