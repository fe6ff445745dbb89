"""A real dump, its bench file, and edits that a person might make in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.bench.result import result_of
from inductor_probe.bench.session import run_bench_file
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.errors import NotFoundError, RunFailedError
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.model.timing import Variant
from inductor_probe.report.pages.bench import bench_page
from inductor_probe.report.terminal import to_text
from inductor_probe.store.samples import read_samples
from tests.bench.dumped import COPY, edit_copy
from tests.bench.test_times import shown_times

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]

LOADS = """
import sys
from pathlib import Path

from inductor_probe.harness import load


class Noted(dict):
    def __getitem__(self, name):
        print("loading", name)
        return super().__getitem__(name)


deferred_in = load.deferred_in
load.deferred_in = lambda scope: Noted(deferred_in(scope))
path = Path(sys.argv[1])
load.BenchText(path, path.read_text()).load(copies_first="copies" in sys.argv)
"""


def run(path: Path, processes: int = 1, *, copies: bool = False) -> BenchResult:
    return run_bench_file(path, BenchSettings(budget=0.1 * processes, processes=processes, copies=copies))


def by_name(result: BenchResult) -> dict[str, Variant]:
    return {variant.name: variant for variant in result.variants}


def test_copies_that_nobody_edited_are_checked_and_not_timed(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    result = run(file.path)
    assert {each.name: (each.correct, each.unedited) for each in result.variants} == {
        "call": (True, False),
        "call_v2": (True, True),
        f"{kernel}_v2": (True, True),
    }
    assert [each.candidate for each in result.comparisons] == ["Compiled call"]
    assert [each.name for each in result.alone] == [f"{kernel} alone"]
    shown = to_text(bench_page(result), 200)
    assert f"correct, and not timed since unedited: call_v2, {kernel}_v2" in shown
    assert all(len(texts) == 1 for texts in shown_times(result).values())
    assert len(shown.splitlines()) <= 20, "with what is printed before and after, a screen of 25 lines"

    edit_copy(file.path, "auto tmp0 =", "auto tmp0 = /* mine */")
    result = run(file.path)
    assert not any(each.unedited for each in result.variants), "call_v2 launches the edited kernel"
    assert all(len(texts) == 1 for texts in shown_times(result).values())
    assert [each.candidate for each in result.comparisons] == [
        "Compiled call",
        "call_v2",
        f"{kernel}_v2 alone",
    ]


def test_code_is_loaded_in_both_orders(graph_dir: Path) -> None:
    """What is loaded is seen by the order in which the kernels of the text are asked for."""
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    for first, order in (("originals", [kernel, f"{kernel}_v2"]), ("copies", [f"{kernel}_v2", kernel])):
        command = [sys.executable, "-c", LOADS, str(file.path), first]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        loaded = [line.split()[1] for line in ended.stdout.splitlines() if line.startswith("loading ")]
        assert loaded == order, ended.stderr


def test_equal_copies_are_right_and_timed_when_asked_for(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    result = run(file.path, processes=3, copies=True)
    (kernel,) = file.kernels
    variants = by_name(result)
    assert list(variants) == ["call", "call_v2", f"{kernel}_v2"]
    assert all(variant.correct and variant.max_error == 0 for variant in result.variants)
    assert all(variant.elements == 3 * 20 * 24 for variant in result.variants)
    assert [(each.baseline, each.candidate) for each in result.comparisons] == [
        ("the graph, operator by operator", "Compiled call"),
        ("Compiled call", "call_v2"),
        (f"{kernel} alone", f"{kernel}_v2 alone"),
    ]
    assert all(each.low <= each.ratio <= each.high for each in result.comparisons)
    assert all(len(each.process_ratios) == 3 for each in result.comparisons)
    assert (result.inputs, result.data, result.alone) == ("1x3x20x24 uint8 contiguous", "warm", ())
    kept = read_samples(file.path.with_suffix(".json"))
    assert [process.first for process in kept.processes] == ["baseline", "candidate", "baseline"]
    assert [process.seed for process in kept.processes] == [0, 2, 4]
    assert result_of(kept) == result
    assert write_bench_file(graph_dir).state == "rewritten"


def test_swapped_indices_in_a_load_are_refused_and_located(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    source = file.path.read_text()
    (copy,) = COPY.finditer(source)
    load = re.search(r"in_ptr0(?:\[| \+ ).*?(?=\]|, static_cast<int64_t>\(\d)", copy[0])
    assert load is not None
    variables = sorted(set(re.findall(r"\bx\d+\b", load[0])))[-2:]
    swap = dict(zip(variables, reversed(variables), strict=True))
    swapped = re.sub(r"\bx\d+\b", lambda match: swap.get(match[0], match[0]), load[0])
    edit_copy(file.path, re.escape(load[0]), swapped.replace("\\", r"\\"))
    kept = file.path.read_bytes()

    ended = subprocess.run(
        [sys.executable, str(file.path), "--budget", "200ms"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert re.search(rf"{kernel}_v2: WRONG, \d+ of 1440 elements", ended.stdout)
    assert re.search(rf"\nWRONG, so not timed: .*\b{kernel}_v2\n", ended.stdout)
    assert "adds: a verdict from several processes" in " ".join(ended.stdout.split())
    table = next(part for part in ended.stdout.split("\n\n") if "median us" in part)
    assert max(map(len, table.splitlines())) <= 80  # sentences are lines of their own: a terminal folds them

    result = run(file.path)
    wrong = by_name(result)[f"{kernel}_v2"]
    assert not wrong.correct
    assert wrong.mismatches > 100
    assert wrong.first_bad is not None
    assert len(wrong.first_bad) == 4
    assert wrong.first_bad_output == 0
    assert wrong.max_error is not None
    assert wrong.value != wrong.expected
    assert [each.candidate for each in result.comparisons] == ["Compiled call"]
    assert [each.name for each in result.alone] == [f"{kernel} alone"]
    assert by_name(result)["call"].correct

    again = write_bench_file(graph_dir)
    assert (again.state, again.edited) == ("kept", (f"{kernel}_v2",))
    assert file.path.read_bytes() == kept


def test_output_that_is_not_written_cannot_pass_on_stale_memory(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    edit_copy(file.path, r"x0<static_cast<int64_t>\((\d+)L\)", r"x0<static_cast<int64_t>(\1L - 1L)")
    result = run(file.path)
    wrong = by_name(result)[f"{kernel}_v2"]
    assert not wrong.correct
    assert 0 < wrong.mismatches < wrong.elements
    assert f"{kernel}_v2 alone" not in {each.candidate for each in result.comparisons}


def test_an_unknown_kernel_is_answered_with_near_names(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    with pytest.raises(NotFoundError) as caught:
        run_bench_file(file.path, BenchSettings(kernel="cpp_fused_flop_0"))
    assert "no kernel cpp_fused_flop_0" in caught.value.message
    assert file.kernels[0] in (caught.value.hint or "")


def test_without_a_compiler_the_next_step_is_offered(
    graph_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_bench_file(graph_dir)
    monkeypatch.setenv("CXX", str(graph_dir / "no-compiler"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(graph_dir / "cache"))
    with pytest.raises(RunFailedError) as caught:
        run(file.path)
    assert "g++" in (caught.value.hint or "")


OPERATOR = """
import torch


@torch.library.custom_op("mine::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@tripled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)
"""
CALLS_IT = """
import torch
import operators
torch.compile(lambda x: torch.ops.mine.tripled(x.sin()) + 1)(torch.ones(8))
"""


def test_operators_that_a_program_registers_are_imported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "operators.py").write_text(OPERATOR)
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(tmp_path),
    }
    command = [sys.executable, "-c", CALLS_IT]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    code = next(tmp_path.glob("torch_compile_debug/run_*/torchinductor/*/output_code.py"))
    path = write_bench_file(code.parent).path
    with pytest.raises(RunFailedError, match="tripled") as caught:
        run_bench_file(path, BenchSettings(budget=0.3, processes=3))
    assert "--import FILE.py" in (caught.value.hint or "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match=f"{tmp_path}/nowhere.py"):
        run_bench_file(path, BenchSettings(imports=("nowhere.py",)))
    settings = BenchSettings(budget=0.3, processes=3, imports=("operators.py",))
    result = run_bench_file(path, settings, other_harness=True)  # by the core that is in it
    assert all(variant.correct for variant in result.variants), result.variants
