"""A session of measuring processes: when there are enough, and what stays of one that is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from inductor_probe.bench import session
from inductor_probe.bench.result import result_of
from inductor_probe.bench.session import run_bench_file
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError
from inductor_probe.model.bench import BenchSettings
from inductor_probe.store.samples import read_samples
from tests.store.test_samples import GUARD, PROCESS, QUAD

Measure: TypeAlias = Callable[[Event], Mapping[str, Any]]


class FakeServer:
    """Stands for the process that has imported torch: `measure` says what a job measures, without torch."""

    measure: Measure
    jobs: list[Event]
    sources: list[str]

    def __init__(self, path: Path, source: str, **_: object) -> None:
        self.path = path
        self.no_fork: str | None = None

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def use(self, path: Path, source: str) -> None:
        self.path = path
        self.sources.append(source)

    def events(self, request: Event) -> Iterator[Event]:
        self.jobs.append(request)
        yield {"event": "phase", "phase": "loading", "names": []}
        yield {"event": "process", "process": type(self).measure(request["options"])}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(session, "Server", FakeServer)
    monkeypatch.setattr(FakeServer, "jobs", [], raising=False)
    monkeypatch.setattr(FakeServer, "sources", [], raising=False)
    path = tmp_path / "output_code_bench.py"
    path.write_text("# nothing to compile\n")
    return path


def measures(
    monkeypatch: pytest.MonkeyPatch, *ratios: float, process: Mapping[str, Any] = PROCESS
) -> Sequence[Event]:
    """Let process after process measure one of some ratios; return their jobs, as they come."""

    def measure(options: Event) -> Mapping[str, Any]:
        if options["seed"] // 2 >= len(ratios):
            raise JobFailedError("error", "failed: IndexError", {"phase": "loading"}, "")
        ratio = ratios[options["seed"] // 2]
        quad = {**QUAD, "seconds": [1e-6, ratio * 1e-6, ratio * 1e-6, 1e-6]}
        pairs = [{**pair, "quads": [quad] * 6 + [GUARD]} for pair in process["comparisons"][:1]]
        return json.loads(json.dumps({**process, "comparisons": pairs + process["comparisons"][1:]}))  # type: ignore[no-any-return]

    monkeypatch.setattr(FakeServer, "measure", staticmethod(measure), raising=False)
    return FakeServer.jobs


def test_three_processes_that_agree_are_enough_and_load_in_both_orders(
    bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = measures(monkeypatch, 1.05, 1.051, 1.052)
    result = run_bench_file(bench, BenchSettings(budget=8, margin=0.02, cold=True))
    options = [job["options"] for job in jobs]
    assert [(each["budget"], each["precision"], each["cold"]) for each in options] == [(1.5, 0.005, True)] * 3
    assert [(each["seed"], each["copies_first"]) for each in options] == [(0, False), (2, True), (4, False)]
    (comparison,) = result.comparisons
    assert (comparison.verdict, result.processes, result.margin) == ("SLOWER", 3, 0.02)
    assert comparison.process_ratios == pytest.approx((1.05, 1.051, 1.052))


def test_more_are_asked_if_three_differ(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = measures(monkeypatch, 0.98, 1.0, 1.05, 1.02, 1.0, 0.97, 1.04, 1.0, 0.99)
    assert run_bench_file(bench).processes == 9
    assert [job["options"]["copies_first"] for job in jobs] == [False, True] * 4 + [False]


def test_as_many_as_asked_for_share_the_budget(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = measures(monkeypatch, *[1.0] * 4)
    assert run_bench_file(bench, BenchSettings(kernel="k", processes=4, budget=8)).processes == 4
    assert [job["options"]["budget"] for job in jobs] == [2.0] * 4


def test_where_nothing_is_compared_one_process_is_enough(
    bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures(monkeypatch, 1.0, process={**PROCESS, "comparisons": []})
    result = run_bench_file(bench)
    assert (result.processes, result.comparisons) == (1, ())


def test_what_comes_next_is_told_before_each_process_and_nothing_is_printed(
    bench: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = measures(monkeypatch, 0.98, 1.0, 1.05, 1.02, 1.0, 0.97, 1.04, 1.0, 0.99)
    told: list[tuple[str, int]] = []
    run_bench_file(bench, progress=lambda text: told.append((text, len(jobs))))
    told = [each for each in told if each[0].startswith("measuring") and "loading" not in each[0]]
    last = [3] * 3 + [9] * 6
    assert [text for text, _ in told] == [f"measuring {n} of {most}" for n, most in enumerate(last, 1)]
    assert [done for _, done in told] == list(range(9))
    assert capfd.readouterr() == ("", "")


def test_the_verdict_of_the_kept_samples_is_that_of_the_run(
    bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures(monkeypatch, 1.05, 1.051, 1.052)
    result = run_bench_file(bench)
    assert result_of(read_samples(bench.with_suffix(".json"))) == result


def test_what_was_measured_before_a_crash_is_kept(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures(monkeypatch, 1.0, 1.0)
    with pytest.raises(RunFailedError, match="IndexError"):
        run_bench_file(bench)
    assert len(read_samples(bench.with_suffix(".json")).processes) == 2


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found", "g++"),
        ("ModuleNotFoundError: No module named 'triton'", "triton"),
        ("RuntimeError: Found no NVIDIA driver. no NVIDIA driver", "GPU"),
        ("AttributeError: '_OpNamespace' 'mine' object has no attribute 'op'", "--import MODULE"),
    ],
)
def test_known_crashes_come_with_the_next_step(tmp_path: Path, said: str, hint: str) -> None:
    error = JobFailedError("load", said, {}, "").error(tmp_path)
    assert hint in (error.hint or "")


def test_an_unknown_kernel_offers_those_there_are(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(options: Event) -> Mapping[str, Any]:
        raise JobFailedError("usage", "no kernel kk; there is k", {}, "")

    monkeypatch.setattr(FakeServer, "measure", staticmethod(measure), raising=False)
    with pytest.raises(NotFoundError) as caught:
        run_bench_file(bench, BenchSettings(kernel="kk"))
    assert caught.value.message.endswith("no kernel kk")
    assert caught.value.hint == "there is k"


def test_results_of_an_edited_harness_are_refused(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures(monkeypatch, 1.0, process={key: PROCESS[key] for key in PROCESS if key != "inputs"})
    with pytest.raises(RunFailedError, match="results that cannot be read: inputs is missing"):
        run_bench_file(bench, other_harness=True)
    assert FakeServer.jobs[0]["job"] == "inductor_probe.harness.own_core:measure"


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        run_bench_file(tmp_path / "output_code_bench.py")


def test_a_file_that_is_swapped_between_processes_does_not_run(
    bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read first is what all processes run: before the first, between them, and while one runs."""
    measures(monkeypatch, 1.0, 1.0, 1.0)
    first = bench.read_text()
    run_bench_file(bench, progress=lambda text: bench.write_text("raise SystemExit\n") and None)
    assert FakeServer.sources == [first]
    assert bench.read_text() != first


def test_results_that_cannot_be_kept(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    measures(monkeypatch, 1.0)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ProbeError, match=r"cannot write .*output_code_bench\.json: No space left on device"):
        run_bench_file(bench)


def test_the_kept_file_names_its_schema_and_writer(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures(monkeypatch, 1.0, 1.0, 1.0)
    run_bench_file(bench)
    kept = json.loads(bench.with_suffix(".json").read_text())
    assert list(kept) == ["schema", "probe", "margin", "roofline", "processes", "own", "no_own"]
    assert kept["schema"] == 2
