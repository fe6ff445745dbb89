"""Why two reductions of the same data over different dimensions do not share a kernel of Triton's.

torch/_inductor/scheduler.py, `MixOrderReduction.can_fuse`, says True or False: if True, the data is read once
for both. What it compares is read again here, by functions of that class that keep no state; the sizes that
it asks guards for (`evaluate_expr`) are looked at only where they are numbers.
"""

from __future__ import annotations

import sys
from typing import Any

from inductor_probe.capture.recorders.decision_log import place_of
from inductor_probe.model.decision import Operand, TorchFrame
from inductor_probe.model.fusion_reasons import REASONS

# literals in MixOrderReduction.can_fuse
_LEAST_ELEMENTS = 5 * 2**20
_LEAST_RATIO = 2
_LEAST_ROWS = 4096
_MOST_COLUMNS = 1024 * 16
_HINTS = ("INNER", "DEFAULT")
_OPERATIONS = ("sum", "prod")
_ASKED = (
    "has_mix_reduction_orders", "get_common_read", "is_contiguous_node", "get_numel_rnumel",
    "is_split_reduction",
)  # fmt: skip
"""What the class has on the releases of torch that this knows."""
_SUPPORTS = "supports_noncontiguous_reductions"
"""What it has since it takes any number of rows for a column, torch 2.15."""
_STRICT = ("has_strict_sum", "has_strict_reduction")
"""What nodes are asked since torch 2.14, and since 2.15: their order of additions is eager's."""


def mix_order_limit(form: str, first: Any, second: Any) -> tuple[dict[str, Operand], TorchFrame] | None:
    """Return which check of `MixOrderReduction.can_fuse` failed, and its place; None for any other pair.

    Args:
        form: of the reason that torch logs where such a pair is nothing else that it could fuse.
    """
    rules: Any = getattr(sys.modules["torch._inductor.scheduler"], "MixOrderReduction", None)
    reason = REASONS.get(form)
    if reason is None or reason.code not in ("accesses-differ", "reductions-differ"):
        return None
    if not all(hasattr(rules, name) for name in _ASKED):
        return None
    if not (first.is_reduction() and second.is_reduction()):
        return None
    if any(node.get_device().type == "cpu" for node in (first, second)):
        return None
    if first.ancestors & second.get_operation_names() or second.ancestors & first.get_operation_names():
        return None  # it is for what is independent
    if any(getattr(node, name, bool)() for node in (first, second) for name in _STRICT):
        return None
    if not rules.has_mix_reduction_orders(first, second):
        return None
    buffers = tuple(rules.get_common_read(first, second))
    if not buffers:
        return None
    failed = _failed(rules, first, second)
    return ({**failed, "buffers": buffers}, place_of(rules.can_fuse)) if failed else None


def _failed(rules: Any, first: Any, second: Any) -> dict[str, Operand] | None:
    config = sys.modules["torch._inductor.config"].triton
    if not config.mix_order_reduction:
        return {"check": "off"}
    inner, other = (first, second) if rules.is_contiguous_node(first) else (second, first)
    if not rules.is_contiguous_node(inner):
        return {"check": "not-contiguous"}
    rows, columns = rules.get_numel_rnumel(inner)
    if not (getattr(rows, "is_Integer", False) and getattr(columns, "is_Integer", False)):
        return None
    sizes: dict[str, Operand] = {"rows": int(rows), "columns": int(columns)}
    if not getattr(config, "mix_order_reduction_non_strict_mode", False):
        if rows * columns < _LEAST_ELEMENTS:
            return {"check": "elements", "value": int(rows * columns), "limit": _LEAST_ELEMENTS, **sizes}
        if rows < columns * _LEAST_RATIO and not hasattr(rules, _SUPPORTS):
            return {"check": "rows-per-column", "limit": _LEAST_RATIO, **sizes}
        if rows < _LEAST_ROWS:
            return {"check": "rows", "value": int(rows), "limit": _LEAST_ROWS, **sizes}
    if hasattr(rules, _SUPPORTS) and (rows, columns) == rules.get_numel_rnumel(other):
        return None  # since torch 2.15 they may be read in one order after all
    hints = [leaf.node.data.reduction_hint.name for leaf in inner.get_nodes() if leaf.is_reduction()]
    if wrong := [hint for hint in hints if hint not in _HINTS]:
        return {"check": "hint", "value": wrong[0], **sizes}
    if columns > _MOST_COLUMNS:
        return {"check": "columns", "value": int(columns), "limit": _MOST_COLUMNS, **sizes}
    if rules.is_split_reduction(inner):
        return {"check": "split", **sizes}
    operations = [leaf.node.get_reduction_type() for leaf in other.get_nodes() if leaf.is_reduction()]
    if wrong := [operation for operation in operations if operation not in _OPERATIONS]:
        return {"check": "operation", "value": wrong[0], **sizes}
    return None
