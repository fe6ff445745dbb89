"""Two runs compared: their graphs in pairs, and what the manifests say of both."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from inductor_probe.analysis.diff.graph import diff_graphs
from inductor_probe.analysis.diff.symbols import Symbols
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.diff import Count, FactChange, RunDiff
from inductor_probe.model.manifest import Manifest


def diff_runs(
    a: DebugDir, b: DebugDir, graphs_a: Sequence[CompiledGraph], graphs_b: Sequence[CompiledGraph]
) -> RunDiff:
    """Compare two runs, given their graphs as read."""
    pairs = pair_graphs(graphs_a, graphs_b)
    with_partner = set(pairs.values())
    diffs = tuple(diff_graphs(graphs_a[at], graphs_b[other]) for at, other in sorted(pairs.items()))
    return RunDiff(
        a=a.path,
        b=b.path,
        environment=_environment(a.manifest, b.manifest),
        counts=_counts(a, b),
        graphs=diffs,
        removed=tuple(graph.name for at, graph in enumerate(graphs_a) if at not in pairs),
        added=tuple(graph.name for at, graph in enumerate(graphs_b) if at not in with_partner),
    )


def pair_graphs(a: Sequence[CompiledGraph], b: Sequence[CompiledGraph]) -> dict[int, int]:
    """Return the place in `b` of the partner of each graph of `a`, by what the graphs are.

    The same FX operations on the same types of inputs; then the same inputs; then the kind (inference,
    forward, backward); each in order. Names differ from torch to torch.
    """
    pairs: dict[int, int] = {}
    for key in (_same_graph, _same_inputs, _kind):
        _pair(a, b, key, pairs)
    return pairs


def _pair(
    a: Sequence[CompiledGraph],
    b: Sequence[CompiledGraph],
    key: Callable[[CompiledGraph], Hashable],
    pairs: dict[int, int],
) -> None:
    taken = set(pairs.values())
    waiting: dict[Hashable, list[int]] = {}
    for at in range(len(b) - 1, -1, -1):
        if at not in taken:
            waiting.setdefault(key(b[at]), []).append(at)
    for at, graph in enumerate(a):
        if at not in pairs and (others := waiting.get(key(graph))):
            pairs[at] = others.pop()


def _same_graph(graph: CompiledGraph) -> Hashable:
    operations = tuple(node.target for node in graph.fx.nodes) if graph.fx else graph.name
    return (_same_inputs(graph), operations)


def _same_inputs(graph: CompiledGraph) -> Hashable:
    if graph.fx is None:
        return graph.name
    symbols = Symbols(graph)
    return (_kind(graph), tuple(sorted(symbols.rename(node.type or "") for node in graph.fx.inputs)))


def _kind(graph: CompiledGraph) -> str:
    return graph.folder.kind or "inference"  # torch before 2.4 leaves the word out


def _environment(a: Manifest | None, b: Manifest | None) -> tuple[FactChange, ...]:
    if a is None or b is None:
        return ()
    facts: list[FactChange] = []
    for what, pairs_a, pairs_b, otherwise in (
        ("", a.versions, b.versions, None),
        ("", a.machine, b.machine, None),
        ("--set ", a.knobs, b.knobs, "as it is"),
    ):
        mine, other = dict(pairs_a), dict(pairs_b)
        for name in dict.fromkeys([*mine, *other]):
            if mine.get(name) != other.get(name):
                values = mine.get(name, otherwise), other.get(name, otherwise)
                facts.append(FactChange(f"{what}{name}", *values))
    for name, text_a, text_b in (("script", a.script, b.script), ("outcome", a.outcome, b.outcome)):
        if text_a != text_b:
            facts.append(FactChange(name, text_a, text_b))
    return tuple(facts)


def _counts(a: DebugDir, b: DebugDir) -> tuple[Count, ...]:
    found = [Count("graphs", len(a.graphs), len(b.graphs))]
    if a.manifest and b.manifest:
        for name, key in (("graph breaks", "graph_breaks"), ("recompile limits hit", "limit_hits")):
            found.append(Count(name, len(getattr(a.manifest, key)), len(getattr(b.manifest, key))))
    return tuple(found)
