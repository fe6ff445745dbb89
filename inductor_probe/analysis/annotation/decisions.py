"""What was decided about a kernel's code: for the loop nests and the accesses that it is about."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.model.cause import Cause
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def decisions_of_code(graph: CompiledGraph, kernel: str) -> tuple[Cause, ...]:
    """Return the recorded decisions about the loops of a kernel, or about nothing but its nodes."""
    return tuple(
        cause for cause in graph_causes(graph, [kernel]).causes if cause.direct and cause.decision is not None
    )


def non_contiguous_accesses(causes: Sequence[Cause]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return by node and buffer how accesses fall short of contiguous ones: `stride -1`, `indirect access`.

    They are operands of decisions about vectors, which list them as tuples of equal lengths.
    """
    accesses: dict[tuple[str, str], dict[str, None]] = {}
    for cause in causes:
        if cause.decision is not None:
            for node, buffer, text in _accesses(cause.decision):
                accesses.setdefault((node, buffer), {})[text] = None
    return {key: tuple(texts) for key, texts in accesses.items()}


def _accesses(decision: Decision) -> list[tuple[str, str, str]]:
    columns = [decision.operand(name) for name in ("nodes", "buffers", "strides")]
    if not all(isinstance(column, tuple) for column in columns):
        return []
    nodes, buffers, strides = (column if isinstance(column, tuple) else () for column in columns)
    kinds = decision.operand("causes")
    codes = kinds if isinstance(kinds, tuple) else ("",) * len(strides)
    return [
        (node, buffer, f"stride {stride}" if stride else code.replace("-", " "))
        for node, buffer, stride, code in zip(nodes, buffers, strides, codes, strict=False)
        if buffer and (stride or code)
    ]
