"""Every case of every scenario's matrices: compiled, and checked against eager and float64, none timed.

    python -m benchmarks.accuracy.scenario_checks walk [SCENARIO...] [--device cpu] [--out FOLDER] [--again]
    python -m benchmarks.accuracy.scenario_checks table [--out FOLDER] > benchmarks/results/scenario_checks.md

`walk` runs `probe perf SCENARIO --check` on the cases that `FOLDER` has no result of, a few at a time: some
of each matrix of all scenarios before more of any, and the largest images one by one. It goes on where it was
stopped; `--again` takes those that were not right once more. `table` prints for each matrix how
many cases are right, and what became of the others.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import inductor_probe as ip
from inductor_probe.model.perf import PerfRun, RowResult
from inductor_probe.report.units import counted
from inductor_probe.report.words.perf import problem_sentence, row_failure_sentence
from inductor_probe.scenario import Scenario

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
RESULTS = Path("build/scenario_checks")
ORDER = ("cases", "quick", "shapes", "backward", "dtypes", "layouts", "volumes", "batches", "sizes", "large")
SMALLEST_FREE = 3 << 30  # bytes: cases that leave less memory to others are ended
_AT_ONCE, _LARGE = 16, 2000 * 2000  # cases of one `probe perf`; pixels of an image that is alone
_RIGHT, _NOT_WALKED = "right", "not walked"


@dataclass(frozen=True)
class Matrix:
    """Cases of a scenario for a device, those that no earlier matrix has, by name."""

    scenario: str
    name: str
    cases: Mapping[str, bool]  # whether one is large

    @property
    def parts(self) -> list[list[str]]:
        """Cases that one command checks, from all over the matrix."""
        small = [case for case, large in self.cases.items() if not large]
        count = -(-len(small) // _AT_ONCE)
        return [small[first::count] for first in range(count)] + [
            [case] for case, large in self.cases.items() if large
        ]


def main() -> None:
    """Walk, or print what was walked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("verb", choices=("walk", "table"))
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    matrices = matrices_of(options.scenarios, options.device)
    if options.verb == "walk":
        walk(matrices, options.out.absolute(), options.device, again=options.again)
    else:
        print("\n".join(lines_of(matrices, options.out, options.device)))


def matrices_of(names: Sequence[str], device: str) -> list[Matrix]:
    """Return the matrices of scenarios (all where none is named), in the order in which they are walked."""
    sys.path.insert(0, str(SCENARIOS))
    known: dict[str, set[str]] = {}
    scenarios: dict[str, Scenario] = {
        path.stem: importlib.import_module(path.stem).scenario
        for path in sorted(SCENARIOS.glob("check_*.py"))
        if not names or path.stem.removeprefix("check_") in names or path.stem in names
    }
    matrices = []
    for name in ORDER:
        for stem, scenario in scenarios.items():
            rows = scenario.cases if name == "cases" else scenario.matrices.get(name, {})
            taken = known.setdefault(stem, set())
            cases = {}
            for case in rows:
                knobs = scenario.case(case).knobs
                if case not in taken and knobs.get("device", "cpu") == device:
                    cases[case] = int(knobs.get("height", 0)) * int(knobs.get("width", 0)) > _LARGE
            taken.update(cases)
            if cases:
                matrices.append(Matrix(stem, name, cases))
    return matrices


def outcomes_of(out: Path) -> dict[tuple[str, str], tuple[str, PerfRun]]:
    """Return what became of each case that a folder has results of, and in which run: the newest counts."""
    outcomes = {}
    for entry in reversed(ip.results(out) if out.is_dir() else []):
        if entry.problem:
            raise SystemExit(f"{entry.path}: {entry.problem}")
        table = ip.open_results(str(entry.path))
        for row in table.rows:
            outcomes[table.run.scenario, row.key.case] = (standing_of(row), table.run)
    return outcomes


def standing_of(row: RowResult) -> str:
    """Return `right`, or what is not: `separable: WRONG, ...`."""
    if row.failure:
        return row_failure_sentence(row.failure)
    bad = [
        f"`{column.facts.name}` {problem_sentence(column.facts)}"
        for column in row.columns
        if column.facts.problem
    ]
    return "; ".join(bad) or _RIGHT


def walk(matrices: Sequence[Matrix], out: Path, device: str, *, again: bool) -> None:
    """Check what there is no result of, and end what takes too much memory."""
    outcomes = outcomes_of(out)
    done = {case for case, (standing, _) in outcomes.items() if standing == _RIGHT or not again}
    rounds = zip_longest(*([(matrix, part) for part in matrix.parts] for matrix in matrices))
    for matrix, part in filter(None, chain.from_iterable(rounds)):
        if not (cases := [case for case in part if (matrix.scenario, case) not in done]):
            continue
        begin = time.monotonic()
        words = [sys.executable, "-m", "inductor_probe", "perf", f"{SCENARIOS}/{matrix.scenario}.py"]
        words += [word for case in cases for word in ("--case", case)]
        words += ["--check", "--device", device, "--results", str(out), "--format", "csv"]
        ended = watched(words)
        seconds = time.monotonic() - begin
        print(
            f"{matrix.scenario} {matrix.name}: {counted(len(cases), 'case')}, {seconds:.0f} s{ended}",
            flush=True,
        )


def watched(words: Sequence[str]) -> str:
    """Run a command, but not into the end of this machine's memory; return what is to be said of its end."""
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as command:
        while True:
            try:
                _, said = command.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if _available() < SMALLEST_FREE:
                    command.terminate()
                    command.communicate()
                    return ": ended, it left too little memory"
    return "" if command.returncode in {0, 1} else f": status {command.returncode}: {said.strip()[-400:]}"


def _available() -> int:
    """Return how many bytes of memory can be had without swapping, as Linux counts them."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def lines_of(matrices: Sequence[Matrix], out: Path, device: str) -> Iterator[str]:
    """Yield a row for each scenario, a column for each of its matrices; then what is not right."""
    outcomes = outcomes_of(out)
    runs = [run for _, run in outcomes.values()]
    if not runs:
        raise SystemExit(f"{out} has no results: walk first")
    standings = {case: standing for case, (standing, _) in outcomes.items()}
    every = [(matrix.scenario, case) for matrix in matrices for case in matrix.cases]
    right = sum(standings.get(case) == _RIGHT for case in every)
    builds = ", ".join(sorted({f"{run.interpreter.torch} ({run.interpreter.git[:9]})" for run in runs}))
    yield f"# Cases of scenarios, checked on {device}"
    yield ""
    yield "`python -m benchmarks.accuracy.scenario_checks walk`, then `table`: `probe perf --check` compiles"
    yield "the function of each case and its variants, and compares them with eager and with float64."
    yield f"torch {builds}, {', '.join(sorted({run.started[:10] for run in runs}))}."
    yield ""
    missing = sum(case not in standings for case in every)
    yield f"Right: {right} of {counted(len(every), 'case')}; not walked: {missing}."
    yield "A cell is `right / cases`; a case that several matrices have counts in the first."
    yield ""
    names = [name for name in ORDER if any(matrix.name == name for matrix in matrices)]
    yield f"| scenario | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    for scenario in dict.fromkeys(matrix.scenario for matrix in matrices):
        cells = {matrix.name: _cell(matrix, standings) for matrix in matrices if matrix.scenario == scenario}
        yield f"| {scenario.removeprefix('check_')} | {' | '.join(cells.get(name, '') for name in names)} |"
    others = [case for case in every if standings.get(case, _RIGHT) != _RIGHT]
    if others:
        yield ""
        yield "| scenario | case | |"
        yield "|---|---|---|"
        for scenario, case in others:
            yield f"| {scenario.removeprefix('check_')} | {case} | {standings[scenario, case]} |"


def _cell(matrix: Matrix, standings: Mapping[tuple[str, str], str]) -> str:
    each = [standings.get((matrix.scenario, case), _NOT_WALKED) for case in matrix.cases]
    missing = each.count(_NOT_WALKED)
    return f"{each.count(_RIGHT)} / {len(each)}" + (f", {missing} not walked" if missing else "")


if __name__ == "__main__":
    main()
