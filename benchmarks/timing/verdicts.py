"""How often are verdicts right? Ours, and those of the usual ways to time two kernels, on the same trials.

    python -m benchmarks.timing.verdicts [--trials 200] [--seconds 1] [--margin 1%] [--work 1.02,1.2]
        [--load [8]]
    python -m benchmarks.timing.verdicts --pairs 3ms:1.2ms,10ms:30us,100us:80us --load 8 --cores 0,1
        --seconds 10
    python -m benchmarks.timing.verdicts --judge TRIALS [TRIALS ...]

Questions of a trial: is a kernel different from itself, from a second copy of it, and from one with more
work, for each share of `--work`? Each way has `--seconds` for each question. A way calls two kernels
different if their ratio is off by more than the margin; ours if its whole interval is. Ours runs processes as
`probe bench-kernel` does: children forked from one server, each for its part of the time, and more of them
where the verdict wants more. Children are new in every trial, or every `--renew` trials where starting one is
slow (on a GPU).

With `--pairs`, the questions are how long one program takes beside another, each as long as its name says on
this machine when it is idle, and whether the interval of a busy machine holds the ratio of the idle one: the
first `--quiet` trials are made before busy loops start, and the median of their ratios is the truth for the
others of the same file. `--cores` are those that all of it runs on, with its children and busy loops, so that
several of it can run beside each other, each with a `--json` of its own.

`--json TRIALS` keeps every trial with its quads, and goes on after those that the file has; `--judge`
concludes anew from the quads in such files, which shows what a change of the judge does on the same samples.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inductor_probe.bench.stop_rule import wants_more
from inductor_probe.bench.times import blocks_of, times_of
from inductor_probe.bench.verdict import conclude
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
DISTURBED = [
    None,
    measured("core-lost", "hazard", Subject("machine", ""), {"times": 1}),
    measured("cpu-time", "hazard", Subject("machine", ""), {"times": 1}),
]


@dataclass(frozen=True)
class Trial:
    """What one way said of one case.

    Attributes:
        ratio: of times. verdict: of ours, or by whether the ratio leaves the margin. note: why not FASTER or
            SLOWER. load: average of the last minute.
        processes: quads of each of our processes, in short; see `packed`. cores: the part of its time in
            which each had a core.
        loops: busy loops beside it. interval: ours. busy: as ours says. below: a time of ours is below every
            sample of its side.
        truth: the ratio on the idle machine, where that was measured.
    """

    way: str
    case: str
    ratio: float
    verdict: str
    note: str | None = None
    load: float = 0.0
    processes: list[Any] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    loops: int = 0
    interval: tuple[float, float] = (0.0, math.inf)
    busy: bool = False
    below: bool = False
    truth: float | None = None


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
            command,
            stdin=other.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **settings},
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
    """Return quads in short: `[4 times in ns, BAAB, guard, disturbed]`, flags as 0 and 1, CPU time as 2."""
    return [
        [
            *(round(seconds * 1e9, 2) for seconds in quad["seconds"]),
            int(quad["order"] == "BAAB"),
            int(quad["guard"]),
            1 + (quad["disturbed"]["code"] == "cpu-time") if quad["disturbed"] else 0,
        ]
        for quad in quads
    ]


def unpacked(quads: list[list[Any]], case: str, spent: float, core: float | None) -> Series:
    """Return the quads of one process as the product has them."""
    a, _, b = case.rpartition(":")
    return Series(
        a or "base",
        b,
        tuple(
            Quad(
                "BAAB" if row[4] else "ABBA",
                (row[0] / 1e9, row[1] / 1e9, row[2] / 1e9, row[3] / 1e9),
                bool(row[5]),
                DISTURBED[row[6]],
            )
            for row in quads
        ),
        spent,
        core,
    )


def judge(
    processes: Iterable[tuple[list[Any], float | None]], case: str, options: argparse.Namespace, **facts: Any
) -> Trial:
    """Conclude from processes, and from more of them where the product wants more."""
    series, rows, cores = list[Series](), list[Any](), list[float]()
    for quads, core in itertools.islice(processes, MORE_PROCESSES):
        rows.append(quads)
        cores += [core] if core is not None else []
        series.append(unpacked(quads, case, share_of(options.seconds, len(series)), core))
        comparison = conclude(series, options.margin)
        if len(series) >= PROCESSES and not wants_more(comparison, options.margin):
            break
    times = times_of(series, [comparison], {})
    return Trial(
        way=OURS,
        case=case,
        ratio=comparison.ratio,
        verdict=comparison.verdict,
        note=note_of(comparison),
        processes=rows,
        cores=cores,
        interval=(comparison.low, comparison.high),
        busy=comparison.busy,
        below=any(time.seconds < 0.9999 * min(blocks_of(time.name, series)) for time in times),
        **{"load": load_average(), **facts},
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
    kind = "triton" if options.device == "cuda" else options.kernel
    server, children, numbers = Server(kind, options.works), list[Child](), itertools.count(done * 1000)
    begin, cases = time.monotonic(), [*options.equal, *options.works]

    def processes(case: str) -> Iterator[tuple[list[Any], float]]:
        for number in range(MORE_PROCESSES):
            while len(children) <= number:
                children.append(server.fork(next(numbers)))
            question = {"way": "quads", "case": case, "seconds": share_of(options.seconds, number)}
            answer = children[number].ask(**question, precision=options.margin / 4)
            yield packed(answer["quads"]), answer["core"]

    for number in range(done, options.trials):
        if options.stop_after and time.monotonic() - begin > options.stop_after:
            break
        rng, answers = random.Random(number), list[Trial]()  # noqa: S311 - no secret
        order = [(case, way) for case in cases for way in ("quads", *ways)]
        if not options.peers_every or number % options.peers_every:
            order = [(case, "quads") for case in cases]
        rng.shuffle(order)
        loops = options.load if number >= options.quiet else 0
        with loaded(loops):
            for case, way in order:
                if way == "quads":
                    answers.append(judge(processes(case), case, options, loops=loops))
                    continue
                child = children[0] if children else server.fork(next(numbers))
                a, b = child.ask(way=way, case=case, seconds=options.seconds, precision=0.0)
                if not children:
                    child.end()
                verdict = "SLOWER" if b > a * (1 + options.margin) else "SAME"
                verdict = "FASTER" if a > b * (1 + options.margin) else verdict
                answers.append(Trial(PEERS[way], case, b / a, verdict, load=load_average(), loops=loops))
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


def judged(path: Path, options: argparse.Namespace) -> list[list[Trial]]:
    """Return the trials of a file, ours judged anew."""

    def anew(trial: Trial) -> Trial:
        if trial.way != OURS:
            return trial
        processes = itertools.zip_longest(trial.processes, trial.cores)
        return judge(processes, trial.case, options, load=trial.load, loops=trial.loops)

    return [[anew(trial) for trial in rows] for rows in kept_trials(path)]


@contextmanager
def loaded(count: int) -> Iterator[None]:
    """Run so many busy loops meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def table(answers: list[Trial]) -> str:
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


def with_truth(trials: list[list[Trial]]) -> list[list[Trial]]:
    """Return those of a file, pairs with the ratio that ours had without busy loops."""
    ratios: dict[str, list[float]] = {}
    for trial in itertools.chain(*trials):
        if trial.way == OURS and not trial.loops:
            ratios.setdefault(trial.case, []).append(trial.ratio)
    truths = {case: statistics.median(several) for case, several in ratios.items() if ":" in case}
    return [[replace(trial, truth=truths.get(trial.case)) for trial in trials] for trials in trials]


def table_of_pairs(answers: list[Trial]) -> str:
    """Lay out what each way says of pairs of programs beside the ratio of the idle machine."""
    heads = {"trials": 8, "idle": 9, "held": 7, "open": 7, "false": 7, "decided": 9, "<= 1.25": 9, "busy": 7}
    heads |= {"below": 7, "ratio/idle": 12, "p5": 8, "p95": 8}
    lines = [f"{'':46}{'case':>12}" + "".join(f"{head:>{width}}" for head, width in heads.items())]
    pairs = [trial for trial in answers if trial.truth and ":" in trial.case]
    keys = dict.fromkeys((trial.loops > 0, trial.case, trial.way) for trial in pairs)
    for loops, case, way in sorted(keys):
        rows = [trial for trial in pairs if (trial.loops > 0, trial.case, trial.way) == (loops, case, way)]
        ours = way == OURS
        undecided = [trial.verdict in ("UNDECIDED", "INVALID") for trial in rows]
        held = [trial.interval[0] <= (trial.truth or 0) <= trial.interval[1] for trial in rows]
        narrow = [trial.interval[1] / max(trial.interval[0], 1e-9) <= 1.25 for trial in rows]
        off = sorted(trial.ratio / (trial.truth or 1) for trial in rows)
        counts = [
            sum(held),
            sum(undecided),
            sum(not (one or other) for one, other in zip(held, undecided, strict=True)),
            len(rows) - sum(undecided),
            sum(few and not no for few, no in zip(narrow, undecided, strict=True)),
            sum(trial.busy for trial in rows),
            sum(trial.below for trial in rows),
        ]
        cells = [
            f"{count if ours else '':>{width}}"
            for count, width in zip(counts, (7, 7, 7, 9, 9, 7, 7), strict=True)
        ]
        spread = [statistics.median(off), off[len(off) // 20], off[len(off) - 1 - len(off) // 20]]
        name = f"{'busy' if loops else 'idle'}: {way}"
        lines.append(
            f"{name:46}{case:>12}{len(rows):8}{statistics.median(trial.truth or 0 for trial in rows):9.4g}"
            + "".join(cells)
            + f"{spread[0]:12.3f}{spread[1]:8.3f}{spread[2]:8.3f}"
        )
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
    parser.add_argument(
        "--load", type=int, nargs="?", default=0, const=-1, help="busy loops beside it; 1 for each core"
    )
    parser.add_argument("--pairs", default="", help="programs by their lengths: 3ms:1.2ms,10ms:30us")
    parser.add_argument("--quiet", type=int, help="trials without busy loops (3 with --pairs, else none)")
    parser.add_argument("--cores", help="to run on, with children and busy loops: 0,1")
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
    parser.add_argument(
        "--judge", type=Path, nargs="+", metavar="TRIALS", help="conclude anew from kept quads"
    )
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {*map(int, options.cores.split(","))})
    options.load = len(os.sched_getaffinity(0)) if options.load < 0 else options.load
    options.works = (options.pairs or options.work).split(",") if options.pairs or options.work else []
    options.equal = () if options.pairs else EQUAL
    options.quiet = (3 if options.pairs else 0) if options.quiet is None else options.quiet
    if options.pairs and options.kernel == "vector":
        options.kernel = "long"
    options.renew = (40 if options.device == "cuda" else 1) if options.renew is None else options.renew
    ways = ["autorange", "print_performance"] + (["do_bench"] if options.device == "cuda" else [])
    if options.judge:
        done = [trial for file in options.judge for trial in with_truth(judged(file, options))]
    else:
        before = kept_trials(options.json)
        with options.json.open("a") if options.json else nullcontext() as file:
            done = [*before]
            for trial in trials(options, ways, len(before)):
                done.append(trial)
                if file:
                    print(json.dumps([vars(answer) for answer in trial]), file=file, flush=True)
        done = with_truth(done)
    answers = [answer for trial in done for answer in trial]
    loads = sorted(answer.load for answer in answers)
    took = "" if options.judge else f" of {options.seconds:g} s"  # of kept ones it is not kept
    print(
        f"\n{len(done)} trials{took}, margin {options.margin:.2g}; "
        f"up to {max(answer.loops for answer in answers)} busy loops beside it; "
        f"load {loads[0]:.1f} to {loads[-1]:.1f}, median {statistics.median(loads):.1f}"
    )
    if plain := [answer for answer in answers if ":" not in answer.case]:
        print(table(plain))
    if len(plain) < len(answers):
        print(table_of_pairs(answers))


if __name__ == "__main__":
    main()
