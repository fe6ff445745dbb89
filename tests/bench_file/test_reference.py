from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inductor_probe.bench_file.constants import Constants
from inductor_probe.bench_file.reference import reference_source
from tests.conftest import DUMPS
from tests.dumps import graph_in

PROGRAMS = DUMPS / "torch-2.13.0-cpu-programs"


def texts(name: str) -> tuple[str, str]:
    folder = graph_in(PROGRAMS / name)
    return (folder / "fx_graph_runnable.py").read_text(), (folder / "fx_graph_readable.py").read_text()


def run(source: str | None, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    assert source is not None
    names = {"torch": torch, "device": torch.device, "tensor": torch.tensor}
    exec(source, names)  # noqa: S102 - a fixture of this repository
    outputs: tuple[torch.Tensor, ...] = names["AtenGraph"]()(*inputs)  # type: ignore[operator]
    return outputs


def test_a_graph_that_draws_random_numbers_has_a_reference() -> None:
    found = reference_source(texts("random_numbers")[0])
    assert "inductor_random" in (found.source or "")


def test_branches_of_a_conditional_come_from_the_readable_graph() -> None:
    runnable, readable = texts("conditional")
    found = reference_source(runnable, readable)
    x = torch.ones(8, 5)
    assert torch.equal(run(found.source, x)[0], x.sin() + 1)
    assert torch.equal(run(found.source, -x)[0], x.cos() * 2)
    without = reference_source(runnable)
    assert without.source is None
    assert "not Python" in without.why_not


def test_modules_inside_modules_are_made_by_those_around_them() -> None:
    runnable = """
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.outer_0 = <lambda>(
  (inner_0): <lambda>()
)

    def forward(self, x):
        outer_0 = self.outer_0
        return (outer_0(x),)

def load_args(reader):
load_args._version = 0
"""
    readable = """class <lambda>(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        outer_0 = self.outer_0
        return (outer_0(x),)

    class outer_0(torch.nn.Module):
        def forward(self, x: "f32[2]"):
            # No stacktrace found for following nodes
            inner_0 = self.inner_0
            add: "f32[2]" = torch.ops.aten.add.Tensor(inner_0(x), 1)
            return add

        class inner_0(torch.nn.Module):
            def forward(self, x: "f32[2]"):
                mul: "f32[2]" = torch.ops.aten.mul.Tensor(x, 3)
                return mul
"""
    found = reference_source(runnable, readable)
    assert run(found.source, torch.tensor([1.0, 2.0]))[0].tolist() == [4, 7]


def test_a_graph_without_inputs_has_a_reference_though_its_load_args_is_no_python(tmp_path: Path) -> None:
    runnable, _ = texts("constants")
    head = runnable[: runnable.index("def load_args")]
    assert reference_source(head + "def load_args(reader):\nload_args._version = 0\n").source


EXPORTED = """
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.0 = Module()
        self.layers = Module(
          (0): Module()
        )
        self.register_buffer('scale', torch.randn([2], dtype=torch.float32))

    def forward(self):
        arg0_1, arg1_1, = fx_pytree.tree_flatten_spec([], self._in_spec)
        weight = getattr(self, "0").weight
        bias = getattr(self.layers, "0").bias
        scale = self.scale
        add = torch.ops.aten.add.Tensor(arg0_1, weight);  weight = None
        mul = torch.ops.aten.mul.Tensor(add, scale)
        sub = torch.ops.aten.sub.Tensor(mul, bias)
        return (torch.ops.aten.add.Tensor(sub, arg1_1),)

def load_args(reader):
    pass
"""


@pytest.mark.parametrize("device", ["", ".cuda()"])
def test_modules_with_numbers_for_names_are_flat(device: str) -> None:
    """torch.export of nn.Sequential: fx writes `self.0 = Module()`, no Python, and a tree of inputs."""
    attributes = {"0.weight": "c0", "layers.0.bias": "c1", "scale": "c2"}
    text = EXPORTED.replace("\n          (0): Module()\n        )", f"\n  (0): Module()\n){device}")
    source = reference_source(text, None, Constants(attributes=attributes)).source
    assert source is not None
    one, two, three = torch.ones(2), torch.full((2,), 2.0), torch.full((2,), 3.0)
    names = {"torch": torch, "c0": one, "c1": two, "c2": three}
    exec(source, names)  # noqa: S102 - it stands above
    (result,) = names["AtenGraph"]()(torch.zeros(2), torch.full((2,), 4.0))  # type: ignore[operator]
    assert result.tolist() == [5.0, 5.0]  # (0 + 1) * 3 - 2 + 4


def test_a_module_whose_state_is_not_in_the_dump_has_no_reference() -> None:
    text = EXPORTED.replace("\n          (0): Module()\n        )", "\n  (0): Module()\n)")
    found = reference_source(text)
    assert found.source is None
    assert "constants whose values the dump does not hold" in found.why_not
