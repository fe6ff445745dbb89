"""Files that run by their own core; here a program in its place runs the file: `FILE --json OUT ...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.bench.result import result_of
from inductor_probe.bench.session import run_bench_file as run_any_bench_file
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.store.samples import read_samples
from tests.store.test_samples import GUARD, PROCESS, QUAD

pytestmark = pytest.mark.usefixtures("core")

CORE = """
import sys
path, results, *options = sys.argv[1:]
sys.argv = [path, "--json", results, *options]
exec(compile(sys.stdin.read(), path, "exec"), {"__name__": "__main__", "__file__": path})
"""
WRITES = """
import json, sys, pathlib
print("on stdout")
print("on stderr", file=sys.stderr)
seed = int(sys.argv[sys.argv.index("--seed") + 1])
with pathlib.Path(__file__).with_name("calls").open("a") as file:
    print(*sys.argv[3:], file=file)
result = {process!r}
ratio = {ratios!r}[seed // 2]
quad = {quad!r} | {{"seconds": [1e-6, ratio * 1e-6, ratio * 1e-6, 1e-6]}}
for each in result["comparisons"][:1]:
    each["quads"] = [quad] * 6 + [{guard!r}]
pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(result))
sys.exit(1)
"""


@pytest.fixture
def core(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path_factory.mktemp("core") / "core.py"
    path.write_text(CORE)
    monkeypatch.setattr("inductor_probe.bench.alone._OWN_CORE", path)


def run_bench_file(path: Path, settings: BenchSettings | None = None, **options: Any) -> BenchResult:
    return run_any_bench_file(path, settings, other_harness=True, **options)


def bench(folder: Path, source: str) -> Path:
    path = folder / "output_code_bench.py"
    path.write_text(source)
    return path


def writes(folder: Path, *ratios: float, process: dict[str, Any] = PROCESS) -> Path:
    return bench(folder, WRITES.format(process=process, ratios=ratios, quad=QUAD, guard=GUARD))


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_three_processes_that_agree_are_enough_and_load_in_both_orders(tmp_path: Path) -> None:
    path = writes(tmp_path, 1.05, 1.051, 1.052)
    result = run_bench_file(path, BenchSettings(kernel="k", budget=4.5, margin=0.02, cold=True))
    options = "--threads 1 --inputs random --budget 1.125 --precision 0.005 --kernel k --data cold --seed"
    assert calls(tmp_path) == [f"{options} 0", f"{options} 2 --copies-first", f"{options} 4"]
    (found,) = result.comparisons
    assert (found.verdict, result.processes, result.margin) == ("SLOWER", 3, 0.02)
    assert found.process_ratios == pytest.approx((1.05, 1.051, 1.052))


def test_more_are_asked_if_three_differ(tmp_path: Path) -> None:
    path = writes(tmp_path, 0.98, 1.0, 1.05, 1.02, 1.0, 0.97, 1.04, 1.0, 0.99)
    assert run_bench_file(path).processes == 9
    assert [line.endswith("--copies-first") for line in calls(tmp_path)] == [False, True] * 4 + [False]


def test_as_many_as_asked_for_share_the_budget(tmp_path: Path) -> None:
    assert run_bench_file(writes(tmp_path, *[1.0] * 4), BenchSettings(processes=4, budget=8)).processes == 4
    assert all("--budget 2 " in line for line in calls(tmp_path))


def test_where_nothing_is_compared_one_process_is_enough(tmp_path: Path) -> None:
    result = run_bench_file(writes(tmp_path, 1.0, process={**PROCESS, "comparisons": []}))
    assert (result.processes, result.comparisons) == (1, ())


def test_what_comes_next_is_told_before_each_process_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[str, int]] = []

    def progress(text: str) -> None:
        told.append((text, len(calls(tmp_path)) if told else 0))

    run_bench_file(writes(tmp_path, 0.98, 1.0, 1.05, 1.02, 1.0, 0.97, 1.04, 1.0, 0.99), progress=progress)
    last = [3] * 3 + [9] * 6
    assert [text for text, _ in told] == [f"measuring {n} of {most}" for n, most in enumerate(last, 1)]
    assert [done for _, done in told] == list(range(9))
    assert capfd.readouterr() == ("", "")


def test_the_verdict_of_the_kept_samples_is_that_of_the_run(tmp_path: Path) -> None:
    result = run_bench_file(writes(tmp_path, 1.05, 1.051, 1.052))
    assert result_of(read_samples(tmp_path / "output_code_bench.json")) == result


def test_what_was_measured_before_a_crash_is_kept(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="IndexError"):
        run_bench_file(writes(tmp_path, 1.0, 1.0))  # the third process has no ratio
    assert len(read_samples(tmp_path / "output_code_bench.json").processes) == 2


def test_a_crash_carries_the_end_of_the_traceback(tmp_path: Path) -> None:
    path = bench(tmp_path, "def f():\n    raise ValueError('out of luck')\nf()\n")
    with pytest.raises(RunFailedError) as caught:
        run_bench_file(path)
    assert f"{path} ended with status 1" in caught.value.message
    assert caught.value.message.endswith("ValueError: out of luck")
    assert not (tmp_path / "output_code_bench.json").exists()


def test_what_the_compiler_refused_stands_before_thousands_of_warnings(tmp_path: Path) -> None:
    noise = "import sys\nfor n in range(900): print('header.h: warning: w', n, file=sys.stderr)\n"
    refused = "kernel.cpp:7:5: error: 'tmp9' was not declared"
    path = bench(tmp_path, f"import sys\nprint({refused!r}, file=sys.stderr)\n{noise}sys.exit(1)\n")
    with pytest.raises(RunFailedError) as caught:
        run_bench_file(path)
    assert caught.value.message.endswith(f":\n{refused}")


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
    with pytest.raises(RunFailedError) as caught:
        run_bench_file(bench(tmp_path, f"import sys\nsys.exit({said!r})\n"))
    assert hint in (caught.value.hint or "")


def test_a_signal_is_called_one(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="was killed by signal 9"):
        run_bench_file(bench(tmp_path, "import os\nos.kill(os.getpid(), 9)\n"))


def test_an_unknown_kernel_offers_those_there_are(tmp_path: Path) -> None:
    source = "import argparse\nargparse.ArgumentParser().error('no kernel kk; there is k')\n"
    with pytest.raises(NotFoundError) as caught:
        run_bench_file(bench(tmp_path, source), BenchSettings(kernel="kk"))
    assert caught.value.message.endswith("no kernel kk")
    assert caught.value.hint == "there is k"


def test_results_of_an_edited_harness_are_refused(tmp_path: Path) -> None:
    process = {key: value for key, value in PROCESS.items() if key != "variants"}
    with pytest.raises(RunFailedError, match="results that cannot be read: variants is missing"):
        run_bench_file(writes(tmp_path, 1.0, process=process))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        run_bench_file(tmp_path / "output_code_bench.py")


def test_a_file_that_is_swapped_between_processes_does_not_run(tmp_path: Path) -> None:
    """What was read first is what all processes run: before the first, between them, and while one runs."""
    path, marker = writes(tmp_path, 1.0, 1.0, 1.0), tmp_path / "MARKER"
    swapped = tmp_path / "swapped.py"
    told = []

    def swap(text: str) -> None:
        told.append(text)
        swapped.write_text(f"open({str(marker)!r}, 'w')\n")
        swapped.replace(path)

    result = run_bench_file(path, progress=swap)
    assert (result.processes, len(told), len(calls(tmp_path))) == (3, 3, 3)
    assert path.read_text() == f"open({str(marker)!r}, 'w')\n"
    assert not marker.exists()
    with pytest.raises(RunFailedError):
        run_bench_file(path)
    assert marker.exists(), "it would have left a marker"


def test_results_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ProbeError, match=r"cannot write .*output_code_bench\.json: No space left on device"):
        run_bench_file(writes(tmp_path, 1.0))


def test_the_kept_file_names_its_schema_and_writer(tmp_path: Path) -> None:
    run_bench_file(writes(tmp_path, 1.0, 1.0, 1.0))
    kept = json.loads((tmp_path / "output_code_bench.json").read_text())
    assert list(kept) == ["schema", "probe", "margin", "roofline", "processes", "own", "no_own"]
    assert kept["schema"] == 2
