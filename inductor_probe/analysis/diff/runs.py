"""Two runs compared: their graphs in pairs, and what the manifests say of both."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from inductor_probe.analysis.diff.graph import GRAPH_FACTS, diff_graphs
from inductor_probe.analysis.diff.settings import changed_variables
from inductor_probe.analysis.diff.symbols import Symbols
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.diff import Count, FactChange, GraphDiff, RunDiff
from inductor_probe.model.manifest import Manifest


def diff_runs(
    a: DebugDir, b: DebugDir, graphs_a: Sequence[CompiledGraph], graphs_b: Sequence[CompiledGraph]
) -> RunDiff:
    """Compare two runs, given their graphs as read."""
    pairs = pair_graphs(graphs_a, graphs_b)
    with_partner = set(pairs.values())
    diffs = tuple(diff_graphs(graphs_a[at], graphs_b[other]) for at, other in sorted(pairs.items()))
    environment = environment_changes(a.manifest, b.manifest)
    told = {fact.name for fact in environment}
    shared = tuple(fact for fact in _in_all(diffs) if fact.name not in told)
    return RunDiff(
        a=a.path,
        b=b.path,
        environment=(*environment, *shared),
        counts=_counts(a, b),
        graphs=tuple(_without(diff, told.union(fact.name for fact in shared)) for diff in diffs),
        removed=tuple(graph.name for at, graph in enumerate(graphs_a) if at not in pairs),
        added=tuple(graph.name for at, graph in enumerate(graphs_b) if at not in with_partner),
        label_a=_label(a),
        label_b=_label(b),
    )


def _in_all(diffs: Sequence[GraphDiff]) -> tuple[FactChange, ...]:
    """Return the settings and variables that changed alike in every pair: they were set for the run."""
    first, *others = [diff.environment for diff in diffs] or [()]
    return tuple(
        fact
        for fact in first
        if fact.name not in GRAPH_FACTS and all(fact in environment for environment in others)
    )


def _without(diff: GraphDiff, names: set[str]) -> GraphDiff:
    """Return a comparison without what is said of the run as a whole."""
    left = tuple(fact for fact in diff.environment if fact.name in GRAPH_FACTS or fact.name not in names)
    return replace(diff, environment=left)


def diff_graphs_of_runs(a: CompiledGraph, b: CompiledGraph, run_a: DebugDir, run_b: DebugDir) -> GraphDiff:
    """Compare one graph of each of two runs; the environment is that of the runs as well."""
    diff = diff_graphs(a, b)
    if run_a.path == run_b.path:
        return diff
    environment = environment_changes(run_a.manifest, run_b.manifest)
    told = {fact.name for fact in environment}
    return replace(
        diff,
        a=replace(diff.a, label=_label(run_a)),
        b=replace(diff.b, label=_label(run_b)),
        environment=(*environment, *(fact for fact in diff.environment if fact.name not in told)),
    )


def _label(run: DebugDir) -> str | None:
    return run.manifest.label if run.manifest else None


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


def environment_changes(a: Manifest | None, b: Manifest | None) -> tuple[FactChange, ...]:
    """Return what changed around two runs by their manifests: versions, machine, knobs, variables, script."""
    if a is None or b is None:
        return ()
    facts: list[FactChange] = []
    for what, pairs_a, pairs_b, otherwise in (
        ("", a.versions, b.versions, None),
        ("", a.machine, b.machine, None),
        ("--set ", a.knobs, b.knobs, "not set"),
    ):
        mine, other = dict(pairs_a), dict(pairs_b)
        for name in dict.fromkeys([*mine, *other]):
            if mine.get(name) != other.get(name):
                values = mine.get(name, otherwise), other.get(name, otherwise)
                facts.append(FactChange(f"{what}{name}", *values))
    facts += changed_variables(a, b)
    for name, text_a, text_b in (("script", a.script, b.script), ("outcome", a.outcome, b.outcome)):
        if text_a != text_b:
            facts.append(FactChange(name, text_a, text_b))
    return tuple(facts)


def _counts(a: DebugDir, b: DebugDir) -> tuple[Count, ...]:
    found = [Count("graphs", len(a.graphs), len(b.graphs))]
    if a.manifest and b.manifest:
        for name, key in (("graph_breaks", "graph_breaks"), ("recompile_limits_hit", "limit_hits")):
            found.append(Count(name, len(getattr(a.manifest, key)), len(getattr(b.manifest, key))))
    return tuple(found)
