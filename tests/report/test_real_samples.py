"""Reports of real measurements: whatever names the same thing has the same time, wherever it is shown.

`tests/fixtures/make_samples.py` makes the samples; `tests/bench/test_times.py` has simulated ones.
"""

from __future__ import annotations

import re
import shutil
from itertools import combinations
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.api.bench import Bench
from inductor_probe.model.bench import BenchResult
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import duration
from tests.dumps import run_in
from tests.fixtures.make_samples import CASES, GPU, SAMPLES

TIME = r"\d[\d.,]* (?:ns|us|ms|s)"
ROW = re.compile(rf"^ *(?P<name>\S.*?)  +(?P<time>{TIME})(?:  |$)")
CLAUSES = (  # Compiled call takes 28.49 us: kernels 27.21 us; rest (wrapper) 1.27 us. Guards add 9 us.
    re.compile(rf"(?P<name>Compiled call) takes (?P<time>{TIME}):"),
    re.compile(rf"(?P<name>rest \(wrapper\)) (?P<time>{TIME}),"),
    re.compile(rf"(?P<name>Guards) add (?P<time>{TIME})"),
)
GPU_ROWS = " (GPU)"
FILES = sorted(SAMPLES.glob("*.json"))
"""Real samples: those of `GPU` are made on a machine that has one."""


def rows(text: str) -> list[tuple[str, str]]:
    """Return what each row and each clause of a report names, and its time."""
    pairs = []
    for line in text.splitlines():
        matches = [ROW.match(line), *(clause.search(line) for clause in CLAUSES)]
        pairs += [(match["name"].strip(), match["time"]) for match in matches if match]
    shown = [(name.removesuffix(GPU_ROWS), time) for name, time in pairs if "…" not in name]
    return [(re.sub(r" x\d+$", "", name), time) for name, time in shown]


def disagreements(pairs: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return the pairs of rows that name the same thing and have other times."""
    return [(a[0], a[1], b[1]) for a, b in combinations(pairs, 2) if a[0] == b[0] and a[1] != b[1]]


def times_in_record(result: BenchResult) -> list[tuple[str, str]]:
    """Return all times of the record that `--json` is, by name, as they would be shown."""
    pairs = [(time.name.replace(" alone", "", 1), time.seconds) for time in result.times]
    if result.overheads and result.data == "warm":
        called = {"call": "Compiled call"}
        side = "device" if result.overheads.device == "cuda" else "host"
        pairs += [
            (called.get(row.kind, row.name), row.seconds)
            for row in result.overheads.rows
            if row.kind in ("kernel", *called) and row.side == side
        ]
    if result.data == "warm":
        pairs += [(row.work.name, row.seconds) for row in result.roofline_rows]
    return [(name, duration(seconds)) for name, seconds in pairs]


def report(path: Path, *, details: bool = False, margin: float | None = None) -> Bench:
    return ip.verdict(str(path), margin=margin).with_details(details)


def test_every_case_has_its_samples() -> None:
    assert set(CASES) <= {path.stem for path in FILES} <= {*CASES, *GPU}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rows_that_name_the_same_thing_have_the_same_time(path: Path) -> None:
    """`Compiled call 44.38 us` stood above `compiled 62.13 us`, `guards 453.8 us` beside one of 18.33 us."""
    shown: list[tuple[str, str]] = []
    for details in (False, True):
        for width in (80, 120, 200):
            text = to_text(report(path, details=details).document, width)
            shown += rows(text)
    shown = list(dict.fromkeys(shown))
    assert shown, "no row was read"
    result = report(path).result
    both = [*shown, *times_in_record(result)] if result.data == "warm" else times_in_record(result)
    assert disagreements(list(dict.fromkeys(both))) == []
    assert disagreements(shown if result.data == "warm" else []) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_another_margin_and_another_view_have_the_same_times(path: Path) -> None:
    plain, other = report(path), report(path, margin=0.05)
    assert plain.result.times == other.result.times
    assert plain.result.overheads == other.result.overheads
    markdown = [pair for line in plain.markdown.splitlines() if (pair := _cells(line))]
    assert disagreements(list(dict.fromkeys([*markdown, *times_in_record(plain.result)]))) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_remark_has_the_time_of_what_it_names(path: Path) -> None:
    """`a call of Compiled call takes 1.6 s` stood below 1.090 s: those were eager's."""
    result = report(path).result
    for comparison in result.comparisons:
        for remark in comparison.remarks:
            if remark.code == "few-samples":
                assert remark.number("call_s") == result.time(remark.subject.name).seconds


def _cells(line: str) -> tuple[str, str] | None:
    """Return name and time of a row of a table in markdown: `| \\`k_v2\\` | 3.1 us |`."""
    cells = [cell.strip(" `*&nbsp;") for cell in line.split("|")]
    if len(cells) > 2 and re.fullmatch(TIME, cells[2]):
        return cells[1], cells[2]
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_report_is_short_and_answers_first(path: Path) -> None:
    """At most 25 lines: a sentence, the table, what follows from it, and warnings last."""
    assert len(to_text(report(path).document, 140).splitlines()) <= 25
    lines = to_text(report(path).document, 400).splitlines()  # a sentence in one line
    assert lines[0].endswith(".")
    assert not ROW.match(lines[0])
    warnings = [number for number, line in enumerate(lines) if line.startswith("warning: ")]
    assert warnings == list(range(len(lines) - len(warnings), len(lines)))


def test_why_has_the_times_of_the_report(tmp_path: Path) -> None:
    """`probe why` had medians of all rounds, also of those in which the machine was busy."""
    run = run_in("torch-2.13.0-cpu/hflip_cl")
    graph = ip.open_run(Path(shutil.copytree(run, tmp_path / run.name))).graphs[0]
    shutil.copy(SAMPLES / "loaded.json", graph.path / "output_code_bench.json")
    overheads = report(SAMPLES / "loaded.json").result.overheads
    assert overheads is not None
    kernels = {row.name: row.seconds for row in overheads.rows if row.kind == "kernel"}
    assert graph.times.kernels == kernels
    assert kernels
