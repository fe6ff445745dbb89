"""`probe perf` on a GPU: what its columns are, by the profiler; and that nobody shares the GPU."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
import torch

from inductor_probe.api.perf import PerfTable, perf
from inductor_probe.harness.gpu_clock import GpuClock, ProfiledStream
from tests.gpu import scenario_on_gpu

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SCENARIO = Path(scenario_on_gpu.__file__)
COLUMNS = ("eager", "compiled", "kernel")
WITHIN, LONG_S, TRIES, CALLS = 0.05, 10e-6, 3, 10


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PerfTable:
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCK_OF_THE_GPU", str(folder / "lock"))
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "cache"))
        made = perf(
            SCENARIO, matrix="full", device="cuda", columns=COLUMNS, budget=1.0, processes=2, folder=folder
        )
    print("\n" + made.markdown)
    return made


def test_no_two_processes_have_the_gpu_at_once_and_all_rows_are_right(table: PerfTable) -> None:
    assert [row.key.case for row in table.rows] == ["forward", "training", "again"]
    assert [row.failure for row in table.run.rows if row.failure] == []
    assert [len(row.processes) for row in table.run.rows] == [2, 2, 2]
    assert {row.key.data for row in table.rows} == {"cold"}
    for row in table.rows:
        compiled = row.column("compiled")
        assert compiled is not None
        assert compiled.facts.check is not None
        assert compiled.facts.check.correct
        assert compiled.comparison is not None


def test_the_kernel_column_is_what_the_profiler_says_of_the_triton_kernels(table: PerfTable) -> None:
    stream = ProfiledStream("cuda")
    ahead = GpuClock(stream, corrected=False).prologue(None)
    x = torch.randn(1 << 13, 1 << 12, device="cuda")
    compiled = torch.compile(scenario_on_gpu.two_kernels, dynamic=False)
    compiled(x)

    def calls() -> None:
        for _ in range(CALLS):
            ahead()
            compiled(x)

    column = table.rows[0].column("kernel")
    assert column is not None
    assert column.time is not None
    ratios = []
    for _ in range(TRIES):
        by_name: dict[str, list[float]] = {}
        for name, begin, end in stream.kernels(calls):
            if name.startswith("triton_"):
                by_name.setdefault(name, []).append((end - begin) / 1e9)
        assert by_name, "the profiler sees no Triton kernels on this machine"
        seconds = sum(statistics.median(times) * round(len(times) / CALLS) for times in by_name.values())
        assert seconds > LONG_S
        ratios.append(column.time.seconds / seconds)
    print(f"\nkernel column by the profiler's time of {sorted(by_name)}: {ratios}")
    assert any(abs(ratio - 1) <= WITHIN for ratio in ratios)


def test_a_training_step_has_two_graphs_and_so_no_kernel_column(table: PerfTable) -> None:
    compiled, kernel = table.rows[1].column("compiled"), table.rows[1].column("kernel")
    assert compiled is not None
    assert kernel is not None
    assert len(compiled.facts.codes) == 2, "the backward, which runs in a thread of autograd, is seen"
    assert (kernel.facts.problem, kernel.time) == ("several-graphs", None)


def test_where_importing_torch_initialises_cuda_rows_are_measured_without_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import torch\ntorch.cuda.init()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("LOCK_OF_THE_GPU", str(tmp_path / "lock"))
    made = perf(
        SCENARIO, cases=["forward"], columns=("eager", "compiled"), budget=0.2, processes=1, folder=tmp_path
    )
    assert [row.failure for row in made.run.rows] == [None]
    compiled = made.rows[0].column("compiled")
    assert compiled is not None
    assert compiled.comparison is not None
