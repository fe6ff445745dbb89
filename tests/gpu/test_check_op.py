"""`probe check-op --device cuda`: right samples, wrong ones, and an error that ends the GPU's context."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import inductor_probe as ip

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(80),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
DECOMPOSITION = """
import torch

def flip(self, dims):
    out = self
    for dim in dims:
        far = 1 << 20 if len(dims) == 2 else 0
        index = torch.arange(self.size(dim) - 1, -1, -1, device=self.device) + far
        out = out.index_select(dim, index)
    return out
"""


def test_samples_on_a_gpu_are_right(tmp_path: Path) -> None:
    checks = ip.check_op(
        "flip", device="cuda", samples=3, modes=("static", "dynamic", "backward"), out=tmp_path
    ).output.checks
    print(*((row.case, row.samples, row.right, row.refused) for row in checks.rows), sep="\n")
    assert checks.device == "cuda"
    assert checks.failures == ()
    assert sum(row.samples for row in checks.rows) > 6
    assert sum(row.refused for row in checks.rows) == 0


def test_an_assert_on_the_gpu_costs_its_sample_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DECOMPOSITION)
    checks = ip.check_op(
        "flip", device="cuda", decomp=f"{tmp_path}/mine.py:flip", samples=8, jobs=1,
        dtypes=("float32",), modes=("static",), forms=("given",), out=tmp_path,
    ).output.checks  # fmt: skip
    print(*((row.case, row.samples, row.right, row.refused) for row in checks.rows), sep="\n")
    print(*((failure.kind, failure.sample, failure.numbers) for failure in checks.failures), sep="\n")
    rows = {row.case.way: row for row in checks.rows}
    assert rows["compiled"].failed == 0
    mine = rows["decomposition"]
    assert mine.failed >= 1, "flips of two dimensions read outside"
    assert mine.right >= 2, "what comes behind such a sample is run by a process of its own"
    assert mine.refused == rows["compiled"].refused
    for failure in checks.failures:
        assert failure.kind in ("raises", "killed")
        if failure.kind == "raises":
            assert failure.script is not None
            ended = subprocess.run([sys.executable, str(failure.script)], capture_output=True, check=False)
            assert ended.returncode == 1, ended.stderr
