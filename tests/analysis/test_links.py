"""Links on real dumps: every node that runs has its launch, and no link disagrees with what torch says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.linking.provenance import without_waits
from inductor_probe.analysis.linking.steps import node_runs, read_steps
from inductor_probe.analysis.links import links
from inductor_probe.model.code import ExternCall
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.links import Links
from inductor_probe.model.manifest import BufferOrigin, GraphRecord
from inductor_probe.model.proof import KERNEL_COMMENT, RECORDED, Proof, inferred
from inductor_probe.model.proof import read as read_in_dump
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.report.words.links import proof_text
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]

SUBGRAPHS = "conditional"
"""A program whose branches are graphs of their own: the IR of the outer graph does not hold their nodes."""


def leaves(graph: CompiledGraph) -> list[SchedulerNode]:
    return [leaf for top in graph.nodes for leaf in top.leaves()]


def as_torch_lists(graph: CompiledGraph, names: set[str]) -> set[str]:
    """Return FX nodes without the name of their subgraph, which torch's lists do not have."""
    subgraph = index_of(graph).subgraph
    return {name.removeprefix(f"{subgraph(name)}_") for name in names}


def disagreements(graph: CompiledGraph, linked: Links) -> Iterator[str]:
    """Yield what contradicts the dump itself: the wrapper, torch's provenance, the comments above kernels."""
    assert graph.code is not None
    lines = (graph.folder.path / "output_code.py").read_text().split("\n")
    for link in linked.unlinked:
        yield f"{link.node} is not linked"
    for link in linked.nodes.values():
        for span in link.launches:
            text = "\n".join(lines[span.first - 1 : span.last])
            if link.kernel is not None and link.kernel not in text:
                yield f"{link.node}: line {span.first} does not call {link.kernel}"
    ran = {span.first for link in linked.nodes.values() for span in link.launches}
    for launch in (*graph.code.launches, *graph.code.externs):
        # A loop begins with copies, for which there is no node.
        is_copy = isinstance(launch, ExternCall) and launch.target.endswith(".clone")
        if launch.span.first not in ran and not is_copy and SUBGRAPHS not in graph.folder.path.parts:
            yield f"line {launch.span.first} runs no node"
    for kernel_name, listed in (graph.provenance.kernels if graph.provenance else {}).items():
        names = {*listed, *without_waits(listed, kernel_name, index_of(graph).fx)}
        found = {name for link in linked.of_kernel(kernel_name) for name in link.fx}
        found = as_torch_lists(graph, found - unlisted(linked, kernel_name))
        if names and not found <= names:
            yield f"{kernel_name}: torch's provenance does not have {sorted(found - names)}"
    first = {launch.kernel: launch.span for launch in reversed(graph.code.launches)}
    for kernel in graph.code.kernels:  # a comment speaks of the kernel's first launch
        names = kernel.comment.fx_nodes if kernel.comment else ()
        runs = [link for link in linked.of_kernel(kernel.name) if first.get(kernel.name) in link.launches]
        found = {name for link in runs for name in link.fx} - unlisted(linked, kernel.name)
        found = as_torch_lists(graph, found)
        if names and not found <= set(names):
            yield f"{kernel.name}: the comment above it does not have {sorted(found - set(names))}"


def unlisted(linked: Links, kernel: str) -> set[str]:
    """What is said to differ from torch's list; `test_kernel_fx.py` looks for it in the loop bodies."""
    return {pair.fx for pair in linked.fx_of_kernel(kernel) if pair.conflict == "not-listed"}


@every_graph
def test_no_link_of_a_fixture_disagrees_with_the_dump(folder: Path) -> None:
    graph = read_at(folder)
    assert list(disagreements(graph, links(graph))) == []


@every_graph
def test_the_flow_of_data_alone_finds_nothing_that_torch_denies(folder: Path) -> None:
    """What is found without provenance, comments and records is checked against provenance."""
    graph = read_at(folder)
    if graph.provenance is None:
        pytest.skip("this torch wrote no provenance for the graph")
    linked = links(replace(graph, provenance=None, record=None))
    for kernel, listed in graph.provenance.kernels.items():
        names = without_waits(listed, kernel, index_of(graph).fx)
        computed = {
            name for link in linked.of_kernel(kernel) for name in link.fx if not is_silent(graph, name)
        }
        computed = as_torch_lists(graph, computed)
        generated = graph.code.kernel(kernel) if graph.code else None
        returns = generated.comment.returns if generated and generated.comment else ()  # torch says this, too
        assert not names or computed <= {*names, *items(graph, names), *returns}, kernel


def is_silent(graph: CompiledGraph, name: str) -> bool:
    """Views, and values made of nothing, are part of the way without being named by every torch."""
    silent = ("view", "reshape", "expand", "permute", "cat", "full", "iota", "unsqueeze", "squeeze", "select")
    node = graph.fx.node(name) if graph.fx else None
    return node is not None and node.target.split(".")[-2:-1] != [] and node.target.split(".")[-2] in silent


def items(graph: CompiledGraph, names: tuple[str, ...]) -> set[str]:
    """What `names` are items of."""
    nodes = (graph.fx.node(name) for name in names) if graph.fx else ()
    return {name for node in nodes if node is not None and node.target == "[]" for name in node.inputs}


def passed(mutated: str, buffer: str) -> Proof:
    return read_in_dump("mutates-buffer", step="launch", buffer=buffer, mutated=mutated)


def test_every_proof_is_said(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/mlp_train")
    for link in links(graph).nodes.values():
        assert link.kernel_proof
        assert link.fx_proofs


def test_a_training_step_is_linked_from_line_to_launch(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/mlp_train")
    linked = links(graph)
    first = linked.nodes["op0"]
    assert (first.kernel, first.fx) == ("extern_kernels.addmm", ("addmm",))
    second = linked.nodes["op5"]
    assert second.kernel == "extern_kernels.addmm"
    assert first.launches != second.launches  # the same library function, two calls
    seeds, random, dropped, activated = (linked.nodes[name] for name in ("op1", "op2", "op3", "op4"))
    assert (seeds.kernel, seeds.fx) == ("aten.randint.low_out", ("inductor_seeds_default",))
    assert random.fx == ("inductor_lookup_seed_default", "inductor_random_default")
    assert dropped.fx == ("gt",)
    assert set(activated.fx) >= {"erf", "mul_4"}
    assert random.launches == dropped.launches == activated.launches
    assert random.kernel_proof == read_in_dump("fused-with-linked")  # buf2 is kept inside the kernel


def test_antialias_weights_belong_to_the_buffers_they_are_made_for(read: Read) -> None:
    linked = links(read("torch-2.13.0-cpu/aa_separable_cl"))
    assert {"where", "lt", "sum_1"} <= set(linked.nodes["op0"].fx)
    assert {"index", "mul_6", "sum_3", "div"} <= set(linked.nodes["op1"].fx)
    assert {"where_1", "sum_2"} <= set(linked.nodes["op2"].fx)
    assert {"index_1", "mul_7", "sum_4"} <= set(linked.nodes["op3"].fx)
    assert "sum_3" not in linked.nodes["op3"].fx
    horizontal = {source.line for source in linked.nodes["op1"].sources}
    assert 67 in horizontal
    assert 69 not in horizontal  # the vertical pass
    assert linked.origins["buf0"].node == "sum_1"
    assert linked.origins["buf1"].node == "clone"  # it leaves no trace: torch's provenance alone tells of it


def test_what_changes_a_buffer_in_the_kernel_that_made_it_is_linked_to_that_kernel(read: Read) -> None:
    """`table.clone().index_put_(...)`, then one more: the first was said to run in that of the second."""
    linked = links(read("torch-2.13.0-cpu/scatter_into_clone"))
    kernels = {name: linked.nodes[name].kernel for name in ("op0", "op1", "op2", "op6")}
    assert kernels == {
        "op0": "cpp_fused_index_put_sum_0",
        "op1": "cpp_fused_index_put_sum_0",
        "op2": "cpp_fused_index_put_sum_0",
        "op6": "cpp_fused_index_put_zeros_1",
    }


def test_what_is_returned_is_of_the_node_that_changed_it_last(read: Read) -> None:
    """The flow of data alone said that the copy of the table, op0, computes the last update of it."""
    linked = links(replace(read("torch-2.13.0-cpu/scatter_into_clone"), provenance=None, record=None))
    assert [name for name, link in linked.nodes.items() if "index_put_1" in link.fx] == ["op6"]


def test_nodes_that_change_their_inputs_are_told_apart_by_what_they_change(read: Read) -> None:
    linked = links(read("torch-2.2.2-cpu/inplace_mutation"))
    changes = {link.buffers[0]: link for link in linked.nodes.values()}
    assert {link.kernel for link in linked.nodes.values()} == {"cpp_fused_add_mul_0"}
    assert changes["buf2"].kernel_proof == passed("arg0_1", "buf2")
    assert set(changes["buf2"].fx) == {"copy_"}
    assert changes["buf0"].fx == ("add", "mul", "add_1")


def test_lists_of_tensors_are_followed_item_by_item(read: Read) -> None:
    graph = read("torch-2.11.0-cuda/foreach_adam")
    linked = links(graph)
    assert {link.kernel for link in linked.nodes.values()} == {"triton_for_fused_0", "triton_for_fused_1"}
    assert linked.nodes["op0"].fx == ("_foreach_add",)
    assert linked.nodes["op4"].fx == ("_foreach_sub", "_foreach_mul", "_foreach_add_1")
    assert linked.nodes["op27"].fx == ("copy__13",)
    step = linked.nodes["op20"]
    assert step.kernel_proof == passed("arg0_1", "buf20")
    assert {"_foreach_sqrt", "_foreach_div_3"} <= set(step.fx)
    assert all(link.fx for link in linked.nodes.values())


def test_comments_above_kernels_tell_the_value_of_each_buffer(read: Read) -> None:
    """`return %getitem_1,%buf1,%rsqrt,%add_1,%mul_4` stands above the kernel."""
    linked = links(read("torch-2.11.0-cuda/layernorm_grad"))
    values = {buffer: origin.node for buffer, origin in linked.origins.items()}
    assert values["buf0"] == "getitem_1"
    assert values["buf3"] == "rsqrt"
    assert values["buf4"] == "add_1"
    assert linked.origins["buf4"].proofs == (KERNEL_COMMENT,)


def test_corpus_cases_checked_by_hand(corpus: Path) -> None:
    def of(name: str, at: int = 0) -> Links:
        (run,) = (corpus / name / "torch_compile_debug").glob("run_*")
        return links(read_graph(read_run(run).graphs[at]))

    convolution = of("torch-2.13.0-cpu/conv_bn_relu").nodes
    assert convolution["op0"].fx == convolution["op1"].fx == convolution["op2"].fx == ("convolution",)
    assert convolution["op0"].kernel == "cpp_fused_convolution_0"  # only copies into channels-last
    assert convolution["op2"].kernel == "extern_kernels.convolution"
    assert "relu" in convolution["op3"].fx

    old = of("torch-2.4.1-cpu/conv_bn_relu").nodes  # without provenance
    assert old["buf0"].fx == ("convolution",)
    assert old["buf0"].fx_proofs == (inferred("copy-for-call"),)

    template = of("torch-2.11.0-cuda/mm_epilogue_maxautotune").nodes
    assert (template["op0"].kernel, template["op0"].fx) == ("triton_tem_fused_mm_0", ("mm",))
    assert (template["op1"].kernel, template["op1"].fx) == ("triton_poi_fused_add_relu_1", ("add", "relu"))

    scatter = of("torch-2.11.0-cuda/index_put_accum").nodes  # both kernels write buf0, one after the other
    assert scatter["op0"].kernel == "triton_poi_fused_index_put_0"
    assert scatter["op1"].kernel == "triton_poi_fused_index_put_1"

    for version in ("2.1.2", "2.4.1", "2.13.0"):
        scan = of(f"torch-{version}-cpu/cumsum_scan").nodes.values()
        assert [link.fx for link in scan] == [("cumsum",), ("cumsum",), ("mul",)]

    adam = of("torch-2.13.0-cpu/foreach_adam")
    assert len({link.kernel for link in adam.nodes.values()}) == 1
    assert all(link.fx or link.fx_candidates for link in adam.nodes.values())


def test_recorded_origins_go_before_everything_else(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    origins = (BufferOrigin("buf0", "rev", ("rev",)),)
    linked = links(replace(graph, record=GraphRecord(graph.name, None, None, origins=origins)))
    assert linked.origins["buf0"].proofs == (RECORDED,)
    assert linked.nodes["op0"].fx_proofs == (RECORDED,)
    assert links(graph).origins["buf0"].proofs == (read_in_dump("returned-position"),)


def test_what_cannot_be_told_is_ambiguous_and_names_the_candidates(read: Read) -> None:
    """Two calls of the same function that give nothing: nothing tells which is whose."""
    graph = read("torch-2.13.0-cpu/mlp_train", 1)
    assert graph.code is not None
    calls = tuple(replace(call, outputs=(), args=()) for call in graph.code.externs)
    blind = replace(graph, code=replace(graph.code, externs=calls))
    found = links(blind).nodes["op0"]
    assert found.kernel == "extern_kernels.mm"
    assert found.kernel_proof == read_in_dump("node-names-one-of-calls")
    assert len(found.launches) > 1
    unnamed = tuple(replace(leaf, kernel=None) for leaf in blind.nodes)
    found = links(replace(blind, post=unnamed)).nodes["op0"]
    assert found.kernel is None or len(found.launches) > 1


def test_without_a_wrapper_nothing_is_claimed(read: Read) -> None:
    graph = replace(read("torch-2.13.0-cpu/hflip_cl"), code=None)
    (link,) = links(graph).unlinked
    assert (link.node, link.kernel, link.launches) == ("op0", None, ())
    assert link.is_unlinked
    assert link.kernel_proof is None


def test_statements_of_the_wrapper_and_empty_nodes_need_no_kernel(read: Read) -> None:
    graph = read("torch-2.13.0-cpu-programs/unbacked")
    ran = node_runs(index_of(graph).nodes, read_steps(graph.code))
    proofs = {leaf.ir: ran[leaf.name].proof for leaf in leaves(graph) if ran[leaf.name].kernel is None}
    assert {proof.code for proof in proofs.values() if proof} <= {"no-kernel", "wrapper-statement"}
    assert all(proof and proof_text(proof).startswith("needs no kernel: ") for proof in proofs.values())
    assert "DynamicScalar" in proofs or "AssertScalar" in proofs
