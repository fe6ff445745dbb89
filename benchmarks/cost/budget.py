"""How long measuring takes beside `--budget`, for calls of 10 us to 3 s, and of every verb that has one.

    python -m benchmarks.cost.budget [--budgets 2,10] [--calls 1e-5,1e-3,0.05,0.3,0.9,3]
    python -m benchmarks.cost.budget --verbs [--budgets 2,10] [--long]

A small C++ graph is dumped, and its kernel made to wait as long as wanted, with an unedited copy that is
compared with it (`--copies`). `measured` is what the samples say: all but importing, compiling and checking;
`wall` is all of it. Target: measured at most 1.2 times the budget, where one call of each fits.

`--verbs` runs each on a small network of the user's, with its script, or with `--long` on a function of
which a call takes 0.4 s (1.0 s in eager). Of those whose budget is of all that they do (`check-op`,
`whatif --try-all`), and of `perf`, which does not say what it measured, `measured` is the wall time.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SCRIPT = """
import torch
image = torch.arange(3 * 20 * 24, dtype=torch.uint8).reshape(1, 3, 20, 24)
torch.compile(lambda x: x.flip(-1))(image)
"""
PROBE = [sys.executable, "-m", "inductor_probe"]
TURN_S = 2.7e-10
"""Of a loop that counts in memory."""
BODY = re.compile(r'(extern "C"\s+void\s+\w+\([^{]*\)\s*\{)')
WAIT = re.compile(r"\n *for \(volatile long waited.*")


def main() -> None:
    """Run bench-kernel for each length of a call and each budget; print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", default="2,10")
    parser.add_argument("--calls", default="1e-5,1e-3,0.05,0.3,0.9,3")
    parser.add_argument("--verbs", action="store_true", help="each verb with a budget, on a network")
    parser.add_argument("--long", action="store_true", help="with --verbs: calls of 0.4 s")
    options = parser.parse_args()
    if options.verbs:
        verbs([float(text) for text in options.budgets.split(",")], LONG if options.long else NETWORK)
        return
    heads = ("call s", "budget s", "measured s", "measured / budget", "wall s", "processes", "compared")
    print("".join(f"{head:>18}" for head in heads), " verdict of an equal copy")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "flip.py").write_text(SCRIPT)
        subprocess.run([*PROBE, "dump", "flip.py"], cwd=folder, check=True, capture_output=True)
        run(folder, "1")  # writes the bench file
        (file,) = Path(folder).rglob("output_code_bench.py")
        for call_s in map(float, options.calls.split(",")):
            text = WAIT.sub("", file.read_text())
            loop = (
                rf"\1\n    for (volatile long waited = 0; waited < {round(call_s / TURN_S)}L; waited++) {{}}"
            )
            file.write_text(BODY.sub(loop, text))
            for budget in options.budgets.split(","):
                begin = time.perf_counter()
                result = run(folder, budget)
                print(row(result, float(budget), time.perf_counter() - begin), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


VERBS: dict[str, tuple[tuple[str, ...], str]] = {
    "bench-kernel": (("bench-kernel", "net"), "measured"),
    "bench-kernel --no-script": (("bench-kernel", "net", "--no-script"), "measured"),
    "profile": (("profile", "net"), "measured"),
    "profile --no-script": (("profile", "net", "--no-script"), "measured"),
    "whatif": (("whatif", "net", "--set", "inductor.cpp.simdlen=128"), "measured"),
    "whatif --try-all": (("whatif", "net", "--try-all"), "wall"),
    "perf": (("perf", "check_hflip.py", "--case", "channels_last"), "wall"),
    "check-op": (("check-op", "flip"), "wall"),
}
NETWORK = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)).eval()
compiled = torch.compile(net)
with torch.no_grad():
    for _ in range(4):
        compiled(torch.randn(64, 256))
"""
LONG = """
import torch
torch.set_num_threads(1)
def function(x):
    for _ in range(6):
        x = torch.log1p(x.exp().tanh().abs())
    return x
torch.compile(function)(torch.randn(4096, 4096))
"""
SMALL_ONLY = ("perf", "check-op")  # on programs of their own


def verbs(budgets: Sequence[float], program: str) -> None:
    """Run each verb with each budget; print what it measured, and the wall time."""
    print(f"{'verb':28}" + "".join(f"{head:>14}" for head in ("budget s", "measured s", "ratio", "wall s")))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net.py").write_text(program)
        command = [*PROBE, "dump", "net.py", "--label", "net"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        for name, (words, counted) in VERBS.items():
            for budget in () if program is LONG and name in SMALL_ONLY else budgets:
                begin = time.perf_counter()
                command = [*PROBE, *words, "--budget", f"{budget:g}s", "--json"]
                ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
                wall = time.perf_counter() - begin
                if not ran.stdout.startswith("{"):
                    print(f"{name:28}  {ran.stderr.strip()[-120:]}")
                    continue
                seconds = wall if counted == "wall" else sum(measured_in(json.loads(ran.stdout)))
                cells = (f"{budget:g}", f"{seconds:.2f}", f"{seconds / budget:.2f}", f"{wall:.1f}")
                print(f"{name:28}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


def measured_in(output: Any) -> Iterator[float]:
    """Yield the seconds of measuring in what a verb printed, wherever they stand."""
    if isinstance(output, list):
        for item in output:
            yield from measured_in(item)
    elif isinstance(output, dict):
        for name, value in output.items():
            if name == "measured" and isinstance(value, (int, float)):
                yield value
            elif name != "roofline":
                yield from measured_in(value)


def run(folder: str, budget: str) -> dict[str, Any]:
    """Measure with a budget in seconds; return the result."""
    command = [*PROBE, "bench-kernel", "--budget", f"{budget}s", "--copies", "--json"]
    completed = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if not completed.stdout.startswith("{"):
        sys.exit(completed.stderr)
    result: dict[str, Any] = json.loads(completed.stdout)["results"][0]
    return result


def row(result: dict[str, Any], budget: float, wall: float) -> str:
    """Lay out what one run was."""
    kernel = next(one for one in result["times"] if one["name"].startswith("cpp_"))
    pairs = result["comparisons"]
    pair = next((one for one in pairs if one["baseline"] == kernel["name"]), None)
    verdict = f"{pair['verdict']} {pair['ratio']:.3f}x" if pair else "-"
    cells = (
        f"{kernel['seconds']:.3g}",
        f"{budget:g}",
        f"{result['measured']:.2f}",
        f"{result['measured'] / budget:.2f}",
        f"{wall:.1f}",
        str(result["processes"]),
        str(len(pairs)),
    )
    return "".join(f"{cell:>18}" for cell in cells) + f"  {verdict}"


if __name__ == "__main__":
    main()
