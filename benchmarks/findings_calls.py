"""Calls of a finding's script in whole processes: as torch is, and with the change that the finding proposes.

    python benchmarks/findings_calls.py NAME[,NAME] [--pairs N] [--seconds S] [--threads N]

For what `probe whatif --runs` does not compare, as both graphs take other inputs (`freezing`), and for a
check of what it says (`tiles`, `short_ranges`): here a call has dynamo's frame and guards in it. Each pair is
two fresh processes, one of them with the patch of `torch_patches.py`. They take turns, A B B A, while the
other one waits for input; of each turn the fastest lap counts, and the interval is that of `probe verdict`,
over pairs. Both have to compute the same, within the tolerance of `torch.testing.assert_close`.
"""

from __future__ import annotations

import argparse
import math
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch_patches

from inductor_probe.bench.intervals import estimate

LAP_S = 0.005
LAPS = 5
"""Laps of a turn, of which the fastest counts."""


@dataclass(frozen=True)
class Script:
    """A script of a finding, the variables that it is compiled with, and a call of what it compiled."""

    file: str
    call: Callable[[dict[str, Any]], Any]
    environment: dict[str, str]


SCRIPTS = {
    "freezing": Script("freezing_option.py", lambda names: names["compiled"](names["image"]), {}),
    "tiles": Script("tiles_for_threads.py", lambda names: names["channels_last"](names["features"]), {}),
    "short_ranges": Script(
        "short_ranges.py", lambda names: names["hflip"](names["image"]), {"ATEN_CPU_CAPABILITY": "avx2"}
    ),
}


class Side:
    """A process that has compiled the script, and calls it so many times for each line of its input."""

    def __init__(self, name: str, result: Path, threads: int, *, patched: bool) -> None:
        with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as cache:
            command = [sys.executable, __file__, name, "--threads", str(threads), "--side", str(result)]
            environment = {**SCRIPTS[name].environment, "TORCHINDUCTOR_CACHE_DIR": cache}
            self.process = subprocess.Popen(
                command + ["--patched"] * patched, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, **environment},
            )  # fmt: skip
            self.seconds(1)

    def seconds(self, calls: int) -> float:
        """Return the seconds that one call takes, of the fastest of a few laps of so many calls."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("a side is started with pipes")
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        if not (line := self.process.stdout.readline()):
            sys.exit("a side ended before it answered; its message is above")
        return float(line)

    def end(self) -> None:
        """Let the process end."""
        self.process.communicate()


def serve(name: str, result: Path, threads: int) -> None:
    """Compile the script, keep what its call gives, and answer each number with the seconds of a call."""
    import torch

    script = SCRIPTS[name]
    torch.set_num_threads(threads)
    names = runpy.run_path(str(torch_patches.FINDINGS / script.file))
    with torch.no_grad():
        torch.save(script.call(names), result)
        for line in sys.stdin:
            laps = []
            for _ in range(LAPS):
                begin = time.perf_counter()
                for _ in range(int(line)):
                    script.call(names)
                laps.append((time.perf_counter() - begin) / int(line))
            print(min(laps), flush=True)


def pair(name: str, threads: int, seconds: float) -> tuple[list[float], float]:
    """Return the logarithms of B over A of two fresh processes, and the seconds of a call of A."""
    import torch

    with tempfile.TemporaryDirectory(prefix="findings_") as folder:
        results = [Path(folder) / side for side in "AB"]
        a, b = (Side(name, result, threads, patched=result.name == "B") for result in results)
        torch.testing.assert_close(*(torch.load(result) for result in results))
    calls = max(1, math.ceil(LAP_S / a.seconds(1)))
    scores, fastest, end = [], math.inf, time.monotonic() + seconds
    while time.monotonic() < end or not scores:
        first, second, third, last = (side.seconds(calls) for side in (a, b, b, a))
        scores.append(math.log(min(second, third) / min(first, last)))
        fastest = min(fastest, first, last)
    a.end()
    b.end()
    return scores, fastest


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", help=f"of {', '.join(SCRIPTS)}, with commas")
    parser.add_argument("--pairs", type=int, default=5, help="of processes")
    parser.add_argument("--seconds", type=float, default=10.0, help="of timing for each pair")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--patched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names.split(",")) - set(SCRIPTS):
        parser.error(f"no such finding to call: {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}")
    if options.side is not None:
        if options.patched:
            torch_patches.apply(torch_patches.PATCHES[options.names])
        serve(options.names, options.side, options.threads)
        return
    for name in options.names.split(","):
        pairs = [pair(name, options.threads, options.seconds) for _ in range(options.pairs)]
        found = estimate([scores for scores, _ in pairs])
        middle, low, high = (math.exp(-value) for value in (found.middle, found.high, found.low))
        fastest = min(seconds for _, seconds in pairs) * 1e6
        print(
            f"{name}, {options.threads} threads: a call of {fastest:.1f} us is {middle:.3f} times as fast "
            f"with the patch ({low:.3f} to {high:.3f}, {options.pairs} pairs of processes)",
            flush=True,
        )


if __name__ == "__main__":
    main()
