"""The FX nodes of kernels on real dumps, held against torch's own provenance files and each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import outlines
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.links import links
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.pages import fx_trace
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.manifest import BufferOrigin, GraphRecord
from inductor_probe.model.pages import Absence
from inductor_probe.model.proof import DATA_FLOW, PROVENANCE_FILE, RECORDED, inferred
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]

FILE = "inductor_provenance_tracking_node_mappings.json"
LEFT_BEHIND = {name: f"ops.{name}(" for name in ("abs", "lt", "where", "sqrt", "reciprocal", "floor")}
"""FX operators that are an operation of their own in every loop body that computes them."""


def listed_pairs(folder: Path) -> set[tuple[str, str]]:
    """What torch's file lists, read without the reader: `cpp_fused_add_0:3` is a launch of `cpp_fused_add_0`.

    Torch 2.8 leaves the kernels of graphs that it compiled before in the file: the wrapper has none of them.
    """
    if not (folder / FILE).exists():
        return set()
    lists = json.loads((folder / FILE).read_text())["cppCodeToPost"]
    wrapper = (folder / "output_code.py").read_text()
    pairs = {(key.split(":")[0], name) for key, names in lists.items() for name in names}
    return {(kernel, name) for kernel, name in pairs if kernel in wrapper}


def missing(folder: Path, graph: CompiledGraph) -> set[tuple[str, str]]:
    """Torch's lists do not have the name of a subgraph before that of its nodes, as `FxGraph` has it."""
    subgraph = index_of(graph).subgraph
    pairs = {
        (pair.kernel, pair.fx.removeprefix(f"{name}_") if (name := subgraph(pair.fx)) else pair.fx)
        for pair in links(graph).kernel_fx
    }
    return listed_pairs(folder) - pairs


@every_graph
def test_no_pair_of_torchs_provenance_file_is_missing(folder: Path) -> None:
    assert missing(folder, read_at(folder)) == set()


IN_PLACE = ("wait_tensor", "all_reduce", "all_reduce_", "all_reduce_coalesced_", "broadcast")
"""What returns the memory that it is passed."""


def contradictions(graph: CompiledGraph, linked: Links) -> Iterator[str]:
    """Yield where two answers about the same node differ."""
    fx = {node.name: node for node in graph.fx.nodes} if graph.fx else {}

    def handed_on(name: str) -> set[str]:
        """What `name` is a view or an item of, itself included."""
        names = {name}
        while name in fx and operator(fx[name].target).name in {*VIEWS, *IN_PLACE} and fx[name].inputs:
            name = fx[name].inputs[0]
            names.add(name)
        return names

    for link in linked.nodes.values():
        if set(link.fx) & set(link.fx_candidates):
            yield f"{link.node} computes {link.fx}, and may compute {link.fx_candidates}"
        for buffer in link.buffers:
            origin = linked.origins.get(buffer)
            held = (origin.candidates or (origin.node,)) if origin else ()
            known = {*link.fx, *link.fx_candidates}
            for name in held:
                if name is not None and not handed_on(name) & known:
                    yield f"{buffer} holds {name}, and its node {link.node} computes {sorted(known)}"
            if len(held) > 1 and len(link.buffers) == 1 and held[-1] in link.fx:
                yield f"{buffer} may hold {held}, though {link.node} computes {held[-1]}"
    for pair in linked.kernel_fx:
        for node in pair.nodes:
            if pair.fx not in linked.nodes[node].fx or linked.nodes[node].kernel != pair.kernel:
                yield f"{pair.kernel} computes {pair.fx} in {node}, which does not say so"


def unproved(graph: CompiledGraph, linked: Links) -> Iterator[str]:
    """Yield what is said to be computed against torch's list, and has left nothing in the loop bodies."""
    lines = (graph.folder.path / "ir_post_fusion.txt").read_text().split("\n")
    spans = {leaf.name: leaf.span for top in graph.nodes for leaf in top.leaves()}
    for pair in linked.kernel_fx:
        node = graph.fx.node(pair.fx) if graph.fx else None
        wanted = LEFT_BEHIND.get(operator(node.target).name) if node else None
        if pair.conflict != "not-listed" or wanted is None:
            continue
        for name in pair.nodes:
            span = spans[name]
            if span is not None and wanted not in "\n".join(lines[span.first - 1 : span.last]):
                yield f"{name} has no {wanted} for {pair.fx}"


@every_graph
def test_pages_of_nodes_buffers_kernels_and_fx_nodes_agree(folder: Path) -> None:
    graph = read_at(folder)
    linked = links(graph)
    assert [*contradictions(graph, linked), *unproved(graph, linked)] == []
    assert {row.buffer: row.origin for row in outlines(graph) if row.origin} == {
        buffer: origin
        for buffer, origin in linked.origins.items()
        if buffer in {row.buffer for row in outlines(graph)}
    }
    nodes: dict[str, NodeLink] = {row.node: row.link for row in node_rows(graph)}
    kernels = {row.name: row for row in kernel_rows(graph)}
    for name, link in nodes.items():
        if link.kernel is not None and kernels[link.kernel].backend != "extern":
            assert set(link.fx) <= set(kernels[link.kernel].fx), name
    for node in graph.fx.nodes if graph.fx else ():
        page = fx_trace(graph, node.name)
        assert {row.node for row in page.nodes} == {
            name for name, link in nodes.items() if node.name in link.fx
        }
        assert {row.node for row in page.maybe} == {
            name for name, link in nodes.items() if node.name in link.fx_candidates
        }
        assert {pair.kernel for pair in page.kernels} == {
            name for name, row in kernels.items() if node.name in {pair.fx for pair in row.fx_proofs}
        }
        # A page denies only what torch's file does not list, and what no node may compute.
        denied = bool(page.absent)
        assert denied == (not page.nodes and not page.maybe and not page.kernels)
        assert not denied or node.name not in {name for _, name in listed_pairs(folder)}


def test_the_log_of_a_short_softmax_is_not_denied(read: Read) -> None:
    """`show log` said that no node computes it, though torch lists it and the loop body calls `ops.log`."""
    graph = read("torch-2.13.0-cpu-programs/short_softmax")
    page = fx_trace(graph, "log")
    assert [row.node for row in page.nodes] == ["op1"]
    assert [(pair.kernel, pair.proofs) for pair in page.kernels] == [
        ("cpp_fused__log_softmax_0", (PROVENANCE_FILE,))
    ]
    assert page.absent == ()


def test_a_node_and_its_buffer_name_the_same_fx_node(read: Read) -> None:
    """`show op1` said that it computes sum_1, and `layouts buf1` that it may hold sum_1 or log."""
    linked = links(read("torch-2.13.0-cpu-programs/short_softmax"))
    assert linked.nodes["op1"].fx == ("exp", "sum_1", "log")
    assert linked.origins["buf1"].node == "log"
    assert linked.origins["buf1"].proofs == (inferred("last-fx-of-node", node="op1"),)


def test_without_torchs_file_the_log_is_possible_and_not_denied(read: Read) -> None:
    graph = replace(read("torch-2.13.0-cpu-programs/short_softmax"), provenance=None)
    linked = links(graph)
    assert linked.nodes["op1"].fx_candidates == ("log",)
    assert linked.origins["buf1"].candidates == ("sum_1", "log")
    page = fx_trace(graph, "log")
    assert [row.node for row in page.maybe] == ["op1"]
    assert page.absent == ()


def test_what_torch_does_not_list_is_kept_beside_what_it_lists(read: Read) -> None:
    graph = read("torch-2.13.0-cpu-programs/short_softmax")
    assert graph.provenance is not None
    (kernel,) = graph.provenance.kernels
    rest = tuple(name for name in graph.provenance.kernels[kernel] if name != "amax")
    found = replace(
        graph.provenance, kernels={kernel: (*rest, "gone")}, launches={f"{kernel}:1": (*rest, "gone")}
    )
    pairs = {pair.fx: pair for pair in links(replace(graph, provenance=found)).kernel_fx}
    assert (pairs["amax"].proofs, pairs["amax"].nodes) == ((DATA_FLOW,), ("op0",))
    assert pairs["amax"].conflict == "not-listed"
    assert pairs["gone"].conflict == "not-in-fx-graph"
    assert {pair.conflict for name, pair in pairs.items() if name not in ("amax", "gone")} == {None}


def test_what_torch_lists_and_no_body_computes_is_said(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/mlp_train")
    assert graph.provenance is not None
    (kernel,) = (name for name in graph.provenance.kernels if name.startswith("cpp_fused_"))
    linked = links(graph)
    assert not [pair for pair in linked.kernel_fx if pair.conflict]
    origins = tuple(
        BufferOrigin(buffer, link.fx[-1], tuple(name for name in link.fx if name != "erf"))
        for link in linked.of_kernel(kernel)
        for buffer in link.buffers
    )
    recorded = replace(graph, record=GraphRecord(graph.name, None, None, origins=origins))
    pairs = {pair.fx: pair for pair in links(recorded).fx_of_kernel(kernel)}
    assert (pairs["erf"].proofs, pairs["erf"].conflict) == ((PROVENANCE_FILE,), "not-computed")
    assert pairs["gt"].proofs[0] == RECORDED


def test_each_denial_says_what_is_known_of_why(read: Read) -> None:
    def of(graph: CompiledGraph, name: str) -> tuple[Absence, ...]:
        return fx_trace(graph, name).absent

    training = read("torch-2.13.0-cpu/mlp_train", 1)
    assert training.fx is not None
    views = [node for node in training.fx.nodes if operator(node.target).name == "permute"]
    (view,) = of(training, views[0].name)
    assert (view.reason, view.of) == ("view", views[0].inputs[:1])
    unbacked = read("torch-2.13.0-cpu-programs/unbacked")
    assert [absence.reason for absence in of(unbacked, "sym_size_int")] == ["number"]
    assert of(read("torch-2.11.0-cuda/foreach_adam"), "getitem") == (
        Absence("getitem", "item", ("_foreach_add",)),
    )
    blind = replace(read("torch-2.13.0-cpu/hflip_cl"), provenance=None, post=(), pre=())
    (unknown,) = of(blind, "rev")
    assert (unknown.reason, unknown.of, unknown.searched) == ("unknown", (), ())
