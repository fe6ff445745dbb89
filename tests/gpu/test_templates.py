"""Templates under max-autotune on a GPU: `probe dump` keeps every choice; what the epilogue costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console

import inductor_probe as ip
from inductor_probe.analysis.links import linked_tunings
from inductor_probe.model.bench import BenchSettings
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from inductor_probe.reader.tunings import read_tunings
from inductor_probe.report.pages.tunings import tuning_tables

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(30),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SCRIPT = """
import torch
import torch._inductor.config

torch._inductor.config.max_autotune_gemm_backends = {backends!r}
torch._inductor.config.benchmark_epilogue_fusion = False  # other tests would disturb what decides


def f(x, w, b):
    return torch.relu(x @ w + b)


x, w, b = (torch.randn(*size, device="cuda").bfloat16() for size in ((1024, 1024), (1024, 1024), (1024,)))
torch.compile(f, mode="max-autotune-no-cudagraphs")(x, w, b)
"""


def dumped(folder: Path, backends: str) -> Path:
    """Dump the script; return the folder of its graph."""
    script = folder / "linear.py"
    script.write_text(SCRIPT.format(backends=backends))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "cache"))
        ip.dump(str(script))
    (code,) = folder.glob("**/torchinductor/*/output_code.py")
    return code.parent


def test_every_choice_is_kept_with_its_time_and_linked(tmp_path: Path) -> None:
    folder = dumped(tmp_path, "ATEN,TRITON")
    read = read_tunings(folder)
    assert not read.problems
    assert read.tunings, "probe dump kept no choices"
    (tuning,) = linked_tunings(read_graph(graph_dir(folder)), read.tunings)
    Console(width=140).print(tuning_tables(tuning))
    assert tuning.complete
    assert tuning.cached is False
    assert {choice.kind for choice in tuning.choices} >= {"triton", "extern"}
    assert len(tuning.choices) > 10
    assert tuning.kernel is not None


def test_the_winner_is_timed_with_and_without_its_epilogue(tmp_path: Path) -> None:
    folder = dumped(tmp_path, "TRITON")
    graph = ip.open_graph(folder)
    code = graph.generated.code
    assert code is not None
    kernel = next(kernel for kernel in code.kernels if kernel.name.startswith("triton_tem"))
    file = graph.write_bench_file(rewrites=[f"no_epilogue:{kernel.name}"])
    assert [diff.kind for diff in file.diffs] == ["ablation"]
    bench = graph.run_bench_file(file, BenchSettings(budget=6, processes=3), trust=True)
    print(bench)
    (ablation,) = bench.result.ablations
    assert ablation.left_out == "no_epilogue"
    assert ablation.comparison.baseline.startswith(kernel.name)
    taken = dict(bench.result.resources)
    print(taken)
    assert {kernel.name, f"{kernel.name}_v3"} <= set(taken)
    assert all(each.registers > 0 for each in taken.values())
    assert all(each.candidate != f"{kernel.name}_v3 alone" for each in bench.result.comparisons)
    assert ip.verdict(folder).result == bench.result
    assert bench.result.roofline is not None


POINTWISE = """
import torch

a = torch.randn(1 << 20, device="cuda")
torch.compile(lambda a: (a.sin() + 1) * a, mode="max-autotune-no-cudagraphs")(a)
"""


def test_configs_of_triton_kernels_are_known_from_inductors_cache_and_log(tmp_path: Path) -> None:
    """A run of torch alone: what the log says and what the cache holds is of the same kernel, and agrees."""
    script = tmp_path / "pointwise.py"
    script.write_text(POINTWISE)
    cache = tmp_path / "cache"
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_LOGS": "+inductor",
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "0",
    }
    environment.pop("TRITON_CACHE_DIR", None)
    with (tmp_path / "stderr.txt").open("wb") as stderr:
        command = [sys.executable, str(script)]
        subprocess.run(command, cwd=tmp_path, env=environment, stderr=stderr, check=True)
    (code,) = (tmp_path / "torch_compile_debug").glob("**/output_code.py")
    found = ip.tunings(code.parent)
    print(found)
    print(sorted(path.name for path in cache.glob("*/*.best_config")))
    assert not found.problems
    logged = [tuning for tuning in found if tuning.source == "log"]
    cached = [tuning for tuning in found if tuning.source == "cache"]
    assert logged, "the log names no config"
    assert cached, "no .best_config was tied to the kernel"
    assert all(tuning.kernel == tuning.operation for tuning in found)
    best = {tuning.operation: tuning.choices[0].config for tuning in logged}
    for tuning in cached:
        assert dict(tuning.choices[0].config).items() <= dict(best[tuning.operation]).items()
    table = tmp_path / "table.csv"
    table.write_text(found.csv)
    assert ip.tunings(table) == found
