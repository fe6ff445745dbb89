"""A function as an FX graph, compiled by inductor, and the memory formats of what it calls."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import inductor_probe as ip
from inductor_probe.errors import ProbeError

IMAGE = torch.rand(1, 3, 8, 8).contiguous(memory_format=torch.channels_last)
WEIGHT = torch.rand(4, 3, 3, 3)


def mirrored(image: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.conv2d(image.flip(-1), weight) + 1


def by_index(self: Tensor, dims: list[int]) -> Tensor:
    (dim,) = dims
    return self.index_select(dim % self.dim(), torch.arange(self.size(dim) - 1, -1, -1))


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's imports of torch.jit


def called(graph: torch.fx.GraphModule) -> list[str]:
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_a_graph_has_the_operators_of_the_table() -> None:
    plain = ip.trace_op(mirrored, IMAGE, WEIGHT, inductor_table=False)
    assert called(plain)[0] == "aten.flip.default"
    assert "prims.rev.default" in called(ip.trace_op(mirrored, IMAGE, WEIGHT))
    mine = ip.trace_op(mirrored, IMAGE, WEIGHT, decompositions={"aten.flip.default": by_index})
    assert "prims.iota.default" in called(mine)
    assert "prims.rev.default" not in called(mine)


@pytest.mark.compiles
def test_a_graph_is_compiled_as_it_stands() -> None:
    graph = ip.trace_op(mirrored, IMAGE, WEIGHT, decompositions={"aten.flip.default": by_index})
    before = called(graph)
    compiled = ip.compile_graph(graph, IMAGE, WEIGHT)
    expected = mirrored(IMAGE, WEIGHT)
    torch.testing.assert_close(compiled(IMAGE, WEIGHT), expected)
    assert compiled(IMAGE, WEIGHT).stride() == expected.stride()
    assert called(graph) == before
    with pytest.raises(ProbeError, match="the graph takes 2 tensors"):
        ip.compile_graph(graph, IMAGE)


def test_memory_formats_are_asserted_at_an_operator() -> None:
    graph = ip.trace_op(mirrored, IMAGE, WEIGHT, decompositions={"aten.flip.default": by_index})
    with ip.OpRecorder() as seen:
        graph(IMAGE, WEIGHT)
    seen.assert_memory_format("aten.convolution.default", "channels_last")
    with pytest.raises(
        AssertionError, match=r"output 0 of call 0 of aten.index is not channels_last: float32"
    ):
        seen.assert_memory_format("aten.index", "channels_last")
    with pytest.raises(AssertionError, match="input 0 of call 0"):
        seen.assert_memory_format("aten.clone", "channels_last", of="inputs")


@pytest.mark.parametrize(
    ("name", "memory_format", "sentence"),
    [
        ("aten.flop", "channels_last", "aten.flop was not called"),
        ("aten.flip", "channels_lost", "there is no memory format channels_lost"),
        ("aten.flip", "channels_last_3d", "no tensor with 5 dimensions is among the outputs"),
    ],
)
def test_what_cannot_be_asserted_is_a_sentence(name: str, memory_format: str, sentence: str) -> None:
    with ip.OpRecorder() as seen:
        IMAGE.flip(-1)
    with pytest.raises(ProbeError, match=sentence):
        seen.assert_memory_format(name, memory_format)
