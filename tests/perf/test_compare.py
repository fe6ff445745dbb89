"""Two results compared: joined on all keys, with intervals that hold for equal code; the rest is listed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.measuring.compare import compare_runs, regressions_of
from inductor_probe.model.perf import (
    CaseKey,
    ColumnFacts,
    Interpreter,
    PerfNode,
    PerfRow,
    PerfRun,
    PerfSettings,
    RowFailure,
    RowProcess,
)
from inductor_probe.model.timing import Quad, Series
from inductor_probe.store.results import write_run
from tests.conftest import Ran

Probe = Callable[..., Ran]
EAGER_S = 2e-5


def generator(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - no secret


def key(case: str, **knobs: str) -> CaseKey:
    return CaseKey("check_x", case, tuple({"dtype": "uint8", **knobs}.items()), "cpu", 1)


def row(which: CaseKey, seconds: float, rng: random.Random, eager: float = EAGER_S) -> PerfRow:
    """A row of three processes whose times differ by some 0.3 %."""
    processes = []
    for number in range(3):
        a, b = (value * math.exp(rng.gauss(0, 0.003)) for value in (eager, seconds))
        quads = tuple(
            Quad("ABBA", tuple(t * (1 + 0.001 * rng.random()) for t in (a, b, b, a)), False, None)
            for _ in range(6)
        )
        columns = (ColumnFacts("eager"), ColumnFacts("compiled", 1))
        processes.append(RowProcess(number, "baseline", columns, (Series("eager", "compiled", quads, 0.1),)))
    return PerfRow(which, processes=tuple(processes))


def run_of(name: str, rows: list[PerfRow], **facts: str) -> PerfRun:
    return PerfRun(
        name=name,
        probe="0",
        scenario="check_x",
        command=(),
        started="2026-11-23T12:00:00+00:00",
        settings=PerfSettings(),
        interpreter=Interpreter(Path("/usr/bin/python3"), "3.11.2", facts.pop("torch", "2.13.0")),
        machine=tuple({"host": "vm", **facts}.items()),
        planned=len(rows),
        finished=True,
        rows=tuple(rows),
    )


def test_regressions_come_first_and_equal_rows_are_not_called_different() -> None:
    rng = generator(1)
    cases = [f"case{number}" for number in range(12)]
    a = run_of("a", [row(key(case), 1e-5, rng) for case in cases])
    b = run_of("b", [row(key(case), 1e-5 * (1.2 if case == "case7" else 1), rng) for case in cases])
    compared = compare_runs(a, b, 0.01)
    assert (compared.rows[0].key.case, compared.rows[0].column) == ("case7", "compiled")
    assert compared.rows[0].verdict == "SLOWER"
    assert compared.rows[0].ratio == pytest.approx(1.2, rel=0.02)
    assert {one.verdict for one in compared.rows[1:]} <= {"SAME", "UNDECIDED"}
    assert [one.key.case for one in regressions_of(compared.rows, 0.05)] == ["case7"]
    assert regressions_of(compared.rows, 0.3) == ()


def test_equal_code_is_seldom_called_different() -> None:
    """200 pairs of sessions of 6 rows each: an interval with 95 % for each row would be wrong in 60 cells."""
    wrong = 0
    for seed in range(200):
        rng = generator(seed)
        a, b = (run_of(name, [row(key(str(n)), 1e-5, rng) for n in range(6)]) for name in "ab")
        wrong += sum(one.verdict in ("SLOWER", "FASTER") for one in compare_runs(a, b, 1e-6).rows)
    assert wrong <= 20


def test_what_eager_differs_by_is_not_concluded_from() -> None:
    rng = generator(2)
    a = run_of("a", [row(key("x"), 1e-5, rng)])
    slower = row(key("x"), 1.1e-5, rng, eager=1.1 * EAGER_S)
    same_torch = compare_runs(a, run_of("b", [slower]), 0.01)
    (compiled,) = [one for one in same_torch.rows if one.column == "compiled"]
    assert compiled.control == pytest.approx(1.1, rel=0.02)
    assert compiled.verdict == "UNDECIDED"
    other_torch = compare_runs(a, run_of("b", [slower], torch="2.14.0"), 0.01)
    (compiled,) = [one for one in other_torch.rows if one.column == "compiled"]
    assert compiled.control is None
    assert compiled.verdict == "SLOWER"
    assert ("torch", ("2.13.0", "2.14.0")) in other_torch.differences


def test_rows_are_joined_on_all_keys_and_others_are_listed() -> None:
    rng = generator(3)
    bfloat = row(key("x", dtype="bfloat16"), 1e-5, rng)
    threads = replace(row(key("y"), 1e-5, rng), key=replace(key("y"), threads=2))
    a = run_of(
        "a",
        [
            row(key("x"), 1e-5, rng),
            row(key("y"), 1e-5, rng),
            PerfRow(key("z"), failure=RowFailure("memory", "no memory")),
        ],
    )
    b = run_of("b", [bfloat, threads, row(key("z"), 1e-5, rng)])
    compared = compare_runs(a, b, 0.01)
    assert compared.rows == ()
    told = {(one.key.case, one.side, one.problem) for one in compared.unpaired}
    assert told == {
        ("x", "A", "absent"), ("y", "A", "absent"), ("z", "A", "row-failed"),
        ("x", "B", "absent"), ("y", "B", "absent"),
    }  # fmt: skip


def test_rows_of_other_machines_are_named_where_not_all_are(probe: Probe, tmp_path: Path) -> None:
    """The same two nodes measured both, but one row on another one each time."""
    rng = generator(7)
    runs = []
    for name, places in (("20261123-1-x", "ab"), ("20261123-2-x", "aa")):
        run = run_of(name, [replace(row(key(case), 1e-5, rng), node=place)
                            for case, place in zip("pq", places, strict=True)])  # fmt: skip
        nodes = [
            PerfNode(host, run.interpreter, (("host", host), ("cpu", f"cpu of {host}"))) for host in "ab"
        ]
        runs.append(replace(run, executor="ray", nodes=tuple(nodes)))
    compared = compare_runs(*runs, 0.01)
    assert compared.differences == ()
    assert {(one.key.case, one.hosts) for one in compared.rows} == {("p", None), ("q", ("b", "a"))}
    folder = tmp_path / ".probe" / "results"
    folder.mkdir(parents=True)
    for run in runs:
        write_run(folder, run)
    text = probe("compare", "latest~1", "latest", cwd=tmp_path).out
    assert "q: A was measured on b, B on another machine, a" in text
    assert "torch 2.13.0, a, b" in text
    shown = probe("results", "latest~1", cwd=tmp_path).out
    assert "p: measured on a (cpu of a)" in shown
    assert "compare the columns of a row" in shown
    other = replace(runs[0], nodes=(runs[0].nodes[0], replace(runs[0].nodes[1], interpreter=Interpreter(
        Path("/usr/bin/python3"), "3.11.2", "2.12.1"))))  # fmt: skip
    write_run(folder, other)
    mixed = probe("results", "latest~1", cwd=tmp_path).out
    assert "the nodes have different builds of torch: a has torch 2.13.0, b has torch 2.12.1" in mixed


def test_a_column_with_a_problem_is_not_compared() -> None:
    rng = generator(4)
    good = row(key("x"), 1e-5, rng)
    facts = (ColumnFacts("eager"), ColumnFacts("compiled", 8, problem="ran-eager"))
    bad = replace(good, processes=tuple(replace(one, columns=facts) for one in good.processes))
    compared = compare_runs(run_of("a", [good]), run_of("b", [bad]), 0.01)
    assert [one.column for one in compared.rows] == ["eager"]
    assert ("compiled", "B", "ran-eager") in {
        (one.column, one.side, one.problem) for one in compared.unpaired
    }


def test_a_column_that_was_not_timed_is_listed() -> None:
    """Its process ended before its turn: it was in neither list."""
    rng = generator(8)
    good = row(key("x"), 1e-5, rng)
    cut = replace(good, processes=tuple(replace(one, series=()) for one in good.processes))
    compared = compare_runs(run_of("a", [good]), run_of("b", [cut]), 0.01)
    assert compared.rows == ()
    assert {(one.column, one.side, one.problem) for one in compared.unpaired} == {
        ("eager", "B", "not-timed"),
        ("compiled", "B", "not-timed"),
    }


def test_one_process_decides_nothing() -> None:
    rng = generator(5)
    one = row(key("x"), 1e-5, rng)
    one = replace(one, processes=one.processes[:1])
    compared = compare_runs(run_of("a", [one]), run_of("b", [row(key("x"), 2e-5, rng)]), 0.01)
    assert {each.verdict for each in compared.rows} == {"UNDECIDED"}


def test_the_verb_says_what_became_slower_and_its_status(probe: Probe, tmp_path: Path) -> None:
    rng = generator(6)
    folder = tmp_path / ".probe" / "results"
    folder.mkdir(parents=True)
    write_run(folder, run_of("20261123-1-x", [row(key(case), 1e-5, rng) for case in "pq"]))
    rows = [row(key("p"), 1e-5, rng), row(key("q"), 1.5e-5, rng)]
    write_run(folder, run_of("20261123-2-x", rows, host="other"))
    ran = probe("compare", "latest~1", "latest", "--fail-on-regression", "5%", cwd=tmp_path)
    assert ran.status == 1
    assert "they come from different machines: host: A vm, B other" in ran.out
    first = next(line for line in ran.out.splitlines() if line.startswith("  q "))
    assert "slower" in first
    assert "1 row slower by more than 5 %" in ran.err
    assert probe("compare", "latest~1", "latest", cwd=tmp_path).status == 0
    assert probe("compare", "latest", "latest", "--fail-on-regression", "5%", cwd=tmp_path).status == 0
    narrow = probe("compare", "latest~1", "latest", cwd=tmp_path, COLUMNS="80")
    assert all(len(line) <= 80 for line in narrow.out.splitlines())
    output = json.loads(probe("compare", "latest~1", "latest", "--json", cwd=tmp_path).out)
    assert output["rows"][0]["key"]["case"] == "q"
    assert "| case |" in probe("compare", "latest~1", "latest", "--format", "markdown", cwd=tmp_path).out
    missing = probe("compare", "nope", "latest", cwd=tmp_path)
    assert missing.status == 2
    assert "there are no results nope" in missing.err
