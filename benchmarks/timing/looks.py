"""How often does `whatif --try-all` drop what is faster, or believe what is not? Simulated, without a clock.

    python -m benchmarks.timing.looks [TRIALS]

For candidates of a known truth: what is known of them after at most three looks (`bench/looks.py`). A gain of
the margin (0.990) may be dropped in 2.5 % of the trials, larger ones hardly ever. A candidate without such a
gain (0.995 and above) may be called one so seldom that among 200 of them one is in 5 % of the sessions.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from inductor_probe.bench.looks import GROWTH, judge
from tests.bench.simulated import series

MARGIN, LOOKS, CANDIDATES = 0.01, 3, 200
NOISE: dict[str, Mapping[str, Any]] = {
    "quiet": {"between": 0.001, "noise": 0.005},
    "busy": {"between": 0.004, "noise": 0.02, "heavy": True},
}
TRUTHS = (0.8, 0.95, 0.98, 1 / (1 + MARGIN), 0.995, 1.0, 1.005, 1.1)


def main(trials: int) -> None:
    """Print for each truth how many trials ended how."""
    for machine, noise in NOISE.items():
        for truth in TRUTHS:
            standings = Counter(_standing(truth, seed, noise) for seed in range(trials))
            print(f"{machine}  {truth:.3f}  {dict(standings.most_common())}", flush=True)


def _standing(truth: float, seed: int, noise: Mapping[str, Any]) -> str:
    standing = "open"
    for look in range(1, LOOKS + 1):
        quads, processes = 8 * GROWTH ** (look - 1), 3 if look == 1 else 9
        looked = series(truth, processes=processes, quads=quads, seed=31 * seed + look, **noise)
        standing = judge(looked, look, MARGIN, CANDIDATES).standing
        if standing != "open":
            break
    return standing


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
