"""Edits of Triton kernels that do not compile, read outside of their buffers, or take all memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import inductor_probe as ip
from inductor_probe.bench.session import run_bench_file
from inductor_probe.model.bench import BenchSettings

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(40),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SCRIPT = """
import torch
a = torch.randn(1 << 16, device="cuda")
torch.compile(lambda a: (a.sin() + 1) * a)(a)
"""
HUNGRY = """
class Hungry:
    def run(self, *args, **kwargs):
        return torch.empty(1 << 45, dtype=torch.uint8, device="cuda")


{kernel}_v4 = Hungry()

"""


def edited(text: str, copy: str, pattern: str, replacement: str) -> str:
    """Change the text of one copy of the kernel."""
    match = re.search(rf"(?ms)^{copy} = async_compile\.triton\(.*?^'''.*?\)$", text)
    assert match is not None
    changed, count = re.subn(pattern, replacement, match[0], count=1)
    assert count == 1
    return text[: match.start()] + changed + text[match.end() :]


def test_one_bad_variant_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sine.py").write_text(SCRIPT)
    (graph,) = ip.dump("sine.py").graphs
    (kernel,) = (row.name for row in graph.kernels())
    names = [f"{kernel}_v{number}" for number in range(2, 6)]
    path = graph.write_bench_file(variants=[(name, None) for name in names[1:]]).path
    text = edited(
        path.read_text(), names[0], r"\((\w+ptr0) \+ \(x0\)", r"(\1 + (x0.to(tl.int64) + (1 << 40))"
    )
    text = edited(text, names[1], r"\n    tl\.store\(", r"\n    undefined_name + 1\n    tl.store(")
    assert text.count("\nclass Runner:") == 1
    path.write_text(text.replace("\nclass Runner:", HUNGRY.format(kernel=kernel) + "\nclass Runner:"))
    line = text[: text.index("undefined_name")].count("\n") + 1
    result = run_bench_file(path, BenchSettings(budget=0.5, processes=3, copies=True))
    variants = {variant.name: variant for variant in result.variants}
    for variant in variants.values():
        print(
            variant.name, variant.correct, [(remark.code, dict(remark.numbers)) for remark in variant.remarks]
        )
    print([(warning.code, dict(warning.numbers)) for warning in result.warnings])
    print([(pair.candidate, pair.verdict) for pair in result.comparisons])
    reasons = [variants[name].remarks[0] for name in names[:3]]
    assert not any(variants[name].correct for name in names[:3])
    assert "illegal memory access" in str(reasons[0].number("how"))
    assert (reasons[1].code, reasons[1].number("line")) == ("variant-not-compiled", line)
    assert "undefined_name" in str(reasons[1].number("error"))
    assert "OutOfMemoryError" in str(reasons[2].number("how"))
    assert variants["call"].correct
    assert variants[names[3]].correct
    assert f"{names[3]} alone" in [pair.candidate for pair in result.comparisons]
