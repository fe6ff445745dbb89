"""The processor time that a reading verb takes to its answer, next to that of `python -c "import torch"`.

    python -m benchmarks.cost.verb_start [--pairs N]

Target: a tenth of importing torch on a small graph.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.cost.pairs import Command, compare, cpu_seconds

DUMPS = Path(__file__).parents[2] / "tests" / "fixtures" / "dumps"
SMALL, LARGER = "torch-2.13.0-cpu/hflip_cl", "torch-2.13.0-cpu/aa_separable_cl"
QUESTIONS = (
    *((verb, SMALL) for verb in ("layouts", "nodes", "kernels", "show op0", "why op0", "fusion op0")),
    ("layouts", LARGER),
)


def main() -> None:
    """Ask several verbs about one small node, and one about an antialias with 70 KB of IR."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    pairs = parser.parse_args().pairs
    torch = Command("import torch", [sys.executable, "-c", "import torch"], Path.cwd(), {})
    for question, run in QUESTIONS:
        probe = [sys.executable, "-m", "inductor_probe", *question.split(), str(DUMPS / run)]
        compare(Command(f"probe {question} {run}", probe, Path.cwd(), {}), torch, pairs, cpu_seconds)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
