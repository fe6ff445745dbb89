"""Two graphs compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from inductor_probe.analysis.diff.buffers import buffer_changes, input_changes, output_changes, pair_outputs
from inductor_probe.analysis.diff.calls import call_changes
from inductor_probe.analysis.diff.changed_nodes import node_changes
from inductor_probe.analysis.diff.counts import counts
from inductor_probe.analysis.diff.fusion import fusion_changes
from inductor_probe.analysis.diff.fx import changed_operations, match_fx
from inductor_probe.analysis.diff.kernels import kernel_matches
from inductor_probe.analysis.diff.nodes import match_nodes
from inductor_probe.analysis.diff.settings import changed_settings
from inductor_probe.analysis.diff.side import ComparedGraph, called, compared_graph
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.diff import (
    BufferChange,
    DiffSide,
    FactChange,
    GraphDiff,
    KernelMatch,
    MissingPart,
)

GRAPH_FACTS = ("torch", "device", "backend")
"""What a graph itself says of where it was made; the rest of its environment are settings and variables."""
_ORDER = {"major": 0, "minor": 1, "cosmetic": 2}


def diff_graphs(a: CompiledGraph, b: CompiledGraph) -> GraphDiff:
    """Compare two graphs: what they compute, how it is grouped into kernels, and how buffers lie."""
    side_a, side_b = compared_graph(a), compared_graph(b)
    fx = match_fx(a.fx, b.fx, side_a.symbols, side_b.symbols)
    found = match_nodes(side_a, side_b, fx)
    outputs = pair_outputs(found)
    kernels = kernel_matches(found, fx)
    named_a, named_b = _named(side_a), _named(side_b)
    inputs = input_changes(found)
    buffers = buffer_changes(found, outputs)
    changed_outputs = output_changes(found, outputs)
    return GraphDiff(
        a=named_a,
        b=named_b,
        environment=(*_environment(named_a, named_b), *changed_settings(a, b)),
        inputs=_sorted(inputs),
        outputs=_sorted(changed_outputs),
        buffers=_sorted(buffers),
        nodes=node_changes(found),
        fusion=fusion_changes(found),
        kernels=kernels,
        calls=call_changes(found),
        operations=changed_operations(a.fx, b.fx),
        counts=counts(side_a, side_b),
        cosmetic=_cosmetic(side_a, side_b, kernels, (*inputs, *changed_outputs, *buffers)),
        matched_nodes=len(found.nodes),
        matched_buffers=len(found.buffers),
        missing=(*_missing(a, "a"), *_missing(b, "b")),
        problems=(*a.problems, *b.problems),
    )


def _named(compared: ComparedGraph) -> DiffSide:
    graph = compared.graph
    kernels = graph.code.kernels if graph.code else ()
    return DiffSide(
        graph.name,
        graph.folder.path,
        graph.torch_version,
        graph.folder.kind,
        compared.devices,
        tuple(dict.fromkeys(kernel.backend for kernel in kernels)),
    )


def _environment(a: DiffSide, b: DiffSide) -> tuple[FactChange, ...]:
    sides = [
        (side.torch_version, ", ".join(side.devices) or None, ", ".join(side.backends) or None)
        for side in (a, b)
    ]
    return tuple(
        FactChange(name, mine, other)
        for name, mine, other in zip(GRAPH_FACTS, *sides, strict=True)
        if mine and other and mine != other
    )


def _sorted(changes: tuple[BufferChange, ...]) -> tuple[BufferChange, ...]:
    """Weightiest first, else in order; what came or went counts for the most."""
    return tuple(sorted(changes, key=lambda change: _ORDER[change.weight] if change.facts else 0))


def _cosmetic(
    a: ComparedGraph, b: ComparedGraph, kernels: tuple[KernelMatch, ...], buffers: tuple[BufferChange, ...]
) -> tuple[tuple[str, int], ...]:
    names = sum(match.a != match.b for match in kernels if len(match.a) == len(match.b) == 1)
    found: dict[str, int] = {"kernel_names": names}
    for match in kernels:
        for fact in match.facts:
            if fact.weight == "cosmetic":
                found[fact.name] = found.get(fact.name, 0) + 1
    found["unit_dim_strides"] = sum(change.weight == "cosmetic" for change in buffers)
    calls_a, calls_b = (
        [call.target for call in one.graph.code.externs] if one.graph.code else [] for one in (a, b)
    )
    if sorted(map(called, calls_a)) == sorted(map(called, calls_b)):
        respelled = sum(mine != other for mine, other in zip(sorted(calls_a), sorted(calls_b), strict=True))
        found["library_calls"] = respelled
    found["graph_name"] = int(a.graph.name != b.graph.name)
    return tuple((name, number) for name, number in found.items() if number)


def _missing(graph: CompiledGraph, which: Literal["a", "b"]) -> Iterator[MissingPart]:
    if not graph.post:
        yield MissingPart(which, "nodes_after_fusion")
    if graph.code is None or graph.code.entry is None:
        yield MissingPart(which, "output_code")
    if graph.fx is None:
        yield MissingPart(which, "fx_graph")
