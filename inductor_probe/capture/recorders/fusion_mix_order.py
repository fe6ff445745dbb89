"""Why two reductions of the same data over different dimensions do not share a kernel of Triton's.

torch/_inductor/scheduler.py, `MixOrderReduction.can_fuse`, says True or False: if True, the data is read once
for both. It is asked whenever a pair is scored, so it is not watched there: of two reductions that are
refused a watched copy of it is asked once more, which makes no guards that torch has not made already.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from inductor_probe.capture.branches import CallPath, holes, matches
from inductor_probe.capture.recorders.base import Operands, Tests
from inductor_probe.capture.recorders.decision_log import place_of, size_of, tests_of
from inductor_probe.capture.recorders.fusion_causes import Reason, asked_again, is_cpu
from inductor_probe.model.decision import Operand, TorchFrame
from inductor_probe.model.fusion_reasons import REASONS

_PLACE = "MixOrderReduction.can_fuse"
_NOT_FOR_THESE = (
    "V.graph.cpp_wrapper", "not _is_gpu_triton_backend(?", "not node1.is_gpu() ?", "device_type not in ?",
    "not node1.is_reduction() ?", "node1.ancestors & ?", "node1.has_strict?", "len(common_reads) == ?",
    "not cls.has_mix_reduction_orders(?", "g1 == g2 and ?",
)  # fmt: skip
"""Conditions of other pairs than two reductions of the same data, and of other kernels."""
_SIZE = "not V.graph.sizevars.?(sympy.Ge(nrow"
_CHECKS: Mapping[str, str] = {
    "not config.triton.mix_order_reduction": "off",
    "cls.is_contiguous_node(node2)": "not-contiguous",
    f"{_SIZE} * ncol, ?)?": "elements",
    f"{_SIZE}, ncol * ?)?": "rows-per-column",
    f"{_SIZE}, ?)?": "rows",
    "any(?reduction_hint not in ?": "hint",
    "not V.graph.sizevars.statically_known_leq(ncol, ?)": "columns",
    "MixOrderReduction.is_split_reduction(contiguous_node)": "split",
}
"""The condition in whose branch it says no; behind all of them it is the other's `operation`."""


def mix_order_limit(form: str, first: Any, second: Any) -> tuple[Reason, Tests, TorchFrame] | None:
    """Return which check of `MixOrderReduction.can_fuse` failed, its tests and place; None of other pairs.

    Args:
        form: of the reason that torch logs where such a pair is nothing else that it could fuse.
        first, second: the pair.
    """
    rules: Any = getattr(sys.modules["torch._inductor.scheduler"], "MixOrderReduction", None)
    reason = REASONS.get(form)
    if rules is None or reason is None or reason.code not in ("accesses-differ", "reductions-differ"):
        return None
    if is_cpu(first, second) or not (first.is_reduction() and second.is_reduction()):
        return None
    says, path = asked_again(_PLACE, rules, first, second)
    place = place_of(rules.can_fuse)
    if says or path is None or path.exit is None:
        return None
    texts = [condition.text for condition, _ in path.branches()]
    if any(matches(text, pattern) for text in texts for pattern in _NOT_FOR_THESE):
        return None
    found = ((one, check) for text in texts for one, check in _CHECKS.items() if matches(text, one))
    pattern, check = next(found, ("", "" if texts else "operation"))
    if not check:
        return ("unlisted-test", {}), tests_of(path), place
    buffers = tuple(rules.get_common_read(first, second))
    if check == "off" and not (buffers and _is_mixed(rules, first, second)):
        return None
    inner, other = (first, second) if rules.is_contiguous_node(first) else (second, first)
    rows, columns = map(size_of, rules.get_numel_rnumel(inner))
    sizes: Operands = {"rows": rows, "columns": columns} if check != "off" else {}
    values: Mapping[str, Operand | None] = {
        "elements": rows * columns if isinstance(rows, int) and isinstance(columns, int) else None,
        "rows": rows, "columns": columns, "hint": _value(path),
        "operation": _value(path) or _operations(other),
    }  # fmt: skip
    operands: Operands = {"check": check, **sizes}
    if (value := values.get(check)) is not None:
        operands["value"] = value
    if (limit := _limit(path, texts, pattern)) is not None:
        operands["limit"] = limit
    operands["buffers"] = buffers
    return ("mix-order-limit", operands), tests_of(path), place


def _is_mixed(rules: Any, first: Any, second: Any) -> bool:
    """Whether two reductions are independent, of one size in two orders: torch asks it after the setting."""
    names = [{*node.get_operation_names()} for node in (first, second)]
    if names[0] & {*second.ancestors} or names[1] & {*first.ancestors}:
        return False
    return bool(rules.has_mix_reduction_orders(first, second))


def _limit(path: CallPath, texts: list[str], pattern: str) -> int | float | None:
    """Return torch's literal in a condition: the last of its holes that is a number."""
    found = next((one for text in texts if (one := holes(text, pattern)) is not None), ())
    numbers = [number for text in found if (number := path.literal(text)) is not None]
    return numbers[-1] if numbers else None


def _value(path: CallPath) -> str | None:
    """Return the name that torch looked for among others in the test that decided."""
    seen = next((one for one in path.deciding() if len(one.values) > 1), None)
    return str(seen.values[0]).rpartition(".")[2] if seen is not None else None


def _operations(node: Any) -> str:
    return ", ".join(leaf.node.get_reduction_type() for leaf in node.get_nodes() if leaf.is_reduction())
