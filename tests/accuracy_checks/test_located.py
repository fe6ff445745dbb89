"""`probe accuracy` where memory is written more than once, and where a joint graph is divided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import inductor_probe as ip

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.compiles, pytest.mark.takes(25), pytest.mark.usefixtures("warm")]
WRITTEN_TWICE = """
import torch
import torch.nn.functional as F
from torch._inductor import decomposition, lowering

aten = torch.ops.aten
torch.manual_seed(0)
backward = decomposition.decompositions[aten.hardswish_backward.default]
decomposition.decompositions[aten.hardswish_backward.default] = lambda grad, x: backward(grad, x) * 1.02
put = lowering.index_put_impl_
lowering.index_put_impl_ = lambda self, indices, values, accumulate, *rest, **options: put(
    self, indices, values, False, *rest, **options
)


class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 4, 3)

    def forward(self, x):
        h = F.hardswish(self.convolution(x))
        return F.max_pool2d(h, 2).flatten(1)


def histogram(tokens, weight):
    bins = torch.zeros(10)
    bins.index_put_((tokens,), weight, accumulate=True)
    return bins / bins.sum()


torch.compile(Pooled())(torch.randn(3, 1, 8, 8)).sum().backward()
torch.compile(histogram)(torch.tensor([1, 2, 2, 5, 5, 5, 9, 0]), torch.rand(8))
"""
DIVIDED = """
import torch
from torch._inductor import compile_fx

torch.manual_seed(0)
divide = compile_fx.min_cut_rematerialization_partition


def exchanged(graph, inputs, **options):
    forward, backward = divide(graph, inputs, **options)
    saved = [node for node in backward.graph.nodes if node.name in ("addmm", "addmm_1")]
    users = [list(node.users) for node in saved]
    for place, mine in enumerate(users):
        for user in mine:
            user.replace_input_with(saved[place], saved[1 - place])
    backward.recompile()
    return forward, backward


compile_fx.min_cut_rematerialization_partition = exchanged


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(8, 16)

    def forward(self, x):
        return torch.sigmoid(self.a(x)) * self.b(x)


torch.compile(Gated())(torch.randn(5, 8)).sum().backward()
"""


def found(text: str, folder: Path) -> list[tuple[str, str, str]]:
    """Return the layer, operator and line of all that is named in a script."""
    script = folder / "planted.py"
    script.write_text(text)
    record = ip.accuracy(ip.dump(script, out=folder), tries=False).record
    wrong = [*record.wrong, *(one for graph in record.graphs for one in graph.wrong)]
    return [(one.layer, one.operator, one.user_line.text if one.user_line else "") for one in wrong]


def test_memory_that_is_zeroed_and_added_to_is_judged_once(tmp_path: Path) -> None:
    """The zeros of a max pool's backward were called wrong, and what read them after."""
    assert found(WRITTEN_TWICE, tmp_path) == [
        (
            "decomposition",
            "aten.hardswish_backward",
            "h = F.hardswish(self.convolution(x))",
        ),
        ("lowering", "aten.index_put", "bins.index_put_((tokens,), weight, accumulate=True)"),
    ]


def test_a_joint_graph_that_is_divided_wrongly_is_told_from_code(tmp_path: Path) -> None:
    """A value that is not stored, as all that reads it is in its kernel, was called wrong code."""
    [(layer, operator, line)] = found(DIVIDED, tmp_path)
    assert (layer, operator) == ("joint-graph", "aten.sigmoid")
    assert line == "return torch.sigmoid(self.a(x)) * self.b(x)"
