"""Where generated functions end because of their arguments: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import Tensors, on_gpu


def added(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return each tensor and 1: a loop nest each, as all have another size."""
    return [tensor + 1 for tensor in tensors]


def added_as_list(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return the same by one operator on a list."""
    return list(torch._foreach_add(tensors, 1))


def sizes(count: int) -> Tensors:
    """Return tensors of different sizes."""
    return tuple(torch.zeros(2 + number) for number in range(count))


PROGRAMS = {
    "function_arguments": Program(
        code="function-arguments",
        function=added,
        inputs=lambda: sizes(260),
        operands={"arguments": 502, "limit": 500},
        settings={"cpp_wrapper": False},
        flipped_inputs=lambda: sizes(4),
        turned=None,
    ),
    "combo_arguments": Program(
        code="combo-arguments",
        function=added_as_list,
        inputs=on_gpu(lambda: sizes(12)),
        operands={"arguments": 22, "limit": 20},
        settings={"combo_kernel_max_num_args": 20},
        flip={"combo_kernel_max_num_args": 250},
        turned=None,
        device="cuda",
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
