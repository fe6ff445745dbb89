"""How times of compiling grow with a number that the user chose: an exponent with its interval.

The model is `seconds = fixed + slope * number ** exponent`: a fixed part is in most phases (modules that are
imported once, the header that all kernels include). Without it 10 s + n**2 would look like n**0.3 of 2, 4, 8.
Errors are relative to the time, and follow Student's t with 3 degrees of freedom, whose tails forgive a run
beside which another program worked (Lange, Little and Taylor, "Robust statistical modeling using the t
distribution", 1989): `fixed` (0 or more), `slope` (0 or more) and the scale of errors are found by reweighted
least squares for each exponent of a grid. The interval has all exponents whose likelihood is not much below
the best (profile likelihood: Bates and Watts, "Nonlinear regression analysis", 1988, section 6.1). Of nine
times it had the true exponent in 36 of 40 trials or more but for one (34), with errors of 3 to 5 % and a
fifth of the runs 1.5 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct

from inductor_probe.bench.intervals import t_quantile
from inductor_probe.model.compile_time import CompileTimes, GrowingPhase, Growth, GrowthVerdict, Phase

_PARAMETERS = 3
_EXPONENTS = [step / 20 for step in range(1, 101)]
"""0.05 to 5: what compiles longer than with the fifth power of its program is not waited for."""
_CONFIDENCE = 0.975
_LEAST_NOISE = 0.01
"""Of a time: measurements that agree better than that do so by chance."""
_TAILS = 3.0
_REWEIGHTINGS = 12
_LEAST_SHARE = 0.01
"""Of the compile with the largest number: a phase that has less is not shown."""
_WIDEST = 1.0
"""An interval that is wider, and has the program's exponent in it, decides nothing."""


class Exponent(Struct, frozen=True):
    """How something grows: `number ** value`, and the interval of 95 % around it."""

    value: float
    low: float
    high: float


def growth_of(runs: Sequence[tuple[int, CompileTimes]]) -> Growth:
    """Return how each phase grows, of runs with each of three numbers or more."""
    numbers = sorted({number for number, _ in runs})
    operators = [
        max(sum(one.operators or 0 for one in row.compiles) for number, row in runs if number == wanted)
        for wanted in numbers
    ]
    counts = [(number, float(operators[numbers.index(number)])) for number, _ in runs]
    exponent = exponent_of([number for number, _ in counts], [count for _, count in counts])
    program = exponent.value if exponent else 0.0
    phases = sorted(_phases(runs, numbers, program), key=lambda one: -one.seconds[-1])
    least = _LEAST_SHARE * max((one.seconds[-1] for one in phases), default=0.0)
    return Growth(
        tuple(numbers), len(runs) // len(numbers), tuple(operators), program,
        tuple(one for one in phases if one.seconds[-1] >= least),
    )  # fmt: skip


def _phases(
    runs: Sequence[tuple[int, CompileTimes]], numbers: Sequence[int], program: float
) -> Iterator[GrowingPhase]:
    rows = [(number, {one.phase: one.seconds for one in row.phases}) for number, row in runs]
    yield _growing("all", [(number, row.seconds) for number, row in runs], numbers, program, "")
    for phase in {name: None for _, times in rows for name in times}:
        times = [(number, of_run.get(phase, 0.0)) for number, of_run in rows]
        yield _growing(phase, times, numbers, program, _region(runs, numbers, phase))


def _growing(
    phase: Phase | Literal["all"],
    times: Sequence[tuple[int, float]],
    numbers: Sequence[int],
    program: float,
    region: str,
) -> GrowingPhase:
    runs = tuple(tuple(time for number, time in times if number == wanted) for wanted in numbers)
    seconds = tuple(median(of_number) for of_number in runs)
    one = exponent_of([number for number, _ in times], [time for _, time in times])
    if one is None:
        return GrowingPhase(phase, seconds, runs, "constant")
    return GrowingPhase(phase, seconds, runs, _verdict(one, program), one.value, one.low, one.high, region)


def _verdict(one: Exponent, program: float) -> GrowthVerdict:
    if one.low > program:
        return "faster"
    if one.high < program:
        return "slower"
    return "alike" if one.high - one.low <= _WIDEST else "undecided"


def _region(runs: Sequence[tuple[int, CompileTimes]], numbers: Sequence[int], phase: Phase) -> str:
    """Return the region of a phase whose time differs most between the largest and the smallest number."""
    names = {one.name for _, row in runs for one in row.regions if one.phase == phase}

    def gained(name: str) -> float:
        ends = [
            median(
                sum(one.seconds for one in row.regions if one.name == name)
                for number, row in runs
                if number == wanted
            )
            for wanted in (numbers[0], numbers[-1])
        ]
        return ends[1] - ends[0]

    return max(sorted(names), key=gained, default="")


def exponent_of(numbers: Sequence[float], times: Sequence[float]) -> Exponent | None:
    """Return with which power of a number times grow; None where they do not differ from a constant.

    Args:
        numbers: of each measurement, three different ones or more. times: seconds, above 0.
    """
    freedom = len(times) - _PARAMETERS
    if freedom < 1 or len(set(numbers)) < _PARAMETERS or min(times) <= 0:
        return None
    allowed = t_quantile(_CONFIDENCE, freedom) ** 2
    scaled = [number / max(numbers) for number in numbers]
    misfits = {power: _misfit([one**power for one in scaled], times) for power in _EXPONENTS}
    best = min(misfits, key=misfits.__getitem__)
    count = len(times)
    if _misfit([0.0] * count, times) <= misfits[best] + count * math.log1p(2 * allowed / freedom):
        return None
    least = misfits[best] + count * math.log1p(allowed / freedom)
    within = [power for power in _EXPONENTS if misfits[power] <= least]
    return Exponent(best, within[0], within[-1])


def _misfit(powers: Sequence[float], times: Sequence[float]) -> float:
    """Return minus twice the logarithm of the largest likelihood of `fixed + slope * power`."""
    weights = [1.0] * len(times)
    errors, variance = [0.0] * len(times), _LEAST_NOISE**2
    for _ in range(_REWEIGHTINGS):
        errors = _errors(powers, times, weights)
        squares = (weight * error**2 for weight, error in zip(weights, errors, strict=True))
        variance = max(sum(squares) / len(times), _LEAST_NOISE**2)
        weights = [(_TAILS + 1) / (_TAILS + error**2 / variance) for error in errors]
    tails = sum(math.log1p(error**2 / (_TAILS * variance)) for error in errors)
    return len(times) * math.log(variance) + (_TAILS + 1) * tails


def _errors(powers: Sequence[float], times: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the relative errors of the best `fixed + slope * power`, both at least 0, with weights."""
    ones = [1 / time for time in times]
    slopes = [power / time for power, time in zip(powers, times, strict=True)]

    def dot(left: Sequence[float], right: Sequence[float]) -> float:
        return sum(a * b * weight for a, b, weight in zip(left, right, weights, strict=True))

    def errors(fixed: float, slope: float) -> list[float]:
        return [fixed * one + slope * other - 1 for one, other in zip(ones, slopes, strict=True)]

    ff, fs, ss = dot(ones, ones), dot(ones, slopes), dot(slopes, slopes)
    f1, s1 = dot(ones, [1.0] * len(times)), dot(slopes, [1.0] * len(times))
    pairs = [(f1 / ff, 0.0), (0.0, s1 / ss if ss else 0.0)]
    determinant = ff * ss - fs * fs
    if determinant > 1e-12 * ff * ss:
        pairs.append(((f1 * ss - s1 * fs) / determinant, (ff * s1 - fs * f1) / determinant))
    candidates = [errors(fixed, slope) for fixed, slope in pairs if fixed >= 0 and slope >= 0]
    return min(candidates, key=lambda of_pair: dot(of_pair, of_pair))
