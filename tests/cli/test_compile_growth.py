"""How compiling grows: exponents of made times with noise, and of a script that is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import inductor_probe as ip
from inductor_probe.measuring.growth import exponent_of, growth_of
from inductor_probe.model.compile_time import Compile, CompileTimes, PhaseTime, RegionTime

NUMBERS = [2, 4, 8] * 3
SCRIPT = """
import sys
import torch

def chained(x):
    for step in range(int(sys.argv[-1])):
        x = (x * step).sin()
    return x

torch.compile(chained, backend="aot_eager")(torch.ones(4))
"""


@pytest.mark.parametrize(("fixed", "slope", "power"), [(3, 1, 1), (3, 0.1, 2), (0, 1, 1.5), (0.05, 0.07, 1)])
def test_the_interval_has_the_exponent_of_times_with_noise_and_a_run_that_was_disturbed(
    fixed: float, slope: float, power: float
) -> None:
    within = 0
    for seed in range(20):
        noise = np.random.default_rng(seed)
        times = [(fixed + slope * number**power) * (1 + noise.normal(0, 0.03)) for number in NUMBERS]
        times[seed % 9] *= 1.5
        one = exponent_of(NUMBERS, times)
        within += one is not None and one.low <= power <= one.high
    assert within >= 17


def test_times_that_do_not_grow_have_no_exponent() -> None:
    noise = np.random.default_rng(1)
    times = [5 * (1 + noise.normal(0, 0.05)) for _ in NUMBERS]
    assert exponent_of(NUMBERS, times) is None
    assert exponent_of([2, 4], [1.0, 2.0]) is None
    assert exponent_of([2, 4, 4, 4], [1.0, 2.0, 2.0, 2.0]) is None


def test_a_phase_that_grows_faster_than_the_program_is_named_with_its_region() -> None:
    def run(number: int) -> CompileTimes:
        scheduling, lowering = 0.02 * number**2, 0.3 + 0.1 * number
        whole = Compile("0/0", "f", "net.py:3", scheduling + lowering, (), operators=3 * number + 1)
        return CompileTimes(
            "net.py", False, whole.seconds, (whole,),
            (PhaseTime("scheduling", scheduling), PhaseTime("lowering", lowering)),
            (
                RegionTime("Scheduler.fused_nodes", "scheduling", scheduling * 0.9, 1, 1),
                RegionTime("Scheduler.__init__", "scheduling", scheduling * 0.1, 1, 1),
            ),
        )  # fmt: skip

    growth = growth_of([(number, run(number)) for number in NUMBERS])
    assert (growth.numbers, growth.operators, growth.exponent) == ((2, 4, 8), (7, 13, 25), 1.0)
    by_phase = {one.phase: one for one in growth.phases}
    assert by_phase["scheduling"].exponent == pytest.approx(2.0)
    assert by_phase["scheduling"].region == "Scheduler.fused_nodes"
    verdicts = {phase: one.verdict for phase, one in by_phase.items()}
    assert verdicts == {"all": "faster", "scheduling": "faster", "lowering": "alike"}


@pytest.mark.compiles
@pytest.mark.takes(60)
def test_a_script_is_run_with_each_number_and_its_graph_is_counted(tmp_path: Path) -> None:
    (tmp_path / "chain.py").write_text(SCRIPT)
    rows = ip.compile_time(tmp_path / "chain.py", args=["--layers", "{n}"], grow=[5, 20, 80])
    growth = rows[-1].growth
    assert [one.growth is None for one in rows] == [True, True, False]
    assert growth is not None
    assert (growth.numbers, growth.operators, growth.exponent) == ((5, 20, 80), (10, 40, 160), 1.0)
    assert [len(runs) for runs in growth.phases[0].runs] == [3, 3, 3]
    assert {"all", "dynamo"} <= {one.phase for one in growth.phases}
    assert "grows as" in str(rows)
