"""How long `probe bench-kernel` takes on a training graph of a hundred kernels, stage by stage.

    python -m benchmarks.cost.large_graph [--device cuda] [--blocks N] [--budget SECONDS]

A network whose blocks have sizes of their own is compiled for training, so that each block has kernels of its
own, and `probe dump` keeps its graphs. The graph with most kernels, the backward, is then checked and timed
as `probe bench-kernel` does it: all variants are checked, the ten longest kernels are timed. Printed are
seconds of each stage, by what the command says is done next. Target on an H200: two minutes for 100 kernels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import inductor_probe as ip
from inductor_probe.model.bench import BenchResult, BenchSettings

SCRIPT = """
import sys
import torch
from torch import nn
from torch.nn import functional

device, blocks = sys.argv[1], int(sys.argv[2])
ROWS, WIDTH, STEP = (2048, 256, 16) if device == "cuda" else (64, 32, 16)
ACTIVATIONS = functional.gelu, functional.silu, torch.tanh, torch.sigmoid, functional.softplus


class Block(nn.Module):
    def __init__(self, number):
        super().__init__()
        width, following = WIDTH + number * STEP, WIDTH + (number + 1) * STEP
        self.number, self.norm = number, nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, following)

    def forward(self, x):
        hidden = ACTIVATIONS[self.number % len(ACTIVATIONS)](self.up(self.norm(x)))
        return self.down(hidden * (1 + 0.1 * self.number)).softmax(-1)


torch.manual_seed(0)
network = nn.Sequential(*map(Block, range(blocks))).to(device)
torch.compile(network)(torch.randn(ROWS, WIDTH, device=device)).square().mean().backward()
"""


class Stages:
    """Seconds of each stage: a stage lasts until the next one is named."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._begin = "writing", time.perf_counter()

    def enter(self, text: str) -> None:
        """Begin a stage: `checking k_v2` is one with `checking k2_v2`, `measuring 1: k alone` is not."""
        now, words = time.perf_counter(), text.split()
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._begin
        self._name, self._begin = words[0], now
        if (
            words[0] == "measuring" and words[1].strip(":").isdigit()
        ):  # `measuring 1: profiling`, `1: k alone`
            phase = words[2] if words[1].endswith(":") else "starting"
            known = ("starting", "loading", "profiling", "recording", "overheads")
            self._name = f"process {words[1].strip(':')} {phase if phase in known else 'timing'}"


def dump(folder: Path, device: str, blocks: int) -> ip.Graph:
    """Compile the network under `probe dump`; return the graph with most kernels."""
    (folder / "network.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "inductor_probe", "dump", "network.py", "--", device, str(blocks)]
    begin = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"probe dump failed with status {ended.returncode}:\n{ended.stderr[-2000:]}")
    print(f"dumped in {time.perf_counter() - begin:.1f} s", flush=True)
    graphs = ip.open_run(folder).graphs
    return max(graphs, key=lambda graph: len(graph.kernels()))


def main() -> None:
    """Dump the network, bench its largest graph, and print what each stage took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--budget", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--again", action="store_true", help="bench it twice: autotuning is known then")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        graph = dump(Path(place), options.device, options.blocks)
        print(f"{graph.name}: {len(graph.kernels())} kernels", flush=True)
        for _ in range(1 + options.again):
            stages, begin = Stages(), time.perf_counter()
            settings = BenchSettings(budget=options.budget)
            bench = graph.bench_kernel(settings, progress=stages.enter)
            stages.enter("end")
            show(bench.result, stages, time.perf_counter() - begin)


def show(result: BenchResult, stages: Stages, seconds: float) -> None:
    """Print what was found, and what each stage took."""
    right = sum(variant.correct for variant in result.variants)
    kernels = {time.name.split()[0] for time in result.times if " alone" in time.name}
    print(
        f"bench-kernel took {seconds:.1f} s: {right} of {len(result.variants)} checks right, {len(kernels)} "
        f"kernels timed alone, {sum(time.source == 'once' for time in result.times)} in one call, "
        f"{len(result.comparisons)} comparisons, {result.processes} processes"
    )
    for name, taken in stages.seconds.items():
        print(f"    {name:24}{taken:8.2f} s")
    for pair in result.comparisons:
        print(f"    {pair.baseline} -> {pair.candidate}: {pair.ratio:.3f} {pair.verdict}")
    print("    remarks:", ", ".join(dict.fromkeys(remark.code for remark in result.warnings)), flush=True)


if __name__ == "__main__":
    main()
