from __future__ import annotations

import json
from pathlib import Path

import pytest

from inductor_probe.bench import run_bench_file
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError

RESULT = {
    "graph": "g",
    "kernels": ["k"],
    "variants": [
        {
            "name": "k_v2",
            "correct": False,
            "max_error": None,
            "mismatches": 2,
            "elements": 9,
            "first_bad": [0, 3],
            "first_bad_output": 0,
            "value": 1.0,
            "expected": 2.0,
            "note": None,
        }
    ],
    "measurements": [{"name": "call", "samples": [1e-6, 2e-6], "median": 1.5e-6, "mad": 5e-7}],
    "comparisons": [
        {
            "baseline": "Compiled call",
            "candidate": "call_v2",
            "quads": [{"score": 0.0, "guard": at == 3, "disturbed": False} for at in range(4)],
            "excluded": 0,
            "ratio": 1.0,
            "low": 0.99,
            "high": 1.01,
            "verdict": "SAME",
            "note": None,
        }
    ],
    "warnings": ["loud"],
    "environment": {},
    "seed": 0,
    "table": "a table",
}
WRITES = f"""
import json, sys, pathlib
print("on stdout", *sys.argv[3:])
print("on stderr", file=sys.stderr)
pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps({RESULT!r}))
sys.exit(1)
"""


def bench(folder: Path, source: str) -> Path:
    path = folder / "output_code_bench.py"
    path.write_text(source)
    return path


def test_what_it_prints_is_passed_on_and_what_it_finds_returned_and_kept(tmp_path: Path) -> None:
    lines: list[str] = []
    result = run_bench_file(bench(tmp_path, WRITES), kernel="k", min_run_time=0.5, echo=lines.append)
    assert sorted(lines) == ["on stderr\n", "on stdout --kernel k --min-run-time 0.5\n"]
    assert (result.graph, result.kernels, result.warnings, result.table) == (
        "g",
        ("k",),
        ("loud",),
        "a table",
    )
    (variant,) = result.variants
    assert (variant.correct, variant.mismatches, variant.first_bad) == (False, 2, (0, 3))
    assert result.measurements[0].samples == (1e-6, 2e-6)
    assert (result.comparisons[0].quads, result.comparisons[0].verdict) == (3, "SAME")
    assert json.loads((tmp_path / "output_code_bench.json").read_text()) == RESULT


def test_it_runs_quietly_without_echo(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_bench_file(bench(tmp_path, WRITES))
    assert capfd.readouterr() == ("", "")


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
        run_bench_file(bench(tmp_path, source), kernel="kk")
    assert caught.value.message.endswith("no kernel kk")
    assert caught.value.hint == "there is k"


def test_results_of_an_edited_harness_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="results that cannot be read: KeyError"):
        run_bench_file(bench(tmp_path, WRITES.replace("'variants'", "'variant'")))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        run_bench_file(tmp_path / "output_code_bench.py")


def test_results_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ProbeError, match=r"cannot write .*output_code_bench\.json: No space left on device"):
        run_bench_file(bench(tmp_path, WRITES))
