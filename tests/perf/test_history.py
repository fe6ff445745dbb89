"""Histories: change points where times change, none where they only scatter, and the cause of each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.measuring.history import change_points, changes_in, history_of, noise_of
from inductor_probe.model.perf import GeneratedCode, PerfRun, PerfSettings, SeriesHistory
from inductor_probe.report.pages.history import plot
from inductor_probe.store.results import write_run
from tests.conftest import Ran
from tests.perf.test_compare import EAGER_S, generator, key, row, run_of
from tests.report.harmless import checked

Probe = Callable[..., Ran]


def scatter(seed: int, sizes: Sequence[tuple[int, float]], noise: float = 0.01) -> list[float]:
    """Return values of segments, each so many of one level."""
    rng = generator(seed)
    return [level + rng.gauss(0, noise) for count, level in sizes for _ in range(count)]


def places(logs: Sequence[float]) -> list[int]:
    return changes_in(logs, noise_of(logs, [[log] for log in logs]), 0.01)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([(10, 0.0), (10, 0.1)], [10]),
        ([(8, 0.0), (5, 0.2), (9, 0.05)], [8, 13]),
        ([(3, 0.0), (2, 0.3)], [3]),
        ([(6, 0.0), (1, 0.5), (6, 0.0)], []),  # one slow session
    ],
)
def test_a_time_that_changed_is_seen_where_it_did(
    sizes: list[tuple[int, float]], expected: list[int]
) -> None:
    hits = sum(places(scatter(seed, sizes)) == expected for seed in range(50))
    assert hits >= 40, f"{hits} of 50"


def test_scatter_is_seldom_a_change() -> None:
    """Of 300 histories of 20 results without a change."""
    assert sum(bool(places(scatter(seed, [(20, 0.0)]))) for seed in range(300)) <= 15


def test_the_partition_is_the_cheapest_of_all() -> None:
    """Against a search through every partition of nine values."""

    def cost(logs: Sequence[float], cuts: Sequence[int]) -> float:
        ends = [0, *cuts, len(logs)]
        parts = [logs[begin:end] for begin, end in pairwise(ends)]
        squares = sum(sum((x - sum(part) / len(part)) ** 2 for x in part) for part in parts)
        return squares / 0.01**2 + 3 * math.log(len(logs)) * len(cuts)

    def partitions(begin: int, count: int) -> list[list[int]]:
        further = [[cut, *rest] for cut in range(begin + 2, count - 1) for rest in partitions(cut, count)]
        return [[], *further]

    for seed in range(20):
        logs = scatter(seed, [(3, 0.0), (3, 0.03), (3, 0.0)])
        best = min(partitions(0, 9), key=lambda cuts: cost(logs, cuts))
        assert change_points(logs, 0.01) == best


def results(*changes: dict[str, Any], each: int = 4) -> list[PerfRun]:
    """Return results of one case, `each` of every setting: seconds of compiled, of eager, code, facts."""
    rng = generator(5)
    runs = []
    for change in changes:
        for _ in range(each):
            one = row(key("x"), change.get("seconds", 1e-5), rng, change.get("eager", EAGER_S))
            code = GeneratedCode(Path("c.py"), change.get("code", "a" * 64))
            processes = [
                replace(process, columns=(process.columns[0], replace(process.columns[1], codes=(code,))))
                for process in one.processes
            ]
            run = run_of(
                f"r{len(runs):02}", [replace(one, processes=tuple(processes))], **change.get("facts", {})
            )
            started = f"2026-11-{len(runs) + 1:02}T12:00:00+00:00"
            runs.append(replace(run, started=started, **change.get("run", {})))
    return runs


def compiled(runs: Sequence[PerfRun]) -> SeriesHistory:
    return next(one for one in history_of(runs, 0.01) if one.column == "compiled")


SLOWER = 1.2e-5


@pytest.mark.parametrize(
    ("change", "cause", "differing"),
    [
        ({"seconds": SLOWER, "code": "b" * 64}, "code", "generated code"),
        ({"seconds": SLOWER, "facts": {"torch": "2.14.0"}}, "code", "torch"),
        ({"seconds": SLOWER, "run": {"source": "abc"}}, "code", "source"),
        ({"seconds": SLOWER, "run": {"settings": PerfSettings(cold=True)}}, "method", "cold"),
        ({"seconds": SLOWER, "code": "b" * 64, "run": {"probe": "9"}}, "method", "probe"),
        ({"seconds": SLOWER, "code": "b" * 64, "facts": {"cpu": "other"}}, "machine", "cpu"),
        ({"seconds": SLOWER, "eager": 1.2 * EAGER_S}, "machine", None),
        ({"seconds": SLOWER}, "noise", None),
    ],
)
def test_a_change_has_one_of_four_causes(change: dict[str, Any], cause: str, differing: str | None) -> None:
    history = compiled(results({}, change))
    (point,) = history.changes
    assert (point.before, point.at, point.verdict, point.cause) == ("r03", "r04", "SLOWER", cause)
    assert point.ratio == pytest.approx(1.2, rel=0.02)
    assert differing is None or differing in dict(point.differences)
    assert plot(history).count("│") == 1


def test_without_a_change_there_is_none() -> None:
    assert compiled(results({}, {})).changes == ()


def test_three_results_have_a_history_and_no_changes() -> None:
    history = compiled(results({}, {"seconds": 2e-5}, {"seconds": 4e-5}, each=1))
    assert (len(history.points), history.changes) == (3, ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    for run in results({}, {"seconds": SLOWER, "facts": {"torch": "2.14.0"}, "code": "b" * 64}):
        write_run(tmp_path / "results", run)
    return tmp_path


def test_a_history_is_a_table_with_a_plot_and_a_line_for_each_change(probe: Probe, folder: Path) -> None:
    words = ("results", "--history", "check_x", "--results", "results")
    ran = probe(*words, cwd=folder, COLUMNS="200")
    assert ran.status == 0, ran.err
    assert "check_x  8 results, the oldest first" in ran.out
    assert "│" in ran.out
    assert "x, compiled: takes 1.20 times as long (" in ran.out
    assert (
        "the code is another: torch 2.13.0, then 2.14.0; generated code aaaaaaaaa, then bbbbbbbbb" in ran.out
    )
    assert ran.out.splitlines()[-1] == "1 change in 2 histories: 1 code"
    assert all(len(line) <= 80 for line in probe(*words, cwd=folder, COLUMNS="80").out.splitlines())
    record = json.loads(probe(*words, "--json", cwd=folder).out)
    assert len(record["rows"]) == 8
    assert record["history"][0]["changes"][0]["cause"] == "code"
    assert "| case |" in probe(*words, "--format", "markdown", cwd=folder).out


def test_a_history_in_a_notebook_is_a_picture(folder: Path) -> None:
    html = ip.result_history("check_x", folder / "results")._repr_html_()
    assert [tag for tag, _ in checked(html).elements].count("svg") == 2


def test_a_scenario_without_results_offers_a_near_name(probe: Probe, folder: Path) -> None:
    ran = probe("results", "--history", "chek_x", "--results", "results", cwd=folder)
    assert (ran.status, ran.err.splitlines()[0]) == (2, "error: there are no results of chek_x in results")
    assert "check_x" in ran.err
    both = probe("results", "latest", "--history", "check_x", "--results", "results", cwd=folder)
    assert "--history is about all results" in both.err
