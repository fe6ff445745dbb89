"""Spread cases over worker processes, with a time limit for each, and keep a list of what became of them.

The list is `results.jsonl` in the folder of the dumps, a line a case; a sweep that was stopped goes on after
the cases in it. A worker that dies or takes too long costs its case only.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import importlib
import json
import os
import queue
import random
import select
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.sweeps.worker import TARGET

RESULTS = "results.jsonl"
WORKERS = "workers.txt"  # what processes said outside of cases, such as why they could not start
_CACHES = ".caches"
_LOGS = "+inductor,fusion,schedule,loop_ordering,loop_tiling,perf_hints,output_code"
_START = 300.0  # seconds for a worker's imports


@dataclass
class Sweep:
    """What to compile, where to, and what became of it so far."""

    module: str
    options: argparse.Namespace
    todo: queue.SimpleQueue[str]
    total: int
    begin: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: int = 0

    def next_case(self) -> str | None:
        """Return the next case; None when there is none, or no time for it."""
        late = self.options.stop_after and time.monotonic() - self.begin > self.options.stop_after
        try:
            return None if late else self.todo.get_nowait()
        except queue.Empty:
            return None

    def record(self, row: dict[str, Any]) -> None:
        """Keep what became of a case."""
        with self.lock:
            self.done += 1
            with (self.options.out / RESULTS).open("a") as results:
                results.write(json.dumps(row) + "\n")
            reason = f"  {row['reason'].splitlines()[0][:120]}" if row["reason"] else ""
            print(f"{self.done}/{self.total} {row['name']}: {row['status']}{reason}", flush=True)


class Worker:
    """A process of `worker.py`, started when it is needed and again after it died."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """Take cases until none is left."""
        while (name := self.sweep.next_case()) is not None:
            self.sweep.record(self.ask(name))
        if self.process and self.process.stdin:
            with contextlib.suppress(BrokenPipeError):  # it may just have died: its last case is answered
                self.process.stdin.close()
            self.process.wait()

    def ask(self, name: str) -> dict[str, Any]:
        """Let the process compile the case `name`; say what became of it."""
        begin = time.monotonic()
        limit = _START
        answer: str | None = "ready"
        if self.process is None:
            self.process = self.start()
            answer = self.answer(limit)
        if answer:
            limit = self.sweep.options.timeout
            answer = self.answer(limit, name)
        if answer:
            row: dict[str, Any] = json.loads(answer)
            if row.pop("ends"):
                self.process = None
            return row
        if answer is None:
            self.process.kill()
        code = self.process.wait()
        self.process = None
        reason = f"not done in {limit:.0f} s" if answer is None else f"its process ended with status {code}"
        seconds = round(time.monotonic() - begin, 2)
        status = "timeout" if answer is None else "died"
        return {"name": name, "status": status, "graphs": 0, "seconds": seconds, "reason": reason}

    def answer(self, limit: float, question: str | None = None) -> str | None:
        """Send a line to the process and return its answer: empty if it died, None if it takes too long."""
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("a worker is started with pipes")
        if question is not None:
            with contextlib.suppress(BrokenPipeError):  # a process that died gives no answer
                process.stdin.write(question + "\n")
                process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], limit)
        return process.stdout.readline() if ready else None

    def start(self) -> subprocess.Popen[str]:
        """Start a process with torch's dumps and logs on, and with caches of this sweep alone."""
        options = self.sweep.options
        caches = options.out / _CACHES
        environment = {
            "TORCH_COMPILE_DEBUG": "1",
            "TORCH_LOGS": _LOGS,
            "INDUCTOR_PROVENANCE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TRITON_CACHE_DIR": str(caches / "triton"),
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            **({"CUDA_VISIBLE_DEVICES": "", TARGET: options.target} if options.target else {}),
        }
        build = "build" if options.build else "skip"
        with (options.out / WORKERS).open("a") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "benchmarks.sweeps.worker"),
                    self.sweep.module,
                    options.device,
                    *(options.mode, build, options.out),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **environment},
            )


def _read_results(out: Path) -> list[dict[str, Any]]:
    path = out / RESULTS
    lines = path.read_text().splitlines() if path.exists() else []
    return list({row["name"]: row for row in map(json.loads, lines)}.values())


def _print_end(sweep: Sweep, out: Path) -> None:
    """Say how many cases ended how, and list every one that has no dump with its reason."""
    rows = _read_results(out)
    counts = collections.Counter(row["status"] for row in rows)
    graphs = sum(row["graphs"] for row in rows)
    minutes = (time.monotonic() - sweep.begin) / 60
    print(f"\n{graphs} graphs of {len(rows)} cases in {out} ({minutes:.1f} minutes this time)")
    print(", ".join(f"{count} {status}" for status, count in counts.most_common()))
    if left := sweep.todo.qsize():
        print(f"{left} cases not begun: the time given was over; start again to go on")
    for row in sorted(rows, key=lambda row: (row["status"], row["name"])):
        if row["status"] != "ok":
            print(f"  {row['status']}  {row['name']}: {' '.join((row['reason'] or '').split())[:200]}")


def main(module: str, description: str) -> None:
    """Run the sweep of the cases in `module` as the command line says."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("out", type=lambda text: Path(text).absolute())
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--target", default="", help="a GPU to simulate, as probe dump does: h200")
    parser.add_argument("--shuffle", type=int, help="seed of an order in which any first part is a sample")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a case")
    parser.add_argument("--stop-after", type=float, help="seconds after which no case is begun any more")
    parser.add_argument("--only", nargs="+", default=["*"], help="cases whose name matches a pattern")
    parser.add_argument("--mode", default="", help="torch.compile's, such as max-autotune-no-cudagraphs")
    parser.add_argument("--build", action="store_true", help="run the C++ and Triton compilers too")
    parser.add_argument("--again", action="store_true", help="try those again that did not end well")
    options = parser.parse_args()
    options.device = "cuda" if options.target else options.device
    options.out.mkdir(parents=True, exist_ok=True)
    known = {row["name"] for row in _read_results(options.out) if not options.again or row["status"] == "ok"}
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    names = importlib.import_module(module).names(options.device)
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(names)  # noqa: S311 - an order
    for name in names:
        wanted = any(fnmatch.fnmatchcase(name, pattern) for pattern in options.only)
        if wanted and name not in known:
            todo.put(name)
    sweep = Sweep(module, options, todo, todo.qsize())
    threads = [threading.Thread(target=Worker(sweep).run, daemon=True) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shutil.rmtree(options.out / _CACHES, ignore_errors=True)
    _print_end(sweep, options.out)
