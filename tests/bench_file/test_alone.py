"""Bench files without `probe`: what they check before torch is imported, how long they are, that they run."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.bench_file.source import bench_source, is_complete, other_harness
from inductor_probe.harness.options import seconds_of
from tests.conftest import python_graph_dirs
from tests.dumps import graph_in

NO_TORCH = "raise ImportError('torch is imported')"
SECTION = re.compile(r"^# -{98}\n# (?P<title>[^\n]*)\n# -{98}\n", re.MULTILINE)


def source_of(folder: Path) -> str:
    runnable = folder / "fx_graph_runnable.py"
    text = runnable.read_text() if runnable.exists() else None
    return bench_source((folder / "output_code.py").read_text(), text, folder.name)


def lines_not_of_the_graph(source: str) -> int:
    """Count all lines but those made of the graph: its names, its kernels, inputs and reference."""
    titles = list(SECTION.finditer(source))
    made = source[titles[0].start() : titles[-1].start()]
    made += source[source.index("\nGRAPH = ") + 1 : source.index("\n\n\n# The command line")]
    assert titles[-1]["title"].startswith("The core of inductor_probe's harness")
    return len(source.splitlines()) - len(made.splitlines())


@pytest.fixture
def flip(tmp_path: Path) -> Path:
    folder = graph_in("torch-2.13.0-cpu/hflip_cl")
    path = tmp_path / "output_code_bench.py"
    path.write_text(source_of(folder))
    return path


def run(path: Path, *arguments: str, torch: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if not torch:
        (path.parent / "torch.py").write_text(NO_TORCH)
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=path.parent,
        env=environment,
    )


@pytest.mark.parametrize("folder", python_graph_dirs()[::5], ids=lambda folder: "-".join(folder.parts[-5:-3]))
def test_a_file_is_short_and_begins_with_its_kernels(folder: Path) -> None:
    source = source_of(folder)
    titles = [match["title"] for match in SECTION.finditer(source)]
    order = ["As output_code.py", "Kernels, each", "The wrapper,", "Inputs", "The reference:", "The core of"]
    assert [next(title for title in titles if title.startswith(start)) for start in order] == [
        title for title in titles if not title.startswith(("How the C++", "In the place of"))
    ]
    assert lines_not_of_the_graph(source) <= (LIMITS["triton"] if "'cuda" in source else LIMITS["cpp"])
    assert is_complete(source)
    assert not other_harness(source)


LIMITS = {"cpp": 600, "triton": 700}


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--help",), 0, "usage: output_code_bench.py"),
        (("--bugdet", "1s"), 2, "unrecognized arguments: --bugdet 1s; try probe bench-kernel"),
        (("--budget", "soon"), 2, "invalid duration 'soon': write 2s, 500ms or 1m"),
        (("--kernel", "cpp_fused_flop_0"), 2, "invalid choice: 'cpp_fused_flop_0' (choose from"),
        (("--size", "s0=3"), 2, "invalid --size s0=3"),
        (("--inputs", "real"), 2, "unrecognized arguments: --inputs real; try probe bench-kernel model__0"),
        (("--threads", "0"), 2, "invalid --threads 0"),
    ],
)
def test_arguments_are_read_before_torch_is_imported(
    flip: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    ended = run(flip, *arguments, torch=False)
    assert ended.returncode == status
    assert said in ended.stdout + ended.stderr
    assert "torch is imported" in run(flip, torch=False).stderr


@pytest.mark.parametrize("end", ["\n\n\n# ----", "\n# The end"])
def test_a_file_that_was_cut_short_says_so_before_torch_is_imported(flip: Path, end: str) -> None:
    text = flip.read_text()
    flip.write_text(text[: text.index(end)] + "\n")
    assert not is_complete(flip.read_text())
    ended = run(flip, torch=False)
    assert ended.returncode == 2
    assert "this file is incomplete (cut short)" in ended.stderr


@pytest.mark.compiles
def test_it_checks_and_times_alone_and_says_what_is_wrong(flip: Path) -> None:
    text = flip.read_text()
    start = text.index("cpp_fused_flip_0_v2 = ")
    end = text.index("''')", start)
    kernel = text[start:end]
    faster = kernel.replace("_v2", "_v3").replace("auto tmp0", "auto  tmp0") + "''')\n"
    wrong = kernel.replace("tmp0 =", "tmp0 = 1 +")
    assert wrong != kernel
    flip.write_text(text[:start] + wrong + "''')\n\n\n" + faster + text[end + 4 :])
    ended = run(flip, "--budget", "300ms")
    assert ended.returncode == 1, ended.stderr
    said = " ".join(ended.stdout.split())  # sentences are broken into lines
    assert re.search(r"cpp_fused_flip_0_v2: WRONG, \d+ of \d+ elements.*; first at output 0\[0, 0", said)
    assert "cpp_fused_flip_0_v3: correct" in said
    assert re.search(r"cpp_fused_flip_0_v3 alone +[\d.]+ +[\d.]+ +\d\.\d{3}x", ended.stdout)
    assert "WRONG, so not timed: call_v2, cpp_fused_flip_0_v2" in ended.stdout
    assert "probe bench-kernel" in ended.stdout


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("10s", 10), ("2m", 120), ("0.25", 0.25)])
def test_budgets(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "5sm", "s"])
def test_a_budget_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 2s, 500ms or 1m"):
        seconds_of(text)
