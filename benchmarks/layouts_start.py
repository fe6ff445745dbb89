"""How long `probe layouts` takes to its first answer, next to `python -c "import torch"`.

    python benchmarks/layouts_start.py [--pairs N]

Target: a quarter of importing torch.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pairs import Command, compare

DUMPS = Path(__file__).parents[1] / "tests" / "fixtures" / "dumps"
RUNS = ("torch-2.13.0-cpu/hflip_cl", "torch-2.13.0-cpu/aa_separable_cl")


def main() -> None:
    """Time two runs: one small node, and an antialias with 70 KB of IR."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    pairs = parser.parse_args().pairs
    torch = Command("import torch", [sys.executable, "-c", "import torch"], Path.cwd(), {})
    for run in RUNS:
        probe = [sys.executable, "-m", "inductor_probe", "layouts", str(DUMPS / run)]
        compare(Command(f"probe layouts {run}", probe, Path.cwd(), {}), torch, pairs)


if __name__ == "__main__":
    main()
