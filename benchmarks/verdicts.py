"""How often are verdicts right? Ours, and those of the usual ways to time two kernels, on the same trials.

    python benchmarks/verdicts.py [--trials 200] [--seconds 0.5] [--load] [--device cuda]

Three questions a trial: is a kernel different from itself, from a second copy of it, and from one with 2 %
more work? Each way has `--seconds` for each question. A way calls two kernels different if their ratio is
off by more than the margin; ours if its whole interval is. Ours takes a fifth of the time in each of three
processes, and in two more where `probe bench-kernel` would ask for them; they are started afresh every
`--renew` trials, and the others run in one of them in turn.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from inductor_probe.bench.verdict import MORE_PROCESSES, PROCESSES, conclude, wants_more
from inductor_probe.model.timing import Quad, Series

MARGIN = 0.01
CASES = {"same": "itself", "copy": "a second copy", "more": "2 % more work"}
OURS = "quads in 3 or 5 processes (probe)"
PEERS = {
    "autorange": "blocked_autorange, one after the other",
    "print_performance": "inductor's print_performance",
    "do_bench": "triton.testing.do_bench",
}


@dataclass(frozen=True)
class Trial:
    """What one way said of one case: ratio of times, whether it calls that different, and why not."""

    way: str
    case: str
    ratio: float
    verdict: str
    note: str | None = None


@dataclass
class Worker:
    """A process that has compiled the kernels, and times what it is asked to."""

    process: subprocess.Popen[str]

    def ask(self, way: str, case: str, seconds: float) -> Any:
        """Have it time a case; return its answer."""
        asked, told = self._pipes()
        asked.write(f"{way} {case} {seconds}\n")
        asked.flush()
        line = told.readline()
        if not line:
            sys.exit(f"a worker ended with status {self.process.wait()} when asked for {way} {case}")
        return json.loads(line)

    def end(self) -> None:
        """Let it end."""
        self._pipes()[0].close()
        self.process.wait()

    def _pipes(self) -> tuple[TextIO, TextIO]:
        if self.process.stdin is None or self.process.stdout is None:
            raise ValueError("a worker without pipes")
        return self.process.stdin, self.process.stdout


def start(device: str) -> Worker:
    """Start a worker; its output other than answers is dropped."""
    command = [sys.executable, str(Path(__file__).with_name("verdicts_worker.py")), device]
    return Worker(
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    )


def ask_all(workers: list[Worker], case: str, seconds: float) -> Trial:
    """Have some processes time quads and the product judge them; ask the others where it wants more."""
    answers: list[Series] = []
    for each in workers:
        quads = each.ask("quads", case, seconds / MORE_PROCESSES)
        kept = tuple(Quad(**{**quad, "seconds": tuple(quad["seconds"])}) for quad in quads)
        answers.append(Series("base", case, kept, seconds / MORE_PROCESSES))
        if len(answers) >= PROCESSES:
            found = conclude(answers, MARGIN)
            if not wants_more(found, MARGIN):
                break
    return Trial(OURS, case, found.ratio, found.verdict, found.reason and found.reason.code)


def trials(options: argparse.Namespace, ways: list[str], done: int) -> Iterator[list[Trial]]:
    """Do all trials after the first `done`; all of a trial runs one after the other, in changing order."""
    workers: list[Worker] = []
    begin = time.monotonic()
    for number in range(done, options.trials):
        if options.stop_after and time.monotonic() - begin > options.stop_after:
            break
        if number % options.renew == 0 or not workers:
            for worker in workers:
                worker.end()
            workers = [start(options.device) for _ in range(MORE_PROCESSES)]
            for worker in workers:  # loads and compiles before the next one starts
                worker.ask("quads", "same", 0.01)
        found = []
        for case in CASES:
            those = ["quads", *ways] if number % options.peers_every == 0 else ["quads"]
            turn = number // options.peers_every % len(those)
            for way in those[turn:] + those[:turn]:
                if way == "quads":
                    found.append(ask_all(workers, case, options.seconds))
                else:
                    a, b = workers[number % MORE_PROCESSES].ask(way, case, options.seconds)
                    verdict = "SLOWER" if b > a * (1 + MARGIN) else "SAME"
                    verdict = "FASTER" if a > b * (1 + MARGIN) else verdict
                    found.append(Trial(PEERS[way], case, b / a, verdict))
        yield found
        if sys.stderr.isatty():
            print(f"\rtrial {number + 1} of {options.trials}", end="", file=sys.stderr)
    for worker in workers:
        worker.end()


def done_before(path: Path | None) -> list[list[Trial]]:
    """Return the trials that the file holds, a line each; a last line that was not finished is left out."""
    text = path.read_text(encoding="utf-8") if path and path.exists() else ""
    return [[Trial(**each) for each in json.loads(line)] for line in text.split("\n")[:-1]]


@contextmanager
def loaded(wanted: bool) -> Iterator[None]:
    """Keep all cores but one busy meanwhile."""
    count = len(os.sched_getaffinity(0)) - 1 if wanted else 0
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def table(found: list[Trial]) -> str:
    """Lay out how often each way was right."""
    below = ("trials", "false", "false", "slower", "open", "same", "copy", "+2 %")
    widths = (7, 7, 7, 8, 7, 9, 9, 9)
    lines = [f"{'':47}{'same':>7}{'copy':>7}{'+2 %':>8}{'+2 %':>7}  p95 |ratio-1|    ratio"]
    lines.append(f"{'':40}" + "".join(f"{text:>{width}}" for text, width in zip(below, widths, strict=True)))
    for way in dict.fromkeys(each.way for each in found):
        mine = {case: [each for each in found if each.way == way and each.case == case] for case in CASES}

        def share(case: str, *verdicts: str, mine: dict[str, list[Trial]] = mine) -> str:
            return f"{sum(each.verdict in verdicts for each in mine[case]) / len(mine[case]):.1%}"

        def p95(case: str, mine: dict[str, list[Trial]] = mine) -> str:
            off = sorted(abs(each.ratio - 1) for each in mine[case])
            return f"{off[min(len(off) - 1, round(0.95 * len(off)))]:.4f}"

        different = ("FASTER", "SLOWER")
        ratio = f"{statistics.median(each.ratio for each in mine['more']):.4f}"
        told = share("same", *different), share("copy", *different), share("more", "SLOWER")
        cells = (
            str(len(mine["same"])),
            *told,
            share("more", "UNDECIDED", "INVALID"),
            p95("same"),
            p95("copy"),
            ratio,
        )
        lines.append(
            f"{way:40}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        )
    return "\n".join(lines)


def main() -> None:
    """Run the trials and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each way for each case of a trial")
    parser.add_argument(
        "--peers-every", type=int, default=1, metavar="N", help="peers on each Nth trial only"
    )
    parser.add_argument("--renew", type=int, default=20, help="trials between fresh processes")
    parser.add_argument("--stop-after", type=float, help="seconds after which no trial is begun any more")
    parser.add_argument("--load", action="store_true", help="keep all other cores busy")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep every trial, and go on after those kept"
    )
    options = parser.parse_args()
    ways = ["autorange", "print_performance"] + (["do_bench"] if options.device == "cuda" else [])
    load = os.getloadavg()[0]
    before, done = done_before(options.json), []
    with loaded(options.load), options.json.open("w") if options.json else nullcontext() as file:
        for trial in itertools.chain(before, trials(options, ways, len(before))):
            done.append(trial)
            if file:
                print(json.dumps([asdict(each) for each in trial]), file=file, flush=True)
    busy = "and all other cores kept busy" if options.load else "none added"
    print(f"\n{len(done)} trials of {options.seconds} s, margin {MARGIN:.0%}; load {load:.1f}, {busy}")
    print(table([each for trial in done for each in trial]))


if __name__ == "__main__":
    main()
