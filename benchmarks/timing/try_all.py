"""How far `probe whatif --try-all` comes in its budget, and whether it finds a planted gain, and its size.

    python -m benchmarks.timing.try_all [--budget 120s]

A U-Net with GroupNorm and mish, in which no change of inductor gains 5 %: how many candidates are dropped,
decided, or left. A network with a roll beside a tanh among convolutions, whose loop is scalar: what is found,
what the program's own call gains by it, and the same by a loop by hand in fresh processes that take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from inductor_probe.model.codec import from_json
from inductor_probe.model.whatif import WhatIfOutput

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
"""
UNET = f"""{HEAD}
class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o)
    def forward(self, x):
        return F.mish(self.norm(self.conv(x)))
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Block(3, 32), Block(32, 64), Block(96, 32)
        self.d, self.e, self.out = Block(64, 128), Block(192, 64), nn.Conv2d(32, 1, 1)
    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        d = F.interpolate(self.d(F.max_pool2d(b, 2)), scale_factor=2)
        b = F.interpolate(self.e(torch.cat([b, d], 1)), scale_factor=2)
        return self.out(self.c(torch.cat([a, b], 1)))
net, x = UNet().eval(), torch.randn(1, 3, 160, 224)
"""
PLANTED = f"""{HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(i, o, 3, padding=1) for i, o in ((3, 32), (32, 32), (32, 3)))
    def forward(self, x):
        x = F.relu(self.a(x))
        return self.c(F.relu(self.b(torch.tanh(torch.roll(x, 1, 1)) + x)))
net, x = Net().eval(), torch.randn(1, 3, 128, 128)
"""
CALL = """
compiled = torch.compile(net)
with torch.no_grad():
    compiled(x)
"""
BY_HAND = """
import sys, time, torch._inductor.config as config
config.cpp.enable_tiling_heuristics = sys.argv[1] == "as it is"
torch.set_num_threads(1)
with torch.no_grad():
    compiled = torch.compile(net)
    times = []
    for number in range(400):
        begin = time.perf_counter()
        compiled(x)
        times.append(time.perf_counter() - begin)
print(sorted(times[50:])[100])
"""


def main() -> None:
    """Try both programs; print what came of their candidates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="120s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, program in (("unet", UNET), ("planted", PLANTED)):
            path = Path(folder, f"{name}.py")
            path.write_text(program + CALL)
            begin = time.perf_counter()
            command = [sys.executable, "-m", "inductor_probe", "whatif", path.name, "--try-all"]
            command += ["--budget", options.budget, "--json"]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            wall = time.perf_counter() - begin
            answer = from_json(WhatIfOutput, json.loads(ran.stdout))
            ranks = Counter(trial.rank for trial in answer.trials)
            plan = next(line for line in ran.stderr.splitlines() if " can gain more " in line)
            print(f"{name}, load {os.getloadavg()[0]:.1f}: {plan}")
            print(
                f"  {wall:.0f} s with the dump of A: {', '.join(f'{n} {rank}' for rank, n in ranks.items())}"
            )
            print(f"  {answer.summary[0]}")
        Path(folder, "hand.py").write_text(PLANTED + BY_HAND)
        times: dict[str, list[float]] = {}
        for way in ("as it is", "vectorised") * 3:
            ran = subprocess.run(
                [sys.executable, "hand.py", way], cwd=folder, capture_output=True, text=True, check=True
            )
            times.setdefault(way, []).append(float(re.findall(r"[\d.e-]+$", ran.stdout.strip())[0]))
        before, after = (sorted(several)[1] for several in times.values())
        print(f"  by hand: {before * 1e3:.2f} and {after * 1e3:.2f} ms, {before / after:.2f}x")


if __name__ == "__main__":
    main()
