"""Conditions of changes that need the graph: the catalogue names them, here is a function for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import merged_loops, parse_index
from inductor_probe.catalogue.entries import By, GraphCondition, Source, Turn
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def applies(change: By | Source | Turn, decision: Decision, graph: CompiledGraph) -> bool:
    """Whether a change may be offered for a decision."""
    condition = change.applies
    return CONDITIONS[condition](decision, graph) if isinstance(condition, str) else condition(decision)


def _has_longer_loop(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether a loop of its nodes that is not vectorised has as many steps as the vectorised one needs."""
    limit = decision.operand("range_limit") or decision.operand("factor")
    tiled = decision.operand("ranges")
    vectorised = tiled if isinstance(tiled, tuple) else ()
    leaves = index_of(graph).nodes.named(decision.names)
    sizes = [size for leaf in leaves for loops in leaf.sizes or () for size in loops]
    others = [size for size in sizes if str(size) not in vectorised]
    return isinstance(limit, int | float) and any(isinstance(size, str) or size >= limit for size in others)


def _is_unchanged(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether nothing changes a copy in place: else what it is a copy of would be changed without it."""
    copies = {*decision.names}
    buffers = index_of(graph).nodes.buffers.values()
    return not any(copies.intersection(buffer.mutations) for buffer in buffers)


def _have_same_loops(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether two nodes have the same loops: that they share no access is a matter of cost then."""
    sizes = {leaf.sizes for leaf in index_of(graph).nodes.named(decision.names)}
    return len(sizes) == 1 and None not in sizes


def _uses_same_elements(decision: Decision, _: CompiledGraph) -> bool:
    """Whether accesses are shown to reach the same elements, in another order: a copy in that order helps.

    No order makes a slice of a buffer equal to all of it, or to another slice; nor elements that are read
    once to what is read many times; nor, where both reduce, the dimensions that each reduces.
    """
    first, second = (_elements(decision, which) for which in ("first", "second"))
    is_same = decision.operand("first_index") == decision.operand("second_index")
    reduce = bool(decision.operand("both_reduce"))
    return first is not None and first == second and not (is_same or reduce)


def _elements(decision: Decision, which: str) -> tuple[object, ...] | None:
    """Return what is equal for accesses to the same elements: where they begin, and strides with their sizes.

    `64*d0 + d1` over d0: 8, d1: 64 and `63 - d1 + 64*d0` are 512 elements from 0 on. None where the index is
    no sum of loops with constant strides, or not printed.
    """
    printed, ranges = decision.operand(f"{which}_index"), decision.operand(f"{which}_ranges")
    if not isinstance(printed, str) or not isinstance(ranges, str) or printed == "all":
        return None
    sizes = dict(pair.split(": ", 1) for pair in ranges.split(", ") if ": " in pair)
    try:
        index = parse_index(printed)
    except ValueError:
        return None
    if not index.names <= sizes.keys():
        return None
    first = dict(index.terms).get((), 0)
    runs: list[tuple[int, int]] = []
    times = 1  # that each element is reached
    for name, text in sizes.items():
        stride = index.stride(name)
        if not isinstance(stride, int) or not text.isdecimal():
            return None
        size = int(text)
        if stride and size > 1:
            first += min(stride, 0) * (size - 1)
            runs.append((abs(stride), size))
        elif not stride:
            times *= size
    return first, times, *merged_loops(sorted(runs, reverse=True))


CONDITIONS: Mapping[GraphCondition, Callable[[Decision, CompiledGraph], bool]] = {
    "longer-loop": _has_longer_loop,
    "copy-unchanged": _is_unchanged,
    "same-elements": _uses_same_elements,
    "same-loops": _have_same_loops,
}
