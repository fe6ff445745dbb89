"""Templates under max-autotune on a GPU: `probe dump` keeps every choice; what the epilogue costs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console
from torch._inductor.async_compile import AsyncCompile

import inductor_probe as ip
from inductor_probe.analysis.templates import linked_tunings
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from inductor_probe.reader.template_choices import read_tunings
from inductor_probe.report.templates import TuningTable
from inductor_probe.rewrite.epilogue import without_epilogue
from inductor_probe.rewrite.harness.gpu_clock import make_clock
from inductor_probe.rewrite.harness.launches import record

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SCRIPT = """
import torch
import torch._inductor.config

torch._inductor.config.max_autotune_gemm_backends = {backends!r}


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
    Console(width=140).print(TuningTable(tuning))
    assert tuning.complete
    assert tuning.cached is False
    assert {choice.kind for choice in tuning.choices} >= {"triton", "extern"}
    assert len(tuning.choices) > 10
    assert tuning.kernel is not None


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dumped_linear", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_winner_is_timed_with_and_without_its_epilogue(tmp_path: Path) -> None:
    folder = dumped(tmp_path, "TRITON")
    code = read_graph(graph_dir(folder)).code
    assert code is not None
    kernel = next(kernel for kernel in code.kernels if kernel.name.startswith("triton_tem"))
    print(kernel.source)
    bare = AsyncCompile().triton(kernel.name, without_epilogue(kernel.source), device_str="cuda")
    compiled: Any = bare.result() if hasattr(bare, "result") else bare
    module = module_of(folder / "output_code.py")
    bench: Any = SimpleNamespace(namespace=vars(module))
    (launch,) = record(bench, "call", kernel.name, module.get_args())
    clock = make_clock("cuda")
    whole, without = (clock(launch.bind(each), 50) for each in (getattr(module, kernel.name), compiled))
    spills = [each.launchers[0].n_spills for each in (getattr(module, kernel.name), compiled)]
    print(
        f"{kernel.name}: {whole * 1e6:.2f} us, without its epilogue {without * 1e6:.2f} us; spills {spills}"
    )
    print(f"notes: {clock.notes or 'none'}")
    assert whole > 0.8 * without
