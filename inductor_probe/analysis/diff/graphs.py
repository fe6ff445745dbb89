"""Two graphs compared, and two runs: their graphs in pairs, and what was set or installed otherwise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from inductor_probe.analysis.diff.changes import (
    buffer_changes,
    input_changes,
    node_changes,
    output_changes,
    pair_outputs,
)
from inductor_probe.analysis.diff.decisions import decision_changes, pair_changes
from inductor_probe.analysis.diff.fx import changed_operations, match_fx
from inductor_probe.analysis.diff.kernels import call_changes, fusion_changes, kernel_matches
from inductor_probe.analysis.diff.matching import match_nodes
from inductor_probe.analysis.diff.normal_forms import Symbols
from inductor_probe.analysis.diff.pairing import pair_by_levels
from inductor_probe.analysis.diff.side import ComparedGraph, called
from inductor_probe.analysis.index import known_sum
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.diff import (
    BufferChange,
    Count,
    DiffSide,
    FactChange,
    GraphDiff,
    KernelMatch,
    MissingPart,
    RunDiff,
)
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.setting import CONFIG

_GRAPH_FACTS = ("torch", "device", "backend")
"""What a graph itself says of where it was made; the rest of its environment are settings and variables."""
_ORDER = {"major": 0, "minor": 1, "cosmetic": 2}
# `probe dump` and torchrun set these: folders that are new each time, caches that are off.
_OF_THE_DUMP = (
    "TORCH_COMPILE_DEBUG", "TORCH_COMPILE_DEBUG_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE", "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "INDUCTOR_PROVENANCE",
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",  # an address
    "INDUCTOR_PROBE_STAGING", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID",
)  # fmt: skip
# Of AOTInductor: a file name made of a digest, and trees of inputs and outputs. They explain nothing either.
_OF_A_PACKAGE = tuple(
    f"torch._inductor.config.aot_inductor.{name}"
    for name in ("output_path", "serialized_in_spec", "serialized_out_spec")
)
# Torch prints what it has set and put back while it compiled, though it is the default again
# (`codegen_config` of torch/utils/_config_module.py): in the second graph of a process, not in the first.
_PUT_BACK = {
    "inplace_buffers": "True", "comprehensive_padding": "True", "deterministic": "False",
    "triton.autotune_at_compile_time": "None", "triton.autotune_cublasLt": "True",
    "triton.cudagraphs": "False", "triton.store_cubin": "False",
}  # fmt: skip
# Of these, the ones that it sets itself for a C++ wrapper: `get_cpp_wrapper_config` of compile_fx.py.
_OF_CPP_WRAPPER = tuple(f"{CONFIG}.{name}" for name in _PUT_BACK if name.startswith("triton."))
_WRAPPER = f"{CONFIG}.cpp_wrapper"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_Pairs = Iterable[tuple[str, str]]


def diff_graphs(a: CompiledGraph, b: CompiledGraph) -> GraphDiff:
    """Compare two graphs: what they compute, how it is grouped into kernels, and how buffers lie."""
    side_a, side_b = ComparedGraph(a), ComparedGraph(b)
    fx = match_fx(a.fx, b.fx, side_a.symbols, side_b.symbols)
    matching = match_nodes(side_a, side_b, fx)
    pairs = pair_outputs(matching)
    kernels = kernel_matches(matching, fx)
    named_a, named_b = described(side_a), described(side_b)
    inputs, outputs = _sorted(input_changes(matching)), _sorted(output_changes(matching, pairs))
    buffers = _sorted(buffer_changes(matching, pairs))
    numbers_a, numbers_b = _numbers(side_a), _numbers(side_b)
    fusion = fusion_changes(matching)
    return GraphDiff(
        a=named_a,
        b=named_b,
        environment=(*_graph_facts(named_a, named_b), *_changed_settings(a, b)),
        inputs=inputs,
        outputs=outputs,
        buffers=buffers,
        nodes=node_changes(matching),
        fusion=fusion,
        kernels=kernels,
        calls=call_changes(matching),
        operations=changed_operations(a.fx, b.fx),
        counts=tuple(Count(name, number, numbers_b[name]) for name, number in numbers_a.items()),
        cosmetic=_cosmetic(side_a, side_b, kernels, (*inputs, *outputs, *buffers)),
        matched_nodes=len(matching.nodes),
        matched_buffers=len(matching.buffers),
        missing=(*_missing(a, "a"), *_missing(b, "b")),
        decisions=tuple(dict.fromkeys((*decision_changes(matching), *pair_changes(matching, fusion)))),
        problems=(*a.problems, *b.problems),
    )


def described(side: ComparedGraph) -> DiffSide:
    """Return which graph a side of a comparison is."""
    graph = side.graph
    backends = dict.fromkeys(kernel.backend for kernel in graph.kernels)
    folder = graph.folder
    return DiffSide(graph.name, folder.path, graph.torch_version, folder.kind, side.devices, tuple(backends))


def _graph_facts(a: DiffSide, b: DiffSide) -> Iterator[FactChange]:
    facts_a, facts_b = (
        (side.torch_version, ", ".join(side.devices), ", ".join(side.backends)) for side in (a, b)
    )
    for name, value, other in zip(_GRAPH_FACTS, facts_a, facts_b, strict=True):
        if value and other and value != other:
            yield FactChange(name, value, other)


def _sorted(changes: tuple[BufferChange, ...]) -> tuple[BufferChange, ...]:
    """Weightiest first, else in order; what came or went counts for the most."""
    return tuple(sorted(changes, key=lambda change: _ORDER[change.weight] if change.facts else 0))


def _numbers(side: ComparedGraph) -> dict[str, int | None]:
    """Return sums over a graph, the most important first; None where its files lack them."""
    numbers: dict[str, int | None] = dict.fromkeys(("kernels", "launches", "library_calls"))
    code = side.graph.code
    after = {
        "fused_groups": len(side.graph.post) or None,
        "nodes": len(side.nodes) or None,
        "copies": sum(text.copies for text in side.texts.values()),
    }
    if code is None or code.entry is None:  # damaged: nothing in it counts
        return numbers | after | dict.fromkeys(("allocations", "bytes_allocated", "reused_buffers"))
    sizes = [size_bytes(item.layout) for item in code.allocations if item.kind == "new"]
    return {
        "kernels": len(code.kernels),
        "launches": len(code.launches),
        "library_calls": len(code.externs),
        **after,
        "allocations": len(sizes),
        "bytes_allocated": known_sum(sizes),
        "reused_buffers": sum(item.kind == "reuse" for item in code.allocations),
    }


def _cosmetic(
    a: ComparedGraph, b: ComparedGraph, kernels: tuple[KernelMatch, ...], buffers: tuple[BufferChange, ...]
) -> tuple[tuple[str, int], ...]:
    names = sum(match.a != match.b for match in kernels if len(match.a) == len(match.b) == 1)
    counts = {"kernel_names": names}
    facts = (fact.name for match in kernels for fact in match.facts if fact.weight == "cosmetic")
    counts |= Counter(facts)
    counts["unit_dim_strides"] = sum(change.weight == "cosmetic" for change in buffers)
    calls_a, calls_b = (
        sorted(call.target for call in (side.graph.code.externs if side.graph.code else ()))
        for side in (a, b)
    )
    if sorted(map(called, calls_a)) == sorted(map(called, calls_b)):
        counts["library_calls"] = sum(one != other for one, other in zip(calls_a, calls_b, strict=True))
    counts["graph_name"] = int(a.graph.name != b.graph.name)
    return tuple((name, number) for name, number in counts.items() if number)


def _missing(graph: CompiledGraph, which: Literal["a", "b"]) -> Iterator[MissingPart]:
    if not graph.post:
        yield MissingPart(which, "nodes_after_fusion")
    if graph.code is None or graph.code.entry is None:
        yield MissingPart(which, "output_code")
    if graph.fx is None:
        yield MissingPart(which, "fx_graph")


def diff_runs(
    a: DebugDir, b: DebugDir, graphs_a: Sequence[CompiledGraph], graphs_b: Sequence[CompiledGraph]
) -> RunDiff:
    """Compare two runs, given their graphs as read."""
    pairs = pair_graphs(graphs_a, graphs_b)
    diffs = [diff_graphs(graphs_a[place], graphs_b[other]) for place, other in sorted(pairs.items())]
    environment = _environment_changes(a.manifest, b.manifest)
    of_runs = {fact.name for fact in environment}
    # What changed alike in every pair was set for the run, and is reported for the run alone.
    shared = [
        fact
        for fact in (diffs[0].environment if diffs else ())
        if fact.name not in (*_GRAPH_FACTS, *of_runs) and all(fact in diff.environment for diff in diffs)
    ]
    run_facts = of_runs.union(fact.name for fact in shared) - {*_GRAPH_FACTS}
    counts = [("graphs", len(a.graphs), len(b.graphs))]
    if a.manifest and b.manifest:
        counts.append(("graph_breaks", len(a.manifest.graph_breaks), len(b.manifest.graph_breaks)))
        counts.append(("recompile_limits_hit", len(a.manifest.limit_hits), len(b.manifest.limit_hits)))
    return RunDiff(
        a=a.path,
        b=b.path,
        environment=(*environment, *shared),
        counts=tuple(Count(*count) for count in counts),
        graphs=tuple(
            replace(diff, environment=tuple(fact for fact in diff.environment if fact.name not in run_facts))
            for diff in diffs
        ),
        removed=tuple(graph.name for place, graph in enumerate(graphs_a) if place not in pairs),
        added=tuple(graph.name for place, graph in enumerate(graphs_b) if place not in pairs.values()),
        label_a=_label(a),
        label_b=_label(b),
    )


def diff_graphs_of_runs(a: CompiledGraph, b: CompiledGraph, run_a: DebugDir, run_b: DebugDir) -> GraphDiff:
    """Compare one graph of each of two runs; the environment is that of the runs as well."""
    diff = diff_graphs(a, b)
    if run_a.path == run_b.path:
        return diff
    environment = _environment_changes(run_a.manifest, run_b.manifest)
    names = {fact.name for fact in environment}
    return replace(
        diff,
        a=replace(diff.a, label=_label(run_a)),
        b=replace(diff.b, label=_label(run_b)),
        environment=(*environment, *(fact for fact in diff.environment if fact.name not in names)),
    )


def _label(run: DebugDir) -> str | None:
    return run.manifest.label if run.manifest else None


def pair_graphs(a: Sequence[CompiledGraph], b: Sequence[CompiledGraph]) -> dict[int, int]:
    """Return the place in `b` of the partner of each graph of `a`, by what the graphs are.

    The same FX operations on the same types of inputs; then the same inputs; then the kind (inference,
    forward, backward); each in order. Names differ from torch to torch.
    """
    keys_a, keys_b = ({place: _graph_keys(graph) for place, graph in enumerate(side)} for side in (a, b))
    return pair_by_levels(keys_a, keys_b)


def _graph_keys(graph: CompiledGraph) -> tuple[Hashable, Hashable, Hashable]:
    kind = graph.folder.kind or "inference"  # torch before 2.4 leaves the word out
    if graph.fx is None:
        return ((graph.name, graph.name), graph.name, kind)
    symbols = Symbols(graph)
    inputs = (kind, tuple(sorted(symbols.rename(node.type or "") for node in graph.fx.inputs)))
    return ((inputs, tuple(node.target for node in graph.fx.nodes)), inputs, kind)


def _environment_changes(a: Manifest | None, b: Manifest | None) -> tuple[FactChange, ...]:
    """Return what changed around two runs by their manifests: versions, machine, knobs, variables, script."""
    if a is None or b is None:
        return ()
    knobs_a, knobs_b = ([(f"--set {name}", value) for name, value in run.knobs] for run in (a, b))
    facts = [
        *_changes(a.versions, b.versions, None),
        *_changes(a.machine, b.machine, None),
        *_changes(knobs_a, knobs_b, "not set"),
    ]
    if a.environment is not None and b.environment is not None:  # a manifest may not keep them
        facts += _variable_changes(a.environment, b.environment)
    facts += [
        FactChange(name, value, other)
        for name, value, other in (("script", a.script, b.script), ("outcome", a.outcome, b.outcome))
        if value != other
    ]
    return tuple(facts)


def _changed_settings(a: CompiledGraph, b: CompiledGraph) -> tuple[FactChange, ...]:
    """Return the settings of torch and the variables that changed between the runnables of two graphs.

    `fx_graph_runnable.py` has the settings that are not the default (`generate_config_string` of
    `torch._dynamo.debug_utils`), and from torch 2.9 on variables (`generate_env_vars_string` there).
    """
    if a.runnable is None or b.runnable is None:
        return ()
    changes = [*_changes(_set(a.runnable.settings), _set(b.runnable.settings), "default")]
    of_wrapper = _OF_CPP_WRAPPER if any(fact.name == _WRAPPER for fact in changes) else ()
    facts = [
        fact
        for fact in changes
        if fact.name not in _OF_A_PACKAGE and not (fact.name in of_wrapper and "default" in (fact.a, fact.b))
    ]
    if a.runnable.environment and b.runnable.environment:  # older releases print none
        facts += _variable_changes(a.runnable.environment, b.runnable.environment)
    return tuple(facts)


def _set(settings: _Pairs) -> Iterator[tuple[str, str]]:
    """Yield settings that are not the default, with their values but for addresses."""
    for name, value in settings:
        if _PUT_BACK.get(name.removeprefix(f"{CONFIG}.")) != value:
            yield name, _ADDRESS.sub("", value)


def _variable_changes(a: _Pairs, b: _Pairs) -> Iterator[FactChange]:
    named_a, named_b = ([pair for pair in side if pair[0] not in _OF_THE_DUMP] for side in (a, b))
    yield from _changes(named_a, named_b, "not set")


def _changes(a: _Pairs, b: _Pairs, otherwise: str | None) -> Iterator[FactChange]:
    values_a, values_b = dict(a), dict(b)
    for name in dict.fromkeys([*values_a, *values_b]):
        if values_a.get(name) != values_b.get(name):
            yield FactChange(name, values_a.get(name, otherwise), values_b.get(name, otherwise))
