"""How often does the interval hold the truth, over simulated processes? Ours, and a hierarchical bootstrap's.

    python -m benchmarks.timing.coverage [--trials 400] [--comparisons 1]

Medians of processes differ by a normal deviation, quads within them scatter by 0.5 % with heavy tails. Three
processes, and up to nine where they differ. Nothing is timed.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from inductor_probe.bench.stop_rule import wants_more
from inductor_probe.bench.verdict import MARGIN, conclude
from inductor_probe.harness.budget import MORE_PROCESSES
from inductor_probe.model.timing import Quad, Series

DEVIATIONS = (0.0, 0.001, 0.002, 0.004, 0.01, 0.03, 0.07)
QUADS = 25
SCATTER = 0.005
RESAMPLES = 400


def simulate(truth: float, deviation: float, processes: int, rng: np.random.Generator) -> list[Series]:
    """Return quads of so many processes around a log-ratio; a quarter are guards around 0."""
    found = []
    for _ in range(processes):
        place = rng.normal(truth, deviation)
        quads = []
        for number in range(QUADS * 4 // 3):
            guard = number % 4 == 3
            score = (0.0 if guard else place) + SCATTER * rng.standard_t(3)
            slower = math.exp(score)
            quads.append(Quad("ABBA", (1.0, slower, slower, 1.0), guard, None))
        found.append(Series("a", "b", tuple(quads), 0.1))
    return found


def hierarchical(series: list[Series], rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % interval of the median of quads, over draws of processes and of quads in them."""
    scores = np.array([[quad.score for quad in each.quads if not quad.guard] for each in series])
    count, length = scores.shape
    drawn = scores[rng.integers(0, count, (RESAMPLES, count))]
    picks = rng.integers(0, length, drawn.shape)
    medians = np.median(np.take_along_axis(drawn, picks, axis=2).reshape(RESAMPLES, -1), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Print one row for each deviation between processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--comparisons", type=int, default=1, help="made at once")
    options = parser.parse_args()
    rng, edge, total = np.random.default_rng(0), math.log1p(MARGIN), options.trials
    print(f"{total} trials; share of intervals with the truth, of false verdicts, of verdicts at +2 %")
    print("between   bootstrap: holds  false    Student: holds  false   same   +2 % slower  processes")
    for deviation in DEVIATIONS:
        held, false, same, slower, asked, naive_held, naive_false = (0,) * 7
        for truth in (0.0, math.log1p(0.02)):
            for _ in range(total):
                series = simulate(truth, deviation, 3, rng)
                found = conclude(series, MARGIN, options.comparisons)
                while wants_more(found, MARGIN) and len(series) < MORE_PROCESSES:
                    series += simulate(truth, deviation, 1, rng)
                    found = conclude(series, MARGIN, options.comparisons)
                low, high = hierarchical(series, rng)
                asked += len(series)
                held += math.log(found.low) <= truth <= math.log(found.high)
                naive_held += low <= truth <= high
                if truth:
                    slower += found.verdict == "SLOWER"
                else:
                    false += found.verdict in ("FASTER", "SLOWER")
                    same += found.verdict == "SAME"
                    naive_false += low > edge or high < -edge
        print(
            f"{deviation:7.1%} {naive_held / total / 2:17.1%} {naive_false / total:6.1%} "
            f"{held / total / 2:17.1%} {false / total:6.1%} {same / total:6.1%} {slower / total:13.1%}"
            f"{asked / total / 2:11.2f}"
        )


if __name__ == "__main__":
    main()
