"""Each graph in numbers, side by side."""

from __future__ import annotations

from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.model.diff import Count


def counts(a: ComparedGraph, b: ComparedGraph) -> tuple[Count, ...]:
    """Return the sums of both graphs, those that tell most first."""
    numbers_a, numbers_b = _numbers(a), _numbers(b)
    return tuple(Count(name, number, numbers_b[name]) for name, number in numbers_a.items())


def _numbers(side: ComparedGraph) -> dict[str, int | None]:
    graph, code = side.graph, side.graph.code
    if code is not None and code.entry is None:
        code = None  # damaged: nothing in it counts
    new = [item for item in code.allocations if item.kind == "new"] if code else []
    sizes = [size_bytes(item.layout) for item in new]
    numbers = [size for size in sizes if isinstance(size, int)]
    return {
        "kernels": len(code.kernels) if code else None,
        "launches": len(code.launches) if code else None,
        "library_calls": len(code.externs) if code else None,
        "fused_groups": len(graph.post) if graph.post else None,
        "nodes": len(side.nodes) if side.nodes else None,
        "copies": sum(text.copies for text in side.texts.values()),
        "allocations": len(new) if code else None,
        "bytes_allocated": sum(numbers) if code and len(numbers) == len(sizes) else None,
        "reused_buffers": sum(item.kind == "reuse" for item in code.allocations) if code else None,
    }
