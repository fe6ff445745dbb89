"""Calls of a finding's script, or of a network, in whole processes: as torch is, and with a change of torch.

    python -m benchmarks.findings.calls NAME[,NAME] [--pairs N] [--seconds S] [--threads N]

For what `probe whatif --runs` does not compare, as both graphs take other inputs (`freezing`, and
`freezing_` with a network of `networks.py`), and for a check of what it says (`tiles`,
`short_ranges`): here a call has dynamo's frame and guards in it. Each pair is two fresh processes, one of
them with the patch of `patches.py`. They take turns, A B B A, while the other one waits for input; of
each turn the fastest lap counts, and interval and verdict are those of `probe verdict`, over pairs. Both
have to compute the same, within the tolerance of `torch.testing.assert_close`. The first pair compiles
cold, both at the same time; what its first calls take, most of which is compiling, and the largest memory
of its processes are printed as well.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.findings.patches import FINDINGS, PATCHES, apply
from inductor_probe.bench.verdict import conclude
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.timing import Quad, Series

LAP_S = 0.005
LAPS = 5
"""Laps of a turn, of which the fastest counts."""
_NETWORKS = ("resnet50", "resnet50_channels_last", "gpt_block", "vit", "mlp_mixer", "unet")


@dataclass(frozen=True)
class Program:
    """What is called: `made` compiles it and returns a call of it, after the patch was applied.

    Attributes:
        patch: of `patches.py`.
        environment: variables that it is compiled and called with.
    """

    patch: str
    made: Callable[[], Callable[[], Any]]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Called:
    """What the pairs of a program found.

    Attributes:
        comparison: of calls; its ratio is of times, with the patch over without.
        fastest: seconds of the fastest call without the patch.
        first: seconds until the first call has answered, without the patch and with it.
        memory: the most that a process had in memory, in bytes, likewise.
    """

    comparison: Comparison
    fastest: float
    first: tuple[float, float]
    memory: tuple[float, float]


def _script(file: str, call: Callable[[dict[str, Any]], Any]) -> Callable[[], Callable[[], Any]]:
    def made() -> Callable[[], Any]:
        names = runpy.run_path(str(FINDINGS / file))
        return lambda: call(names)

    return made


def _frozen(name: str) -> Callable[[], Callable[[], Any]]:
    def made() -> Callable[[], Any]:
        import torch

        torch.manual_seed(0)
        network, inputs = importlib.import_module("benchmarks.findings.networks").NETWORKS[name]()
        compiled = torch.compile(network, dynamic=False, options={"freezing": True})
        return lambda: compiled(*inputs)

    return made


PROGRAMS = {
    "freezing": Program(
        "freezing", _script("freezing_option.py", lambda names: names["compiled"](names["image"]))
    ),
    "tiles": Program(
        "tiles", _script("tiles_for_threads.py", lambda names: names["channels_last"](names["features"]))
    ),
    "short_ranges": Program(
        "short_ranges",
        _script("short_ranges.py", lambda names: names["hflip"](names["image"])),
        {"ATEN_CPU_CAPABILITY": "avx2"},
    ),
    **{f"freezing_{name}": Program("freezing", _frozen(name)) for name in _NETWORKS},
}


class Side:
    """A process that has compiled the program, and calls it so many times for each line of its input."""

    def __init__(self, name: str, result: Path, cache: Path, threads: int, *, patched: bool) -> None:
        command = [sys.executable, __file__, name, "--threads", str(threads), "--side", str(result)]
        path = os.pathsep.join(filter(None, (str(FINDINGS.parents[1]), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            command + ["--patched"] * patched, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **PROGRAMS[name].environment, "TORCHINDUCTOR_CACHE_DIR": str(cache),
                 "PYTHONPATH": path},
        )  # fmt: skip
        self.first = self.memory = math.nan

    def compiled(self) -> None:
        """Wait until it has compiled, and answered a call."""
        self.first, self.memory = self._answer()

    def seconds(self, calls: int) -> float:
        """Return the seconds that one call takes, of the fastest of a few laps of so many calls."""
        if self.process.stdin is None:
            raise RuntimeError("a side is started with pipes")
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> Any:
        if self.process.stdout is None:
            raise RuntimeError("a side is started with pipes")
        if not (line := self.process.stdout.readline()):
            sys.exit("a side ended before it answered; its message is above")
        return json.loads(line)

    def end(self) -> None:
        """Let the process end."""
        self.process.communicate()


def serve(name: str, result: Path, threads: int) -> None:
    """Compile the program, keep what its call gives, and answer each number with the seconds of a call."""
    import torch

    torch.set_num_threads(threads)
    with torch.no_grad():
        begin = time.perf_counter()
        call = PROGRAMS[name].made()
        torch.save(call(), result)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps((time.perf_counter() - begin, peak)), flush=True)
        for line in sys.stdin:
            laps = []
            for _ in range(LAPS):
                begin = time.perf_counter()
                for _ in range(int(line)):
                    call()
                laps.append((time.perf_counter() - begin) / int(line))
            print(min(laps), flush=True)


def pair(name: str, threads: int, seconds: float, caches: Path) -> tuple[Series, Side, Side]:
    """Return what two fresh processes took in turns, and those, which have ended.

    Args:
        caches: a folder for what is compiled, each side by itself: inductor's keys do not know of patches.
    """
    import torch

    with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as folder:
        results = [Path(folder) / side for side in "AB"]
        a, b = (
            Side(name, result, caches / result.name, threads, patched=result.name == "B")
            for result in results
        )
        for side in (a, b):
            side.compiled()
        torch.testing.assert_close(*(torch.load(result) for result in results))
    calls = max(1, math.ceil(LAP_S / a.seconds(1)))
    b.seconds(calls)
    quads: list[Quad] = []
    begin = time.monotonic()
    while time.monotonic() < begin + seconds or not quads:
        taken = tuple(side.seconds(calls) for side in (a, b, b, a))
        quads.append(Quad(order="ABBA", seconds=taken, guard=False, disturbed=None))
    a.end()
    b.end()
    return Series("as torch is", "with the patch", tuple(quads), time.monotonic() - begin), a, b


def called(name: str, threads: int, pairs: int, seconds: float) -> Called:
    """Return what so many pairs of processes found, each timed for so long."""
    with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as caches:
        found = [pair(name, threads, seconds, Path(caches)) for _ in range(pairs)]
    series = [each for each, _, _ in found]
    _, a, b = found[0]  # whose caches were empty
    return Called(
        comparison=conclude(series),
        fastest=min(second for each in series for quad in each.quads for second in quad.samples("A")),
        first=(a.first, b.first),
        memory=(a.memory, b.memory),
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", help=f"of {', '.join(PROGRAMS)}, with commas")
    parser.add_argument("--pairs", type=int, default=5, help="of processes")
    parser.add_argument("--seconds", type=float, default=10.0, help="of timing for each pair")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--patched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names.split(",")) - set(PROGRAMS):
        parser.error(
            f"no such program to call: {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}"
        )
    if options.side is not None:
        if options.patched:
            apply(PATCHES[PROGRAMS[options.names].patch])
        serve(options.names, options.side, options.threads)
        return
    for name in options.names.split(","):
        found = called(name, options.threads, options.pairs, options.seconds)
        each = found.comparison
        print(
            f"{name}, {options.threads} threads: a call of {found.fastest * 1e6:.1f} us is "
            f"{1 / each.ratio:.3f} times as fast with the patch ({1 / each.high:.3f} to {1 / each.low:.3f}, "
            f"{options.pairs} pairs of processes): {each.verdict}; first call "
            f"{found.first[0]:.1f} s, {found.first[1]:.1f} s with it; memory "
            f"{found.memory[0] / 2**20:.0f} MiB, {found.memory[1] / 2**20:.0f} MiB with it",
            flush=True,
        )


if __name__ == "__main__":
    main()
