"""How long `probe bench-kernel` takes beside its budget, next to `python -c "import torch"`.

    python -m benchmarks.cost.bench_kernel_start [--pairs N] [--device cuda]

A small graph is dumped, and all commands run in turn: importing torch, bench-kernel with a budget of 1 s and
of 10 s, and with 3 and with 9 processes on the same budget. Targets: on a CPU, 6 times importing torch
beside the budget; on an H200, 30 s beside the budget with 3 processes; a further process at most a fifth of
the first.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cost.pairs import Command, seconds

SCRIPT = """
import torch
image = torch.arange(3 * 20 * 24, dtype=torch.uint8, device="DEVICE").reshape(1, 3, 20, 24)
torch.compile(lambda x: x.flip(-1))(image)
"""
FEW, MANY = 3, 9


def main() -> None:
    """Run all commands in rounds, after one that does not count; print medians of each round's ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    rounds = options.pairs
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "flip.py").write_text(SCRIPT.replace("DEVICE", options.device))
        probe = [sys.executable, "-m", "inductor_probe"]
        subprocess.run([*probe, "dump", "flip.py"], cwd=folder, check=True, capture_output=True)

        def bench(*options: str) -> Command:
            command = [*probe, "bench-kernel", *options]
            return Command(" ".join(["bench-kernel", *options]), command, Path(folder), {})

        commands = [
            Command("import torch", [sys.executable, "-c", "import torch"], Path(folder), {}),
            bench("--budget", "1s"),
            bench("--budget", "10s"),
            bench("--budget", "1s", "--processes", str(FEW)),
            bench("--budget", "1s", "--processes", str(MANY)),
        ]
        timed = [[seconds(command) for command in commands] for _ in range(rounds + 1)][1:]
    for command, column in zip(commands, zip(*timed, strict=True), strict=True):
        show(command.name, column, "s")
    show("(1 s - budget) / import", [(short - 1) / torch for torch, short, *_ in timed])
    show("(10 s - budget) / import", [(long - 10) / torch for torch, _, long, *_ in timed])
    show(f"{FEW} processes - budget", [few - 1 for *_, few, _ in timed], "s")
    further = [(many - few) / (MANY - FEW) for *_, few, many in timed]
    show("a further process", further, "s")
    first = [few - 1 - (FEW - 1) * each for (*_, few, _), each in zip(timed, further, strict=True)]
    show("further / first", [each / one for each, one in zip(further, first, strict=True)])


def show(name: str, values: Sequence[float], unit: str = "") -> None:
    """Print the median of `values`, and their range."""
    print(f"{name}: {statistics.median(values):.3f} {unit} ({min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
