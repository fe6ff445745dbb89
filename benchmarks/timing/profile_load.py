"""Does a profile name the same parts on a busy machine? For programs from a third of a millisecond to tens.

    python -m benchmarks.timing.profile_load [--load 8] [--repeat 3] [--budget 3] [--threads 1] [--only NAME]

Each program is dumped, and profiled `--repeat` times as the machine is and as often beside `--load` busy
loops, in turns. A line for each part that is among the first three of either: its share in each, and by how
much the medians differ. Loop nests are parts of their own, in the place of their kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from pathlib import Path

import inductor_probe as ip
from benchmarks.timing.verdicts import loaded
from inductor_probe.model.profile import Profile
from inductor_probe.report.words.remarks import sentence

FIRST = 3
POINTS = 0.05
PROGRAMS = {
    "elementwise": """
def f(x):
    y = x
    for _ in range(4):
        y = torch.log1p(y.exp().tanh().abs())
    return y, torch.softmax(x, -1), x.flip(-1) * 2
torch.compile(f)(torch.randn(512, 1024))
""",
    "conv net": """
from torch.nn import AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Flatten, Linear, MaxPool2d, Mish, Sequential
net = Sequential(
    Conv2d(3, 32, 3, padding=1), BatchNorm2d(32), Mish(), Conv2d(32, 48, 3, padding=1), MaxPool2d(2), Mish(),
    Conv2d(48, 64, 3, padding=1), Mish(), AdaptiveAvgPool2d(1), Flatten(), Linear(64, 10),
).eval()
with torch.no_grad():
    torch.compile(net)(torch.randn(2, 3, 128, 128))
""",
    "flip": """
torch.compile(lambda x, y: (x.flip(-1) * 2, (y + 1).sum(-1)))(torch.randn(128, 512), torch.randn(64, 512))
""",
}


def main() -> None:
    """Profile each program with and without load, and print the shares of its first parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--budget", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=tuple(PROGRAMS))
    options = parser.parse_args()
    settings = ip.BenchSettings(budget=options.budget, threads=options.threads, own=False)
    for name, text in PROGRAMS.items():
        if options.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "program.py")
            head = f"import torch\ntorch.manual_seed(0)\ntorch.set_num_threads({options.threads})\n"
            script.write_text(f"{head}{text}\n")
            graph = ip.dump(script, out=Path(folder), stdout_to_stderr=True).graphs[0]
            profiles: dict[bool, list[Profile]] = {False: [], True: []}
            loads: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(options.repeat):
                for busy, taken in profiles.items():
                    with loaded(options.load) if busy else contextlib.nullcontext():
                        taken.append(graph.profile(settings).profiles[0])
                        loads[busy].append(running())
        print(name)
        print_shares(profiles, loads)


def print_shares(profiles: dict[bool, list[Profile]], loads: dict[bool, list[float]]) -> None:
    """Print a line a part, and what the profiles said of the machine."""
    for busy, taken in profiles.items():
        calls = ", ".join(f"{profile.call * 1e3:.3f}" for profile in taken)
        others = ", ".join(f"{load:.0f}" for load in loads[busy])
        print(f"  {'busy' if busy else 'idle'}: calls of {calls} ms; other programs that run: {others}")
    tables = {busy: [parts_of(profile) for profile in taken] for busy, taken in profiles.items()}
    median = {
        busy: {
            part: statistics.median([table.get(part, 0.0) for table in taken])
            for part in dict.fromkeys(part for table in taken for part in table)
        }
        for busy, taken in tables.items()
    }
    order = {busy: sorted(shares, key=lambda part: -shares[part])[:FIRST] for busy, shares in median.items()}
    worst = 0.0
    for part in dict.fromkeys((*order[False], *order[True])):
        rows = [" ".join(f"{table.get(part, 0.0) * 100:5.1f}" for table in tables[busy]) for busy in tables]
        points = median[True].get(part, 0.0) - median[False].get(part, 0.0)
        worst = max(worst, abs(points))
        print(f"  {part[-50:]:50}  idle {rows[0]}  busy {rows[1]}  {points * 100:+5.1f} points")
    same = "the same" if order[False] == order[True] else "OTHERS"
    held = same == "the same" and worst <= POINTS
    print(
        f"  first {FIRST}: {same}, at most {worst * 100:.1f} points: {'holds' if held else 'DOES NOT HOLD'}"
    )
    said = {sentence(remark) for profile in profiles[True] for remark in profile.remarks}
    for text in sorted(said):
        print(f"  said: {text}")


def parts_of(profile: Profile) -> dict[str, float]:
    """Return the shares of a call by name: of loop nests where a kernel has some, else of parts."""
    nests = {
        f"{nest.kernel} nest {nest.number}": nest.share for nest in profile.nests if nest.number is not None
    }
    looked_into = {nest.kernel for nest in profile.nests if nest.number is not None}
    rows = {
        part.name: part.share
        for part in profile.parts
        if part.side == "host" and part.kind not in ("call", "gap") and part.name not in looked_into
    }
    return nests | rows


def running() -> float:
    """Return how many threads of the machine run or want to."""
    return (
        float(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1 if os.name == "posix" else 0
    )


if __name__ == "__main__":
    main()
