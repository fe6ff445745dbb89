"""Do medians spread alike over processes that were forked, and over fresh ones?

    python -m benchmarks.timing.fork_spread [--processes 30] [--seconds 1] [--kernel vector] [--json FILE]

Where code and data lie changes times, so a verdict rests on several processes. Children forked from one
server inherit its addresses: each moves its memory at random and loads its kernels after that
(`place_at_random` of `harness/server.py`). Here N forked children and N fresh processes take turns; each
times a kernel and a second copy of it in quads. Compared over processes are the median ratio of the two, and
the median time of the kernel: by Brown and Forsythe's test of equal spread (1974; the F statistic of the
distances from the median, whose p is found by permutation), and by the ratio of spreads (median distance from
the median) with its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing.verdicts import Server, packed, unpacked

PERMUTATIONS = 10_000


def medians(quads: list[Any]) -> tuple[float, float]:
    """Return the median log-ratio of copy and kernel, and the logarithm of the kernel's median time."""
    series = unpacked(quads, "copy", 1.0, None)
    times = [min(quad.samples("A")) for quad in series.quads]
    return statistics.median(q.score for q in series.quads if not q.guard), math.log(statistics.median(times))


def brown_forsythe(one: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Return the F statistic of equal spread, and how often chance makes it as large.

    Of distances from each group's median: between groups over within groups. For [1, 2, 3] and [0, 2, 4] the
    distances are [1, 0, 1] and [2, 0, 2], their means 0.67 and 1.33, and F = 0.67 / 0.83 = 0.8.
    """
    distances = np.concatenate([np.abs(values - np.median(values)) for values in (one, other)])

    def statistic(values: np.ndarray) -> float:
        groups = values[: len(one)], values[len(one) :]
        between = sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups)
        within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (len(values) - 2)
        return float(between / within) if within else 0.0

    observed = statistic(distances)
    chance = [statistic(rng.permutation(distances)) >= observed for _ in range(PERMUTATIONS)]
    return observed, (1 + sum(chance)) / (1 + PERMUTATIONS)


def spread(values: np.ndarray) -> float:
    """Return the median distance from the median."""
    return float(np.median(np.abs(values - np.median(values))))


def main() -> None:
    """Time processes of both kinds in turn, and print a line for each of the two medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=30, help="of each kind")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each process")
    parser.add_argument("--kernel", choices=("vector", "scalar"), default="vector")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep medians there, and go on after those")
    options = parser.parse_args()
    kind = "triton" if options.device == "cuda" else options.kernel
    question = {"way": "quads", "case": "copy", "seconds": options.seconds, "precision": 0.0}
    text = options.json.read_text(encoding="utf-8") if options.json and options.json.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    loads, server = list[float](), Server(kind, [])
    while len(rows) < 2 * options.processes:
        number, fresh = len(rows), len(rows) % 2 == 1
        source = Server(kind, []) if fresh else server
        child = source.fork(-number if fresh else number)  # fresh ones lie where the system puts them
        rows.append([fresh, *medians(packed(child.ask(**question)["quads"]))])
        child.end()
        if fresh:
            source.end()
        loads.append(os.getloadavg()[0])
        if options.json:
            options.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    server.end()
    load = f"; load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    print(f"{options.processes} forked children of one server and as many fresh processes, in turn")
    print(f"{options.seconds:g} s each, kernel: {kind}{load}")
    print(f"{'':22}{'forked':>9}{'fresh':>9}{'forked / fresh':>16}{'95 % interval':>18}{'F':>8}{'p':>8}")
    rng = np.random.default_rng(0)
    for name, column in (("ratio of two copies", 1), ("time of a kernel", 2)):
        forked = np.array([row[column] for row in rows if not row[0]])
        alone = np.array([row[column] for row in rows if row[0]])
        draws = [[rng.choice(group, len(group)) for group in (forked, alone)] for _ in range(2000)]
        ratios = [spread(one) / max(spread(other), 1e-12) for one, other in draws]
        low, high = np.quantile(ratios, [0.025, 0.975])
        statistic, chance = brown_forsythe(forked, alone, rng)
        print(
            f"{name:22}{spread(forked):9.3%}{spread(alone):9.3%}{spread(forked) / spread(alone):16.2f}"
            f"{f'{low:.2f} to {high:.2f}':>18}{statistic:8.2f}{chance:8.3f}"
        )


if __name__ == "__main__":
    main()
