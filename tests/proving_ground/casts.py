"""Whether a value is rounded to half precision and back: a program for the cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats


def residue(values: torch.Tensor) -> torch.Tensor:
    """Return what rounding to half precision takes from values: zeros, where they are rounded already."""
    return values - values.half().float()


PROGRAMS = {
    "cast_back": Program(
        code="cast-back",
        function=residue,
        inputs=lambda: floats(4096),
        operands={"dtype": "float16", "rounds": "op0"},
        flip={"emulate_precision_casts": True},
        turned=None,
        since="2.12",
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
