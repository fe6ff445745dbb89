"""How often are verdicts right? Ours, and those of the usual ways to time two kernels, on the same trials.

    python benchmarks/verdicts.py [--trials 200] [--seconds 1] [--margin 1%] [--work 1.02,1.2] [--load]
    python benchmarks/verdicts.py --judge TRIALS

Questions of a trial: is a kernel different from itself, from a second copy of it, and from one with more
work, for each share of `--work`? Each way has `--seconds` for each question. A way calls two kernels
different if their ratio is off by more than the margin; ours if its whole interval is. Ours runs processes as
`probe bench-kernel` does: children forked from one server, each for its part of the time, and more of them
where the verdict wants more. Children are new in every trial, or every `--renew` trials where starting one is
slow (on a GPU).

`--json TRIALS` keeps every trial with its quads, and goes on after those that the file has; `--judge`
concludes anew from the quads in such files, which shows what a change of the judge does on the same samples.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_probe.bench.verdict import conclude, wants_more
from inductor_probe.harness.budget import MORE_PROCESSES, PROCESSES, share_of
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import Quad, Series

EQUAL = ("same", "copy")
OURS = "quads in forked processes (probe)"
PEERS = {
    "autorange": "Timer.blocked_autorange, one after the other",
    "print_performance": "inductor's print_performance",
    "do_bench": "triton.testing.do_bench",
}
DISTURBED = measured("core-lost", "hazard", Subject("machine", ""), {"times": 1})


@dataclass(frozen=True)
class Trial:
    """What one way said of one case.

    Attributes:
        ratio: of times. verdict: of ours, or by whether the ratio leaves the margin. note: why not FASTER or
            SLOWER. load: average of the last minute.
        processes: quads of each of our processes, in short; see `packed`.
    """

    way: str
    case: str
    ratio: float
    verdict: str
    note: str | None = None
    load: float = 0.0
    processes: list[Any] = field(default_factory=list)


def percent(text: str) -> float:
    """Return `0.5%` or `0.005` as a number."""
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


class Child:
    """A process that times what it is asked to."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = connection.makefile("rw", encoding="utf-8")

    def ask(self, **question: Any) -> Any:
        """Have it time a case; return its answer."""
        print(json.dumps(question), file=self.lines, flush=True)
        line = self.lines.readline()
        if not line:
            sys.exit(f"a child ended when asked for {question}")
        return json.loads(line)

    def end(self) -> None:
        """Let it end."""
        self.lines.close()
        self.connection.close()


class Server:
    """A process that has compiled the kernels, and forks children."""

    def __init__(self, kind: str, works: Sequence[str]) -> None:
        self.door, other = socket.socketpair()
        script = Path(__file__).with_name("verdicts_worker.py")
        settings = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        command = [sys.executable, str(script), kind, ",".join(works)]
        errors = None if os.environ.get("VERDICTS_DEBUG") else subprocess.DEVNULL
        self.process = subprocess.Popen(
            command, stdin=other, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, **settings}
        )
        other.close()

    def fork(self, seed: int) -> Child:
        """Return a new child."""
        here, there = socket.socketpair()
        socket.send_fds(self.door, [str(seed).encode()], [there.fileno()])
        there.close()
        return Child(here)

    def end(self) -> None:
        """Let it end."""
        self.door.close()
        self.process.wait()


def packed(quads: list[dict[str, Any]]) -> list[list[Any]]:
    """Return quads in short: `[4 times in ns, BAAB, guard, disturbed]`, flags as 0 and 1."""
    return [
        [
            *(round(seconds * 1e9, 2) for seconds in quad["seconds"]),
            int(quad["order"] == "BAAB"),
            int(quad["guard"]),
            int(quad["disturbed"] is not None),
        ]
        for quad in quads
    ]


def unpacked(quads: list[list[Any]], case: str, spent: float) -> Series:
    """Return the quads of one process as the product has them."""
    return Series(
        "base",
        case,
        tuple(
            Quad(
                "BAAB" if row[4] else "ABBA",
                (row[0] / 1e9, row[1] / 1e9, row[2] / 1e9, row[3] / 1e9),
                bool(row[5]),
                DISTURBED if row[6] else None,
            )
            for row in quads
        ),
        spent,
    )


def judge(
    processes: Iterator[list[Any]], case: str, options: argparse.Namespace, load: float | None = None
) -> Trial:
    """Conclude from processes, and from more of them where the product wants more."""
    series, rows, comparison = list[Series](), list[Any](), None
    for quads in itertools.islice(processes, MORE_PROCESSES):
        rows.append(quads)
        series.append(unpacked(quads, case, share_of(options.seconds, len(series))))
        if len(series) >= PROCESSES:
            comparison = conclude(series, options.margin)
            if not wants_more(comparison, options.margin):
                break
    if comparison is None:
        comparison = conclude(series, options.margin)
    return Trial(
        OURS, case, comparison.ratio, comparison.verdict, note_of(comparison), load or load_average(), rows
    )


def note_of(comparison: Comparison) -> str:
    """Return interval, processes and reason in short."""
    reason = f" {comparison.reason.code}" if comparison.reason else ""
    interval = f"{comparison.low:.4f}..{comparison.high:.4f}"
    return f"{interval} of {len(comparison.process_ratios)}, {comparison.excluded} excluded{reason}"


def load_average() -> float:
    """Return how many processes wanted a core, on average over the last minute."""
    return os.getloadavg()[0]


def trials(options: argparse.Namespace, ways: list[str], done: int) -> Iterator[list[Trial]]:
    """Do all trials after the first `done`; all of a trial runs one after the other, in changing order."""
    server, children, numbers = (
        Server("triton" if options.device == "cuda" else options.kernel, options.works),
        list[Child](),
        itertools.count(done * 1000),
    )
    begin, cases = time.monotonic(), [*EQUAL, *options.works]

    def processes(case: str) -> Iterator[list[Any]]:
        for number in range(MORE_PROCESSES):
            while len(children) <= number:
                children.append(server.fork(next(numbers)))
            question = {"way": "quads", "case": case, "seconds": share_of(options.seconds, number)}
            question["precision"] = options.margin / 4
            yield packed(children[number].ask(**question))

    for number in range(done, options.trials):
        if options.stop_after and time.monotonic() - begin > options.stop_after:
            break
        rng, answers = random.Random(number), list[Trial]()  # noqa: S311 - no secret
        order = [(case, way) for case in cases for way in ("quads", *ways)]
        if not options.peers_every or number % options.peers_every:
            order = [(case, "quads") for case in cases]
        rng.shuffle(order)
        for case, way in order:
            if way == "quads":
                answers.append(judge(processes(case), case, options))
                continue
            child = children[0] if children else server.fork(next(numbers))
            a, b = child.ask(way=way, case=case, seconds=options.seconds, precision=0.0)
            if not children:
                child.end()
            verdict = "SLOWER" if b > a * (1 + options.margin) else "SAME"
            verdict = "FASTER" if a > b * (1 + options.margin) else verdict
            answers.append(Trial(PEERS[way], case, b / a, verdict, None, load_average()))
        if number % options.renew == options.renew - 1:
            while children:
                children.pop().end()
        yield answers
        print(f"trial {number + 1} of {options.trials}", end="\r", file=sys.stderr, flush=True)
    while children:
        children.pop().end()
    server.end()


def kept_trials(path: Path | None) -> list[list[Trial]]:
    """Return the trials that a file has, a line each; a last line that was not finished is left out."""
    text = path.read_text(encoding="utf-8") if path and path.exists() else ""
    return [[Trial(**trial) for trial in json.loads(line)] for line in text.split("\n")[:-1]]


@contextmanager
def loaded(count: int) -> Iterator[None]:
    """Keep so many cores busy meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def table(answers: list[Trial], margin: float) -> str:
    """Lay out how often each way was right: a line for each way and case."""
    heads = {"work": 6, "trials": 8, "FASTER": 8, "SLOWER": 8, "SAME": 8, "open": 8}
    heads |= {"median ratio": 15, "p95 error": 11}
    lines = [" " * 46 + "".join(f"{head:>{width}}" for head, width in heads.items())]
    cases = [*EQUAL, *sorted({trial.case for trial in answers} - {*EQUAL}, key=float)]
    for way, case in itertools.product(dict.fromkeys(trial.way for trial in answers), cases):
        rows = [trial for trial in answers if (trial.way, trial.case) == (way, case)]
        if not rows:
            continue
        truth = 1.0 if case in EQUAL else float(case)
        errors = sorted(abs(trial.ratio / truth - 1) for trial in rows)
        error = errors[min(len(errors) - 1, round(0.95 * len(errors)))]
        cells = [
            f"{sum(trial.verdict in verdicts for trial in rows) / len(rows):8.1%}"
            for verdicts in (("FASTER",), ("SLOWER",), ("SAME",), ("UNDECIDED", "INVALID"))
        ]
        ratio = statistics.median(trial.ratio for trial in rows)
        lines.append(f"{way:46}{case:>6}{len(rows):8}{''.join(cells)}{ratio:15.4f}{error:11.4f}")
    return "\n".join(lines)


def main() -> None:
    """Run the trials, or judge those of files anew, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each way for each case of a trial")
    parser.add_argument("--margin", type=percent, default=0.01, help="0.5%%, 1%%")
    parser.add_argument("--work", default="1.02", help="how much there is to do in other kernels: 1.02,1.2")
    parser.add_argument(
        "--peers-every",
        type=int,
        default=1,
        metavar="N",
        help="the usual ways on each Nth trial only, or never (0)",
    )
    parser.add_argument("--renew", type=int, help="trials that share children (1; on a GPU 40)")
    parser.add_argument("--stop-after", type=float, help="seconds after which no trial is begun any more")
    parser.add_argument("--load", action="store_true", help="keep all cores busy")
    parser.add_argument(
        "--kernel",
        choices=("vector", "long", "scalar"),
        default="vector",
        help="as inductor writes it; 20 times as long; or a loop that a core has two speeds for",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--json", type=Path, metavar="TRIALS", help="keep trials there, and go on after those"
    )
    parser.add_argument("--judge", type=Path, metavar="TRIALS", help="conclude anew from kept quads")
    options = parser.parse_args()
    options.works = options.work.split(",") if options.work else []
    options.renew = (40 if options.device == "cuda" else 1) if options.renew is None else options.renew
    ways = ["autorange", "print_performance"] + (["do_bench"] if options.device == "cuda" else [])
    if options.judge:
        done = [
            [
                judge(iter(trial.processes), trial.case, options, trial.load) if trial.way == OURS else trial
                for trial in rows
            ]
            for rows in kept_trials(options.judge)
        ]
    else:
        before, done = kept_trials(options.json), []
        busy = len(os.sched_getaffinity(0)) if options.load else 0
        with loaded(busy), options.json.open("a") if options.json else nullcontext() as file:
            done += before
            for trial in trials(options, ways, len(before)):
                done.append(trial)
                if file:
                    print(json.dumps([vars(answer) for answer in trial]), file=file, flush=True)
    answers = [answer for trial in done for answer in trial]
    loads = sorted(answer.load for answer in answers)
    print(
        f"\n{len(done)} trials of {options.seconds:g} s, margin {options.margin:.2g}; "
        f"{'a busy loop on each core added; ' if options.load else ''}"
        f"load {loads[0]:.1f} to {loads[-1]:.1f}, median {statistics.median(loads):.1f}"
    )
    print(table(answers, options.margin))


if __name__ == "__main__":
    main()
