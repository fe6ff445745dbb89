"""The overhead table and the roofline of a graph compiled on a GPU. No time is asserted."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from inductor_probe.bench.overheads import overheads_of
from inductor_probe.harness.bench import Bench
from inductor_probe.harness.budget import Budget
from inductor_probe.harness.overheads import measure_overheads
from inductor_probe.store.samples import overhead_samples
from tests.builders import roofline_of_device

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SCRIPT = """
import torch
def f(x, w):
    return (torch.mm(x, w) * 2 + x[:, :256]).softmax(-1), x.flip(-1)
with torch.no_grad():
    torch.compile(f)(torch.randn(512, 512, device="cuda"), torch.randn(512, 256, device="cuda"))
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_COMPILE_DEBUG_DIR": str(tmp_path),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True)
    path = next(tmp_path.glob("torch_compile_debug/run_*/torchinductor/*/output_code.py"))
    spec = importlib.util.spec_from_file_location("output_code", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["output_code"] = module
    spec.loader.exec_module(module)
    kernels = [
        name for name in vars(module) if name.startswith("triton_") and hasattr(getattr(module, name), "run")
    ]

    class Graph(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> object:
            return (torch.mm(x, w),)

    names = {"GRAPH": "g", "KERNELS": kernels, "NO_REFERENCE": "", "AtenGraph": Graph}
    vars(module).update(names, make_inputs=lambda inputs: [])
    return Bench(vars(module))


def test_both_sides_of_a_call_on_a_gpu_add_up(bench: Bench) -> None:
    inputs = [torch.randn(512, 512, device="cuda"), torch.randn(512, 256, device="cuda")]
    found = measure_overheads(bench, inputs, Budget(1.0), random.Random(0))  # noqa: S311
    table = overheads_of([overhead_samples(json.loads(json.dumps(found)))])
    print(*table.rows, table.remarks, table.bound, table.wall, sep="\n")
    kinds = [(row.side, row.kind) for row in table.rows]
    assert bench.kernels
    assert kinds.count(("device", "kernel")) == len(bench.kernels)
    assert {("device", "library"), ("device", "rest"), ("host", "launches"), ("host", "wrapper")} < set(kinds)
    assert table.device == "cuda"
    assert table.bound in ("host", "device")
    assert found["flops"] == [("aten.mm", 2 * 512 * 512 * 256)]


def test_a_gpu_has_a_roofline() -> None:
    found = roofline_of_device("cuda", dtypes=["float32", "bfloat16"])
    memory, cache = found.peak("copy", "memory"), found.peak("copy", "cache")
    assert memory is not None
    assert cache is not None
    assert memory.rate < cache.rate
    half, single = found.peak("matmul", "bfloat16"), found.peak("matmul", "float32")
    assert half is not None
    assert single is not None
    assert half.rate > single.rate
    assert found.remarks == ()
