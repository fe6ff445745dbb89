"""Two builds of torch: how their code compares in time, and what is expected of graphs under each of several.

    python -m benchmarks.timing.torch_builds measure PY_A PY_B [--budget 6s] [--processes 3] [--out FOLDER]
    python -m benchmarks.timing.torch_builds table [--out FOLDER] > benchmarks/results/torch_builds.md
    python -m benchmarks.timing.torch_builds expect PYTHON... [--write docs/guides/expect.md]

`measure` runs `probe perf --interleave PY_A PY_B` on `CASES`, both builds in one session, whose laps take
turns; on a machine that does nothing else it takes some 8 minutes. It goes on where it was stopped. `table`
prints the results as markdown: a row for each column of a case, B against A.

`expect` runs `probe expect` on `EXPECTED` under each interpreter, which needs torch and what this package
depends on, and prints a table: what holds, and what was seen where it does not. `--write` puts it into a
document, between two comments.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import inductor_probe as ip
from inductor_probe.model.codec import from_json
from inductor_probe.model.expectation import ExpectOutput
from inductor_probe.model.perf import SECOND, PerfRun, RowResult
from inductor_probe.report.units import counted
from inductor_probe.report.words.expect import found_words

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
RESULTS = Path("build/torch_builds")
FLIPS = ("uint8/channels_first/345x456", "uint8/channels_last/345x456", "float32/channels_last/345x456")
CASES: dict[str, tuple[str, ...]] = {
    "check_hflip": (*FLIPS, "sliced"),
    "check_interpolate_bilinear_aa": (
        "channels_first/batch1/345x456-271x272",
        "channels_last/batch1/345x456-271x272",
        "channels_last/batch4/345x456-271x272",
    ),
}
"""Cases of a scenario, of its matrices too."""

FLIP = ("--kernels=1", "--vectorised", "--no-copy", "--no-extern", "--no-graph-break")
ANTIALIAS = (*FLIP, "--no-fallback", "--fused=op1+op3")
EXPECTED: dict[tuple[str, str], tuple[str, ...]] = {
    ("check_hflip.py", "channels_first"): (*FLIP, "--layout=buf0=contiguous", "--bytes-at-most=294KiB"),
    ("check_hflip.py", "channels_last"): (*FLIP, "--layout=buf0=channels_last", "--bytes-at-most=294KiB"),
    ("check_interpolate_bilinear_aa.py", "separable_channels_first"): (
        *ANTIALIAS, "--layout=buf1=contiguous", "--bytes-at-most=7MB",
    ),
    ("check_interpolate_bilinear_aa.py", "separable_channels_last"): (
        *ANTIALIAS, "--layout=buf1=channels_last", "--bytes-at-most=15MB",
    ),
}  # fmt: skip
"""What somebody who made these kernels good would pin, of a script and a case of it."""
_LONGEST = 36
_PRINT_VERSION = "import torch; print(torch.__version__.partition('+')[0])"


def main() -> None:
    """Measure, print what was measured, or ask what holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser("measure")
    add.add_argument("pythons", nargs=2, metavar="PYTHON")
    add.add_argument("--budget", default="6s")
    add.add_argument("--processes", default="3")
    add.add_argument("--out", type=Path, default=RESULTS)
    verbs.add_parser("table").add_argument("--out", type=Path, default=RESULTS)
    add = verbs.add_parser("expect")
    add.add_argument("pythons", nargs="+", metavar="PYTHON")
    add.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.verb == "measure":
        measure(options.pythons, options.out, options.budget, options.processes)
    elif options.verb == "table":
        print("\n".join(lines_of(options.out)))
    else:
        text = "\n".join(expectations(options.pythons))
        print(text)
        if options.write:
            write_between(options.write, text)


def measure(pythons: Sequence[str], out: Path, budget: str, processes: str) -> None:
    """Time all cases under both interpreters; an unfinished run of a scenario is gone on with."""
    out = out.absolute()
    for scenario, cases in CASES.items():
        words = [sys.executable, "-m", "inductor_probe", "perf", str(SCENARIOS / f"{scenario}.py")]
        words += [word for case in cases for word in ("--case", case)]
        words += ["--interleave", *pythons, "--budget", budget, "--processes", processes]
        words += ["--results", str(out)]
        if any(not entry.finished and entry.scenario == scenario for entry in ip.results(out)):
            words.append("--resume")
        subprocess.run(words, check=True, cwd=ROOT)


def lines_of(out: Path) -> Iterator[str]:
    """Yield the newest finished result of each scenario as markdown.

    Raises:
        SystemExit: a scenario has none.
    """
    tables = []
    for scenario in CASES:
        entry = next((row for row in ip.results(out) if row.scenario == scenario and row.finished), None)
        if entry is None:
            raise SystemExit(f"{out} has no finished result of {scenario}: measure it first")
        tables.append(ip.open_results(str(entry.path)))
    run = tables[0].run
    if run.other is None:
        raise SystemExit(f"{tables[0].path} is of one interpreter: `measure` takes two")
    a, b = (f"torch {one.torch} ({one.git[:9]})" for one in (run.interpreter, run.other))
    yield "# Two builds of torch, whose laps take turns"
    yield ""
    command = "`python -m benchmarks.timing.torch_builds measure A B`, then `table`"
    yield f"{command}: {_machine(run)}, {run.started}."
    yield f"A is {a}, B is {b}; Python {run.interpreter.python}."
    yield f"Microseconds a call; {_settings(run)}."
    for table in tables:
        yield ""
        yield f"## {table.run.scenario}"
        yield ""
        yield "| case | column | A | B | B / A | interval | verdict |"
        yield "|---|---|---|---|---|---|---|"
        for row in table.rows:
            yield from _cells(row)


def _machine(run: PerfRun) -> str:
    facts = dict(run.machine)
    return ", ".join(filter(None, (facts.get("cpu", ""), f"{facts.get('cores', '?')} cores")))


def _settings(run: PerfRun) -> str:
    settings = run.settings
    return (
        f"{settings.budget:g} s and {counted(settings.processes or 0, 'process', 'processes')} a row, "
        f"SAME within {100 * settings.margin:g} %, 1 thread"
    )


def _cells(row: RowResult) -> Iterator[str]:
    if row.failure:
        yield f"| {row.key.case} | | | | | | {row.failure} |"
    for b in row.columns:
        if not b.facts.name.endswith(SECOND):
            continue
        a = row.column(b.facts.name.removesuffix(SECOND))
        times = [f"{1e6 * column.time.seconds:.4g}" if column and column.time else "" for column in (a, b)]
        ratio = ["", "", b.facts.problem or (a.facts.problem if a else None) or "not timed"]
        if pair := b.comparison:
            ratio = [f"{pair.ratio:.3f}", f"{pair.low:.3f} to {pair.high:.3f}", pair.verdict.lower()]
        name = b.facts.name.removesuffix(SECOND)
        yield f"| {' | '.join([row.key.case, name, *times, *ratio])} |"


def expectations(pythons: Sequence[str]) -> Iterator[str]:
    """Yield a table: what is expected, and what became of it under each interpreter."""
    versions = [
        subprocess.run(
            [python, "-c", _PRINT_VERSION], check=True, capture_output=True, text=True
        ).stdout.strip()
        for python in pythons
    ]
    yield f"| scenario, case | expected | {' | '.join(f'torch {version}' for version in versions)} |"
    yield f"|---|---|{'---|' * len(versions)}"
    tasks = [(python, *key, options) for key, options in EXPECTED.items() for python in pythons]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        outcomes = list(pool.map(lambda task: _outcomes(*task), tasks))
    for number, (script, case) in enumerate(EXPECTED):
        answers = outcomes[number * len(pythons) : (number + 1) * len(pythons)]
        for option in answers[0]:
            cells = [answer.get(option, "not asked") for answer in answers]
            yield f"| `{script}`, {case} | `{option}` | {' | '.join(cells)} |"


def _outcomes(python: str, script: str, case: str, options: Sequence[str]) -> dict[str, str]:
    """Run `probe expect` under an interpreter; return what became of each option."""
    with tempfile.TemporaryDirectory() as folder:
        words = [python, "-m", "inductor_probe", "expect", str(SCENARIOS / script), "--case", case]
        done = subprocess.run(
            [*words, *options, "--json", "--out", folder],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        if not done.stdout.startswith("{"):
            raise SystemExit(f"{python}: {script} {case}:\n{done.stderr}")
        answer = from_json(ExpectOutput, json.loads(done.stdout))
    return {
        outcome.expectation.option: (
            "holds"
            if outcome.standing == "holds"
            else f"**{outcome.standing}**: {_short(found_words(outcome))}"
        )
        for outcome in answer.outcomes
    }


def _short(sentence: str) -> str:
    """Return a sentence with the middle of long names of kernels left out."""
    return " ".join(
        f"{word[: _LONGEST // 2]}…{word[-_LONGEST // 2 :]}" if len(word) > _LONGEST else word
        for word in sentence.split(" ")
    )


def write_between(path: Path, text: str) -> None:
    """Put a table into a document, between `<!-- torch builds -->` and `<!-- end -->`.

    Raises:
        SystemExit: the document has no such lines.
    """
    begin, end = "<!-- torch builds -->\n", "<!-- end -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{path} has no lines {begin.strip()} and {end}")
    path.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
