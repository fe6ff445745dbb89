"""`probe accuracy` of a script for a GPU, on a machine without: what is planted in Triton's code is found."""

from __future__ import annotations

import importlib.util

import pytest

import inductor_probe as ip
from inductor_probe.report.terminal import to_text

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(25),
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed"),
]
SCRIPT = """
import torch
from torch._inductor.codegen.triton import TritonOverrides

TritonOverrides.sin = staticmethod(lambda x: f"tl_math.cos({x})")
torch.manual_seed(0)


def waves(x, w):
    inner = (x @ w).sin()
    return inner.exp().sum(0)


def right(x):
    return x.softmax(-1).flip(0).argmax(-1), x.cumsum(0)


class Trained(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):
        return self.first(x).cos()


x = torch.randn(16, 32, device="cuda")
torch.compile(waves)(x, torch.randn(32, 40, device="cuda"))
torch.compile(right)(x)
torch.compile(Trained().cuda())(torch.randn(5, 8, device="cuda")).square().sum().backward()
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> ip.Accuracy:
    folder = tmp_path_factory.mktemp("interpreted")
    script = folder / "planted.py"
    script.write_text(SCRIPT)
    return ip.accuracy(ip.dump(script, target="h100", out=folder), tries=False)


def test_a_fault_of_triton_code_is_found_without_a_gpu(answer: ip.Accuracy) -> None:
    found = [one for graph in answer.record.graphs for one in graph.wrong]
    assert [(one.layer, one.operator) for one in found] == [("codegen", "aten.sin")] * 2
    lines = [one.user_line.text for one in found if one.user_line is not None]
    assert lines == ["inner = (x @ w).sin()", "return self.first(x).cos()"]
    assert all(one.kernel.startswith("triton_") for one in found)


def test_what_is_right_on_a_simulated_gpu_is_right(answer: ip.Accuracy) -> None:
    assert [call.verdict for call in answer.record.calls] == ["wrong", "right", "wrong"]


def test_it_says_what_ran_in_the_place_of_the_gpu(answer: ip.Accuracy) -> None:
    assert answer.record.simulated == "NVIDIA H100 80GB HBM3"
    text = " ".join(to_text(answer.document, width=120).split())
    assert "was simulated: triton's interpreter ran its kernels" in text
