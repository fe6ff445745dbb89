"""What does inductor leave on the table? `probe whatif --try-all` for every case of the scenarios.

    python -m benchmarks.timing.whatif_all compile OUT [--device cpu|cuda | --target GPU] [--only TEXT]
        [--jobs N]
    python -m benchmarks.timing.whatif_all time OUT [--budget SECONDS] [--only TEXT ...]
        [--pinned CORES | --jobs N]
    python -m benchmarks.timing.whatif_all compile OUT --nothing [--only TEXT ...] [--jobs N]
    python -m benchmarks.timing.whatif_all nothing OUT [--budget SECONDS] [--graphs 20] [--only TEXT ...]
    python -m benchmarks.timing.whatif_all table OUT

`compile` dumps each case, and every candidate of it that `--try-all` would try: N dumps at once, of whatever
case, the cases in the order of `--only`. For a CPU they are forks of a process that has imported torch
(`tests/torch_server.py`), or with `--cold`, as ever for a GPU, processes that import it: a torch for CUDA
starts threads as it is imported. Candidates with which torch times code are dumped last, and beside others,
too: what it chooses then stands in the dump, and may differ from what it would choose alone. With
`--target` (`h200`) the code for that GPU is generated on a machine without it (`probe dump --target`), to be
timed on one that has it; what torch decides by timing code is left out, as nothing can be timed there: leave
such candidates, and cases, to a `compile` on that GPU, which goes on in the same folder; what was generated
on another machine is run with `--trust` only. With `--most` no more than the first candidates of each case
are dumped, and the table counts the others as not tried. `time`
checks and times what was dumped and has other code than the case as it is, alone, for at most `--budget`
seconds each case. With `--pinned` each case has a core of its own, which is for C++
kernels of one thread on a machine with many; with `--jobs` several are loaded and checked at once, and
take turns at timing, which is for a GPU. Both begin nothing after `--stop-after` seconds, keep what is known
after each dump and look, and go on where they were stopped. `table` prints a row for each case, and a line
for each gain.

`nothing` is the proof that no gain is invented: candidates that change nothing (settings of which torch
makes the same code), ten for each graph, which `compile --nothing` has dumped. `probe whatif` times none of
those; here they are, as if their code were other code, the same way and judged by the same rules: each is
looked at for 1 s, then for 4 s and so on, for at most `--budget` seconds a graph. How many are called a gain?
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import inductor_probe as ip
from inductor_probe.analysis.causes.candidates import times_code
from inductor_probe.api.baseline import as_it_is, recipe_of
from inductor_probe.api.candidate_dumps import dump_candidate
from inductor_probe.api.candidates import try_candidates
from inductor_probe.bench.looks import FIRST_LOOK_S, seconds_of
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.autotuning import CHOICES_NAME
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.whatif import WHATIF_NAME, Candidate, Trial
from inductor_probe.report.words.whatif import gain_sentence, reason_words
from inductor_probe.store.trials import read_trials, write_trials

ROOT = Path(__file__).parents[2]

from tests.torch_server import TorchServer  # noqa: E402 - that folder is no package's

LABEL = "a"
ON_GPU = "cuda_"
MOST_S = 10_000.0
ONE_THREAD = "TORCHINDUCTOR_COMPILE_THREADS"
WITHOUT_EFFECT = tuple(
    Candidate(settings=((f"inductor.{name}", value),))
    for name, value in (
        ("triton.autotune_pointwise", "False"),
        ("triton.persistent_reductions", "False"),
        ("triton.prefer_nd_tiling", "True"),
        ("triton.max_tiles", "1"),
        ("max_autotune_gemm_search_space", "EXHAUSTIVE"),
        ("conv_1x1_as_mm", "True"),
        ("shape_padding", "False"),
        ("b2b_gemm_pass", "True"),
        ("aot_inductor.debug_compile", "True"),
        ("triton.dense_indexing", "True"),
    )
)
"""Settings that govern what no graph for a CPU without matrix products has: their code is the same."""


def cases(device: str, only: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield each scenario of the project with the name of a case for the device, in the order of `only`."""
    sys.path.insert(0, str(ROOT / "scenarios"))
    found = []
    for script in sorted((ROOT / "scenarios").glob("check_*.py")):
        for case in importlib.import_module(script.stem).scenario.cases:
            name = f"{script.stem}::{case}"
            wanted = [number for number, text in enumerate(only or [""]) if text in name]
            if case.startswith(ON_GPU) == (device == "cuda") and wanted:
                found.append((wanted[0], script, case))
    yield from ((script, case) for _, script, case in sorted(found, key=lambda one: one[0]))


def place(out: Path, script: Path, case: str) -> Path:
    """Return the folder of a case."""
    return out / f"{script.stem}-{case}"


def run_of(folder: Path) -> ip.Run | None:
    """Go to the folder of a case, and return its run as it is; None where none was dumped to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        run = ip.open_run(LABEL)
    except NotFoundError:
        return None
    return run if run.manifest and run.manifest.of_script().outcome == "ok" else None


def dumped_run(folder: Path) -> ip.Run:
    """Go to the folder of a case, and return its run as it is, which is there."""
    if (run := run_of(folder)) is None:
        raise NotFoundError(f"there is no run {LABEL} in {folder}, or it did not end well")
    return run


@dataclass(frozen=True)
class Which:
    """Which candidates of a case are dumped: `among` these, at most so many, for a GPU that is not there."""

    among: Sequence[Candidate] | None = None
    target: str | None = None
    most: int | None = None


class Dumps:
    """The dumps of all cases, so many at once: what there is to do next, and what is done.

    A case is three kinds of tasks: the case as it is, each candidate of it, and last what `compared` does.
    With `among` those are the candidates of each case, and their code is not compared.
    """

    def __init__(self, out: Path, chosen: Iterable[tuple[Path, str]], until: float, which: Which) -> None:
        self.out, self.until, self.which = out, until, which
        self.cases = list(chosen)
        self.begun = time.monotonic()
        self.ended = self.failed = 0
        self._first = list(enumerate(self.cases))[::-1]
        self._ready: list[tuple[bool, int, Candidate | None]] = []
        self._left: Counter[int] = Counter()

    def do(self, jobs: int) -> None:
        """Do it all; a failure ends no other. Print a line for each case."""
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            running: dict[Future[Any], tuple[int, Candidate | None]] = {}
            while running or self._first or self._ready:
                while len(running) < jobs and time.time() < self.until and (self._ready or self._first):
                    future, of = self._submitted(pool)
                    running[future] = of
                if not running:
                    break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._note(future, *running.pop(future))
        spent = time.monotonic() - self.begun
        print(f"{self.ended} dumps in {spent:.0f} s, {self.failed} of them failed", flush=True)
        if self._first or self._ready:
            candidates = sum(candidate is not None for _, _, candidate in self._ready)
            print(f"stopped before {candidates} candidates, and {len(self._first)} cases with theirs")

    def _submitted(self, pool: ProcessPoolExecutor) -> tuple[Future[Any], tuple[int, Candidate | None]]:
        """Begin what comes next: candidates of cases that were dumped, in the order of cases; else a case."""
        if not self._ready:
            number, case = self._first.pop()
            return pool.submit(as_it_is_with_candidates, self.out, *case, self.which), (number, None)
        self._ready.sort(key=lambda task: task[:2])
        _, number, candidate = self._ready.pop(0)
        if candidate is None:
            return pool.submit(compared, self.out, *self.cases[number]), (number, candidate)
        return pool.submit(one_dumped, self.out, *self.cases[number], candidate), (number, candidate)

    def _note(self, future: Future[Any], number: int, candidate: Candidate | None) -> None:
        """Take up what a task has come to."""
        try:
            result = future.result()
        except ProbeError as error:
            result = f"FAILED: {error.message}"
        except Exception:
            result = f"FAILED: {traceback.format_exc()}"
        failed = isinstance(result, str) and result.startswith("FAILED")
        script, case = self.cases[number]
        name = f"{time.monotonic() - self.begun:4.0f} s  {script.stem}::{case}"
        if isinstance(result, list):  # the case as it is
            self.ended += 1
            self._left[number] = len(result)
            self._ready += [(times_code(one), number, one) for one in result]
        elif candidate is not None:
            self.ended += 1
            self.failed += failed
            self._left[number] -= 1
            if failed:
                print(f"{name}: {candidate}: {result}", flush=True)
        else:
            print(f"{name}: {result}", flush=True)
            return
        if not self._left[number] and self.which.among is None:
            self._ready.append((False, number, None))


def as_it_is_with_candidates(out: Path, script: Path, case: str, which: Which) -> list[Candidate]:
    """Dump a case as it is, and return the candidates that are to be dumped yet: for a target, or here."""
    folder = place(out, script, case)
    run = run_of(folder) or ip.dump(script, cases=[case], label=LABEL, out=folder, target=which.target)
    if which.target and any((graph.path / CHOICES_NAME).exists() for graph in run.graphs):
        return []
    known = {trial.candidate for trial in known_trials(run)}
    candidates = offered(run) if which.among is None else which.among
    wanted = [one for one in candidates if not (which.target and times_code(one))]
    return [one for one in wanted[: which.most] if one not in known]


def one_dumped(out: Path, script: Path, case: str, candidate: Candidate) -> str:
    """Dump a candidate of a case, and write down that it was; other processes may do so for the same case."""
    folder = place(out, script, case)
    run = dumped_run(folder)
    with TemporaryDirectory() as temporary:
        output = Path(temporary, "output")
        dumped = dump_candidate(as_it_is(run), ip.Run, candidate, output, beside_others=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        torch = dict(run.manifest.versions if run.manifest else ()).get("torch", "")
        write_trials(run.path, [*known_trials(run), dumped.trial], BenchSettings(), torch=torch)
    return f"FAILED: {reason_words(dumped.failure)}" if dumped.failure else ""


def compared(out: Path, script: Path, case: str) -> str:
    """Compare the code of the candidates that were dumped with that of the case; return what is to time."""
    run = dumped_run(place(out, script, case))
    trials = tried(run, MOST_S, timed=False).trials
    return f"{len(trials)} trials, {sum(trial.rank == 'not-tried' for trial in trials)} to time"


def timed(
    out: Path,
    script: Path,
    case: str,
    *,
    budget: float,
    until: float,
    turns: Path | None,
    core: Any,
    trust: bool,
    first_look: float,
) -> str:
    """Time the candidates of a case that were dumped; on a core of its own, or in turns with others."""
    folder = place(out, script, case)
    run = run_of(folder)
    if run is None:
        return "not dumped"
    number = core.get() if core is not None else None
    if number is not None:
        os.sched_setaffinity(0, {number})
    try:
        if (left := min(budget, until - time.time())) <= 0:
            return "the time was over"
        trials = tried(run, left, turns=turns, first_look=first_look, trust=trust).trials
    finally:
        if number is not None:
            core.put(number)
    return ", ".join(f"{count} {rank}" for rank, count in Counter(one.rank for one in trials).items())


def known_trials(run: ip.Run) -> tuple[Trial, ...]:
    """Return what is known of the candidates of a run."""
    return read_trials(run.path, BenchSettings())


def offered(run: ip.Run) -> tuple[Candidate, ...]:
    """Return the candidates that `--try-all` tries."""
    return ip.candidates_of(run, threads=BenchSettings().threads)


def tried(
    run: ip.Run,
    budget: float,
    *,
    among: Sequence[Candidate] | None = None,
    timed: bool = True,
    turns: Path | None = None,
    first_look: float = FIRST_LOOK_S,
    trust: bool = False,
) -> ip.Trials:
    """Try candidates of a run that were dumped: all that are offered, or those that change nothing."""
    nothing = among is not None
    settings = BenchSettings(turns=turns, copies=nothing)  # copies: code that is the same, too
    known = {trial.candidate for trial in known_trials(run)}
    candidates = [one for one in (offered(run) if among is None else among) if one in known]
    recipe = recipe_of(run) if trust else as_it_is(run)  # the latter only where it would be dumped alike
    return try_candidates(
        run, candidates, recipe, ip.Run, settings,
        budget=budget, timed=timed, first_look=first_look, same_code_only=nothing, trust=trust,
    )  # fmt: skip


def each(work: Callable[[Path, str], str], chosen: Iterable[tuple[Path, str]], jobs: int) -> None:
    """Do the work for each case, several at once; print a line as each is done. A failure ends no other."""
    chosen = list(chosen)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(guarded, work, *case): case for case in chosen}
        begin = time.monotonic()
        for number, done in enumerate(as_completed(begun), 1):
            script, case = begun[done]
            spent = time.monotonic() - begin
            print(
                f"{number}/{len(chosen)} {spent:4.0f} s  {script.stem}::{case}: {done.result()}", flush=True
            )


def guarded(work: Callable[[Path, str], str], script: Path, case: str) -> str:
    """Return what came of a case; why, where it failed."""
    try:
        return work(script, case)
    except ProbeError as error:
        return f"FAILED: {error.message}"
    except Exception:
        return f"FAILED: {traceback.format_exc()}"


def nothing(out: Path, graphs: int, budget: float, until: float, only: Sequence[str]) -> None:
    """Time candidates whose code is that of the case as it is, and count the gains among them."""
    trials: list[Trial] = []
    for script, case in cases("cpu", only):
        run = run_of(place(out, script, case))
        if not graphs or time.time() + budget > until:
            break
        if run is None or len(run.graphs) != 1:
            continue
        found = tried(run, budget, among=WITHOUT_EFFECT).trials
        trials += found
        graphs -= 1
        ranks = Counter(trial.rank for trial in found)
        print(f"{script.stem}::{case}: {dict(ranks)}", flush=True)
    (out / "nothing.json").write_text(
        json.dumps([row(trial) for trial in trials], indent=1), encoding="utf-8"
    )
    timed_ones = [trial for trial in trials if trial.ratio is not None]
    ratios = sorted(trial.ratio for trial in timed_ones if trial.ratio is not None)
    ranks = Counter(trial.rank for trial in timed_ones)
    print(f"{len(timed_ones)} candidates that change nothing: {dict(ranks)}")
    numbers = Counter(trial.looks for trial in timed_ones)
    for number, count in sorted(numbers.items()):
        seconds = " + ".join(f"{seconds_of(look):.0f}" for look in range(1, number + 1))
        print(f"{count} were looked at for {seconds} s")
    if others := len(trials) - len(timed_ones):
        print(f"{others} were not timed: their code is other code, or the budget ended")
    if ratios:
        print(f"ratios of the {len(ratios)}: {ratios[0]:.4f} to {ratios[-1]:.4f}, ", end="")
        print(f"median {ratios[len(ratios) // 2]:.4f}")


def row(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON."""
    call = trial.call
    return {"candidate": str(trial.candidate), "graph": trial.graph, "rank": trial.rank,
            "ratio": call and call.ratio, "low": call and call.low, "high": call and call.high,
            "looks": trial.looks}  # fmt: skip


def table(out: Path) -> None:
    """Print a row for each case, with the number of candidates of each rank and the best gain."""
    print("| case | gains | undecided | no change | losses | wrong | impossible | not tried | the best |")
    print("|---|---|---|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    gains: list[tuple[str, Trial]] = []
    for folder in sorted(path for path in out.iterdir() if path.is_dir()):
        run = run_of(folder)
        if run is None or not (run.path / WHATIF_NAME).exists():
            continue
        candidates = offered(run)
        trials = [trial for trial in known_trials(run) if trial.together or trial.candidate in candidates]
        counts: Counter[str] = Counter(trial.rank for trial in trials)
        counts["not-tried"] += len({*candidates} - {trial.candidate for trial in trials})
        total.update(counts)
        found = [trial for trial in trials if trial.rank == "gain"]
        best = min(found, key=lambda trial: trial.ratio or 1, default=None)
        name = folder.name.replace("-", "::", 1)
        gains += [(name, trial) for trial in found if trial.same_as is None]
        numbers = " | ".join(str(counts[rank]) for rank in ORDER)
        print(f"| {name} | {numbers} | {f'{best.candidate}: {speed(best)}' if best else ''} |")
    print("| all | " + " | ".join(str(total[rank]) for rank in ORDER) + " | |")
    print()
    settings = BenchSettings()
    for name, trial in gains:
        of_graph = f" ({trial.graph})" if trial.graph else ""
        print(f"- {name}{of_graph}: {gain_sentence(trial, settings.margin, settings.threads)}")


ORDER = ("gain", "undecided", "no-change", "loss", "wrong", "impossible", "not-tried")


def speed(trial: Trial) -> str:
    """Return how many times as fast a candidate is, with its interval."""
    assert trial.call is not None  # noqa: S101 - it is a gain
    return f"{1 / trial.call.ratio:.2f}x ({1 / trial.call.high:.2f} to {1 / trial.call.low:.2f})"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("compile", "time", "nothing", "table"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--target", metavar="GPU", help="generate code for a GPU that is not there")
    parser.add_argument("--most", type=int, help="candidates of each case that are dumped")
    parser.add_argument("--only", action="append", default=[], help="cases with this text in their names")
    parser.add_argument("--jobs", type=int, default=1, help="dumps, or cases, at once")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each case")
    parser.add_argument("--pinned", type=int, default=0, help="cores, each with a case of its own")
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--nothing", action="store_true", help="dump candidates that change nothing")
    parser.add_argument("--cold", action="store_true", help="dump in processes that import torch themselves")
    parser.add_argument("--first-look", type=float, default=FIRST_LOOK_S, help="seconds of each first look")
    parser.add_argument("--trust", action="store_true", help="run code that is not known to be made here")
    parser.add_argument("--stop-after", type=float, default=MOST_S, help="seconds; nothing begins after them")
    options = parser.parse_args()
    until = time.time() + options.stop_after
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    on_gpu = options.device == "cuda" or options.target is not None
    chosen = cases("cuda" if on_gpu else "cpu", options.only)
    os.environ[ONE_THREAD] = "1"  # in every command: a run that was made without it would be made again
    if options.what == "compile":
        among = WITHOUT_EFFECT if options.nothing else None
        dumps = Dumps(out, chosen, until, Which(among, options.target, options.most))
        if options.cold or on_gpu:
            dumps.do(options.jobs)
            return
        with TemporaryDirectory() as folder, closing(TorchServer(Path(folder))) as server, server.used():
            dumps.do(options.jobs)
    elif options.what == "time":
        cores = None
        if options.pinned:
            cores = get_context("spawn").Manager().Queue()  # a pool's workers cannot inherit a plain one
            for number in range(options.pinned):
                cores.put(number)
        jobs, turns = options.pinned or options.jobs, out / "turns" if options.jobs > 1 else None
        how = {"budget": options.budget, "until": until, "turns": turns, "trust": options.trust}
        how["first_look"] = options.first_look
        each(partial(timed, out, core=cores, **how), chosen, jobs)
    elif options.what == "nothing":
        nothing(out, options.graphs, options.budget, until, options.only)
    else:
        table(out)


if __name__ == "__main__":
    main()
