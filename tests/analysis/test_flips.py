"""Which decisions of a graph can be turned by name, and what the names mean there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.causes.candidates import candidates_of
from inductor_probe.analysis.flips import flips_of, resolved
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import links
from inductor_probe.capture.flips.turns import Turn, _nodes_called
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import DECISION_KINDS, Decision, Decisions
from inductor_probe.model.flip import Flip, parse_flip
from inductor_probe.model.manifest import BufferOrigin, GraphRecord
from tests.builders import decision
from tests.dumps import graph_in, read_at

ANTIALIAS = read_at(graph_in("torch-2.13.0-cpu/aa_separable_cl"))


def graph_with(*decisions: Decision) -> CompiledGraph:
    return replace(ANTIALIAS, read_decisions=lambda: Decisions("2.13.0", DECISION_KINDS, decisions))


IMAGE = {"size": ("1", "3", "4", "4")}
ON_CPU, ON_CUDA = ({"device": device} for device in ("cpu", "cuda"))
BY_COST = {
    "vectorise op0": decision("vectorisation", "op0 op1", "scalar", "short-inner-range"),
    "scalar op0": decision("vectorisation", "op0 op1", "vectorised", "contiguous-only-loop"),
    "threads op0=1": decision("threads", "op0", "parallel", "loops-divided"),
    "no-fuse op0_op1,op2": decision("fusion", "op0 op1, op2", "fused", "producer-and-consumer"),
    "fuse op0,op1": decision("fusion", "op0, op1", "refused", "few-shared-bytes"),
    "inline buf0": decision("realization", "buf0", "realised", "heavy-operations", subject_type="buffer"),
    "realize exp": decision("realization", "exp", "inlined", "cheap", subject_type="fx"),
    "layout buf0=channels_last": decision(
        "layout", "buf0", "contiguous", "reads", subject_type="buffer", operands=IMAGE
    ),
    "looped op0": decision("reduction", "op0", "persistent", "elements-fit-a-tile"),
    "persistent op0": decision("reduction", "op0", "looped", "elements-exceed-a-tile"),
    "split buf0=1": decision(
        "reduction", "buf0", "split", "work-for-processors", subject_type="buffer", operands=ON_CUDA
    ),
    "index-dtype op0=int64": decision("index-width", "op0", "int32", "sizes-fit-int32"),
}
NOT_BY_COST = (
    decision("vectorisation", "op0", "scalar", "dtype-not-vectorisable"),
    decision("vectorisation", "op0", "scalar", "no-loops"),
    decision("threads", "op0", "one-thread", "little-work"),
    decision("fusion", "op0, op1", "refused", "cycle"),
    decision("fusion", "op0, op1", "refused", "in-place-write"),
    decision("fusion", "op0, op1", "fused", "common-buffer", speculative=True),
    decision("realization", "buf0", "realised", "output", subject_type="buffer"),
    decision("realization", "buf0", "realised", "reduction", subject_type="buffer"),
    decision("layout", "buf0", "contiguous", "output", subject_type="buffer", operands=IMAGE),
    decision("layout", "buf0", "contiguous", "reads", subject_type="buffer", operands={"size": ("3", "4")}),
    decision("reduction", "buf0", "INNER", "contiguous-reads", subject_type="buffer", operands=ON_CPU),
    decision("index-width", "op0", "int64", "numel-exceeds-int32"),
    decision("vectorisation", "op0", "scalar", "turned"),
)


@pytest.mark.parametrize("text", BY_COST)
def test_what_torch_chooses_by_cost_has_a_flip(text: str) -> None:
    assert [str(flip) for flip in flips_of(graph_with(BY_COST[text]))] == [text]


@pytest.mark.parametrize("one", NOT_BY_COST, ids=lambda one: f"{one.kind}-{one.cause}")
def test_what_torch_must_do_has_none(one: Decision) -> None:
    assert flips_of(graph_with(one)) == ()


def test_threads_are_no_candidate_where_one_thread_is_timed() -> None:
    graph = graph_with(BY_COST["threads op0=1"], replace(BY_COST["scalar op0"], number=2))
    names = {threads: [str(one) for one in candidates_of([graph], threads)] for threads in (None, 1, 2)}
    assert names == {1: ["scalar op0"], 2: ["scalar op0", "threads op0=1"], None: names[2]}


def test_one_thread_for_an_atomic_addition_is_no_candidate_where_one_thread_is_timed() -> None:
    """It is offered for a loop without vectors, and one thread adds without atomics: 20 times as fast."""
    graph = graph_with(decision("vectorisation", "op0", "scalar", "atomic-access"))
    names = {threads: [str(one) for one in candidates_of([graph], threads)] for threads in (None, 1, 2)}
    assert names == {1: [], 2: ["inductor.cpp.threads=1"], None: names[2]}


def test_a_name_is_kept_with_the_value_that_it_has_in_this_dump() -> None:
    origins = (
        BufferOrigin("buf0", "mul", ("mul", "sub")),
        BufferOrigin("buf1", "var", ("var",)),
        BufferOrigin("buf2", "var", ("var",)),
    )
    graph = replace(
        graph_with(), record=GraphRecord("model__0_inference_0.0", "0/0", "first", origins=origins)
    )
    assert resolved(graph, parse_flip("inline buf0")) == Flip("inline", ("buf0",), origins=(("mul",),))
    assert resolved(graph, parse_flip("inline buf1")) == Flip("inline", ("buf1",))  # var is two buffers


def kernels_of(graph: CompiledGraph) -> list[tuple[str, str]]:
    """Kernels with the names of their nodes."""
    of = {kernel: links(graph).of_kernel(kernel) for kernel in index_of(graph).kernels}
    return [(name, " ".join(dict.fromkeys(link.node for link in linked))) for name, linked in of.items()]


def test_a_kernel_of_one_decision_is_its_nodes() -> None:
    kernel, nodes = next(of for of in kernels_of(ANTIALIAS) if len(of[1].split()) > 1)
    one = graph_with(decision("vectorisation", nodes, "vectorised", "contiguous-only-loop"))
    assert resolved(one, parse_flip(f"scalar {kernel}")).subjects == (nodes.split()[0],)
    with pytest.raises(ProbeError, match=r"nodes: --scalar cpp_.* is about one"):
        resolved(graph_with(), parse_flip(f"scalar {kernel}"))


def test_an_unknown_subject_has_near_names() -> None:
    with pytest.raises(NotFoundError, match="has no opp1 for --scalar opp1") as raised:
        resolved(graph_with(), parse_flip("scalar opp1"))
    assert "op1" in str(raised.value.hint)


@dataclass
class Node:
    name: str


@dataclass
class Operation:
    """What a flip asks of an operation of torch."""

    name: str
    buffer: str
    value: str

    def get_operation_name(self) -> str:
        return self.name

    def get_outputs(self) -> list[Buffer]:
        return [Buffer(self.buffer)]

    def get_origin_node(self) -> Node:
        return Node(self.value)


@dataclass
class Buffer:
    name: str

    def get_name(self) -> str:
        return self.name


INLINED = [Operation("op0", "buf0", "sum_1"), Operation("op1", "buf1", "sum_2")]
"""What is left of op0 (exp), op1 (sum_1) and op2 (sum_2) when exp is inlined."""


def test_a_name_means_what_it_did_where_others_were_numbered_anew() -> None:
    assert [*_nodes_called("op1", (), INLINED)] == ["op1"]
    assert [*_nodes_called("op1", ("sum_1",), INLINED)] == ["op0"]
    assert [*_nodes_called("buf2", ("sum_2",), INLINED)] == ["op1"]
    assert [*_nodes_called("op0", ("exp",), INLINED)] == []
    assert [*_nodes_called("sum_2", (), INLINED)] == ["op1"]


def test_a_buffer_that_is_to_be_made_is_known_by_its_value() -> None:
    known = Turn(Flip("inline", ("buf1",), origins=(("sum_1",),)))
    assert known.means(Node("sum_1"), "buf0")
    assert not known.means(Node("sum_2"), "buf1")
    by_name = Turn(Flip("inline", ("buf1",)))
    assert by_name.means(Node("sum_2"), "buf1")
    by_name.value = "sum_2"
    assert not by_name.means(Node("relu"), "buf1")
