"""What recorders of decisions cost a compile, and that they change nothing of what is compiled.

    python -m benchmarks.sweeps.recorders cost [--pairs N] [--compilers]
    python -m benchmarks.sweeps.recorders identity [--operators N]

Two processes run at the same time, both with the hooks of `probe dump`, one of them with recorders; they take
turns: A B B A, each two pairs at another depth of the stack. A compile is cold: nothing of inductor's is
cached. `cost` prints medians of the CPU time of the thread that compiles and of wall time, and the ratio of
medians; g++, which is most of a cold compile, runs with `--compilers` only. Targets: 1.05, and 1.1 of the
memory. `identity` compares each `output_code.py`, byte for byte, of all cases of the scenarios that a CPU can
run, and of N graphs of PyTorch's operator database.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

AGAIN = 5
"""Further compiles of a graph whose code differs: max-autotune chooses by time, and has several codes."""
FRAMES = 5
"""Further Python frames that each two pairs are compiled below: see `below` in the worker."""


class Worker:
    """A process of `recorders_worker.py`, with recorders or without."""

    def __init__(self, folder: Path, kind: str, *compilers: str) -> None:
        environment = {
            **os.environ,
            "TORCH_COMPILE_DEBUG": "1",
            "TORCH_COMPILE_DEBUG_DIR": str(folder / "tree"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        }
        (folder / "staging").mkdir(parents=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sweeps.recorders_worker", str(folder), kind, *compilers],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(folder / "stderr.txt").open("w"),
            text=True, env=environment,
        )  # fmt: skip
        self.folder = folder

    def ask(self, name: str) -> Any:
        """Compile a program or case; return what the process says of it."""
        self.start(name)
        return self.answer(name)

    def start(self, name: str) -> None:
        """Let the process compile a program or case."""
        if self.process.stdin is None:
            raise RuntimeError("a worker is started with pipes")
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()

    def answer(self, name: str) -> Any:
        """Wait for what the process says of a program or case."""
        line = self.process.stdout.readline() if self.process.stdout is not None else ""
        if not line:
            text = (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
            sys.exit(f"a process ended while it compiled {name}:\n{text[-2000:]}")
        return json.loads(line)

    def end(self) -> None:
        """Let the process end."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def cost(folder: Path, pairs: int, compilers: tuple[str, ...]) -> None:
    """Print what each program takes with recorders and without."""
    workers = [Worker(folder / kind, kind, *compilers) for kind in ("decisions", "facts")]
    names: list[str] = workers[0].ask("programs")  # the largest is the last
    workers[1].ask("programs")
    load = os.getloadavg()[0]
    print(f"{pairs} pairs, load {load:.1f}; seconds with and without recorders, medians")
    print(f"{'':24}{'decisions':>10}{'CPU with':>10}{'without':>10}{'ratio':>8}{'wall with':>11}{'ratio':>8}")
    for name in names:
        rows: list[list[dict[str, float]]] = [[], []]
        for worker in workers:
            worker.ask(name)  # the first compile imports what it needs
        for pair in range(pairs):
            for index in (0, 1) if pair % 2 else (1, 0):
                rows[index].append(workers[index].ask(f"{name} {FRAMES * (pair // 2)}"))
        with_, without = (
            {clock: statistics.median(row[clock] for row in side) for clock in ("cpu", "wall")}
            for side in rows
        )
        print(
            f"{name:24}{rows[0][-1]['decisions']:>10.0f}{with_['cpu']:>10.3f}{without['cpu']:>10.3f}"
            f"{with_['cpu'] / without['cpu']:>8.3f}"
            f"{with_['wall']:>11.3f}{with_['wall'] / without['wall']:>8.3f}"
        )
        peaks = [side[-1]["peak_mib"] for side in rows]
    print(f"most memory of a process: {peaks[0]:.0f} and {peaks[1]:.0f} MiB, {peaks[0] / peaks[1]:.3f} times")
    for worker in workers:
        worker.end()


def identity(folder: Path, operators: int) -> None:
    """Print for how many graphs the code is the same, and every graph whose code is not."""
    workers = [Worker(folder / kind, kind) for kind in ("decisions", "facts")]
    names: list[str] = workers[0].ask(f"cases {operators}")
    workers[1].ask(f"cases {operators}")
    compared, failed = 0, 0
    notes: list[str] = []
    different: list[str] = []
    varying: list[str] = []
    for count, name in enumerate(names, 1):
        for worker in workers:
            worker.start(name)
        with_, without = (worker.answer(name) for worker in workers)
        failed += not with_["code"] and not without["code"]
        compared += len(with_["code"])
        notes += [f"{name}: {note}" for note in with_["notes"]]
        if with_["code"] != without["code"]:
            again = [workers[1].ask(name)["code"] for _ in range(AGAIN)]
            (varying if with_["code"] in again else different).append(name)
        if count % 25 == 0:
            print(f"{count}/{len(names)}: {compared} graphs, {len(different)} different", file=sys.stderr)
    counts = f"{compared} graphs compared, {len(different)} different"
    print(f"{len(names)} cases, {failed} without a graph; {counts}")
    print(*(f"different: {name}" for name in different), *notes, sep="\n")
    print(*(f"has several codes without recorders, too: {name}" for name in varying), sep="\n")
    for worker in workers:
        worker.end()
    sys.exit(bool(different or notes))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("cost", "identity"))
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--compilers", action="store_true", help="run g++, too")
    parser.add_argument("--operators", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recorders_", ignore_cleanup_errors=True) as name:
        if options.what == "cost":
            cost(Path(name), options.pairs, ("compilers",) if options.compilers else ())
        else:
            identity(Path(name), options.operators)


if __name__ == "__main__":
    main()
