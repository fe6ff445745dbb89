"""Whether CUDA graphs replay a graph: a program for each cause, with its flip.

What torch decides on a CPU stands there, too, where `triton.cudagraphs` asks for it.
"""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, floats

_ASKED = {"triton.cudagraphs": True}
_WHOLE = {**_ASKED, "graph_partition": False}
_STATIC = {"triton.cudagraph_skip_dynamic_graphs": True}


@torch.library.custom_op("proving_ground::waits", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def waits(values: torch.Tensor) -> torch.Tensor:
    """Return twice the values, in an operator that says of itself that it cannot be captured."""
    return values * 2


@waits.register_fake
def _(values: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values)


def waiting(values: torch.Tensor) -> torch.Tensor:
    """Return what an operator that cannot be captured makes, and more."""
    return waits(values + 1) + 1


def put_where(values: torch.Tensor) -> torch.Tensor:
    """Return the values with some replaced, by a mask."""
    return values.index_put((values.cumsum(0) < 8,), torch.zeros(7)) + 1


def add_in_place(values: torch.Tensor) -> torch.Tensor:
    """Change the input."""
    return values.add_(1)


def cuda(*size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of ones on a GPU."""
    return (torch.ones(size, device="cuda"),)


PROGRAMS = {
    "on_a_cpu": Program(
        code="no-gpu-device",
        function=add_one,
        inputs=lambda: floats(64),
        settings=_ASKED,
        flip={"triton.cudagraphs": False},
    ),
    "cpu_node": Program(
        code="cpu-device",
        function=add_one,
        inputs=lambda: floats(65),
        operands={"node": "arg0_1"},
        settings=_WHOLE,
        flip={"graph_partition": True},
        turned=("skipped", "no-gpu-device"),
    ),
    "symbolic": Program(
        code="dynamic-shapes",
        function=add_one,
        inputs=lambda: floats(66),
        dynamic=True,
        flipped_dynamic=True,
        settings={**_WHOLE, **_STATIC},
        flip={"triton.cudagraph_skip_dynamic_graphs": False},
        turned=("skipped", "cpu-device"),
    ),
    "unsafe_operator": Program(
        code="incompatible-operator",
        function=waiting,
        inputs=lambda: floats(67),
        operands={"operator": "proving_ground.waits.default"},
        settings=_WHOLE,
        flipped_function=add_one,
        turned=("skipped", "cpu-device"),
    ),
    "mask": Program(
        code="incompatible-lowering",
        function=put_where,
        inputs=lambda: floats(68),
        settings=_WHOLE,
        flipped_function=add_one,
        turned=("skipped", "cpu-device"),
    ),
    "off": Program(
        code="cudagraphs-off",
        function=add_one,
        inputs=lambda: cuda(64),
        flip=_ASKED,
        turned=("captured", "whole-graph"),
        device="cuda",
    ),
    "whole": Program(
        code="whole-graph",
        function=add_one,
        inputs=lambda: cuda(65),
        settings=_ASKED,
        flipped_function=waiting,
        turned=("partitioned", "partitions"),
        device="cuda",
    ),
    "parts": Program(
        code="partitions",
        function=waiting,
        inputs=lambda: cuda(66),
        operands={"partitions": 2},
        settings=_ASKED,
        flip={"graph_partition": False},
        turned=("skipped", "incompatible-operator"),
        device="cuda",
    ),
    "all_symbolic": Program(
        code="no-partition",
        function=add_one,
        inputs=lambda: cuda(67),
        dynamic=True,
        flipped_dynamic=True,
        settings={**_ASKED, **_STATIC},
        flip={"triton.cudagraph_skip_dynamic_graphs": False},
        turned=("captured", "whole-graph"),
        device="cuda",
    ),
    "in_place": Program(
        code="mutated-inputs",
        function=add_in_place,
        inputs=lambda: cuda(68),
        settings={**_ASKED, "triton.cudagraph_support_input_mutation": False},
        flip={"triton.cudagraph_support_input_mutation": True},
        turned=("at-run-time", "moving-inputs"),
        device="cuda",
    ),
    "in_place_of_a_caller": Program(
        code="moving-inputs",
        function=add_in_place,
        inputs=lambda: cuda(69),
        operands={"inputs": ("arg0_1",)},
        settings=_ASKED,
        flipped_function=add_one,
        turned=("captured", "whole-graph"),
        device="cuda",
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
