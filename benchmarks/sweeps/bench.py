"""Write, run and check the bench file of every graph below some folders: which fail at what, and why.

    python -m benchmarks.sweeps.bench DUMPS OUT [--jobs N] [--every N] [--stop-after SECONDS] [--only PATTERN]

DUMPS is what `op_db.py`, `models.py` or `probe dump` made; no compiled kernels are needed there.
A graph passes when its bench file is written, compiles, runs, when its pristine `call` gives bit for bit what
`call` of `output_code.py` gives, both with the same inputs, when that agrees with the FX graph run eagerly,
and when the unedited copies are found right. How far off `call` may be is tried in steps, and the graphs are
listed that need more than the least. `--import` names what registers operators of the dumped programs.

This runs the code of the dumps. A second start goes on where the first one ended; a crash costs one graph.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import json
import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path

from benchmarks.sweeps import run

GRAPHS = 150  # a process takes so many: it never unloads what it has compiled
_VARYING = re.compile(r"""'[^']*'|"[^"]*"|/[\w./-]+|[A-Za-z_]*\d[\w.+-]*""")


class Worker(run.Worker):
    """A process of `bench_worker.py`."""

    def __init__(self, sweep: run.Sweep) -> None:
        super().__init__(sweep)
        self.left = GRAPHS

    def start(self) -> subprocess.Popen[str]:
        """Start a process with one thread, and with caches of this sweep alone."""
        options = self.sweep.options
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": str(options.out / ".caches"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        with (options.out / run.WORKERS).open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "benchmarks.sweeps.bench_worker", options.out, *options.imports],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **environment},
            )

    def ask(self, name: str) -> dict[str, object]:
        """Let the process bench the graph `name`; end it when it has had its share."""
        row = super().ask(name)
        self.left -= 1
        if self.process is None or self.process.stdin is None:
            self.left = GRAPHS
        elif not self.left:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.wait()
            self.process, self.left = None, GRAPHS
        return row


def main() -> None:
    """Run the sweep as the command line says, and print what failed, by kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dumps", type=lambda text: Path(text).absolute())
    parser.add_argument("out", type=lambda text: Path(text).absolute())
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take each Nth graph only")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for a graph")
    parser.add_argument("--stop-after", type=float, help="seconds after which no graph is begun any more")
    parser.add_argument("--only", nargs="+", default=["*"], help="graphs whose path matches a pattern")
    parser.add_argument(
        "--import", dest="imports", nargs="+", default=[], help="MODULE or MODULE:FUNCTION to call first"
    )
    parser.add_argument("--again", action="store_true", help="try those again that did not pass")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / run.RESULTS
    files = options.dumps.glob("**/run_*/torchinductor/*/output_code.py")
    graphs = sorted(str(file.parent) for file in files)[:: options.every]
    wanted = [name for name in graphs if any(fnmatch.fnmatchcase(name, each) for each in options.only)]
    passed = {name for name, row in _rows(results).items() if not options.again or row["status"] == "ok"}
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in wanted:
        if name not in passed:
            todo.put(name)
    sweep = run.Sweep("", options, todo, todo.qsize())
    threads = [threading.Thread(target=Worker(sweep).run, daemon=True) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _print_end(_rows(results), todo.qsize())


def _rows(results: Path) -> dict[str, dict[str, str]]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def _print_end(rows: dict[str, dict[str, str]], left: int) -> None:
    """Say how many graphs ended how, and each kind of failure with one graph that has it."""
    counts = collections.Counter(row["status"] for row in rows.values())
    share = counts["ok"] / len(rows) if rows else 0.0
    print(
        f"\n{len(rows)} graphs, {share:.2%} ok: " + ", ".join(f"{n} {key}" for key, n in counts.most_common())
    )
    if left:
        print(f"{left} graphs not begun: the time given was over; start again to go on")
    kinds: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows.values():
        if row["reason"]:
            kinds.setdefault((row["status"], _VARYING.sub("~", row["reason"])[:120]), []).append(row)
    for (status, _), same in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(same)} {status}: {' '.join(same[0]['reason'].split())[:240]}")
        print("    " + "\n    ".join(row["name"] for row in same[:3]))


if __name__ == "__main__":
    main()
