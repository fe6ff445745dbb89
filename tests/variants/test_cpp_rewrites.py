"""Rewrites of C++ kernels compiled and run: those that must compute the same do, and a wrong one is seen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.variants.bench_variants import ablations
from inductor_probe.variants.registry import apply_rewrite, rewrite_variants

ANTIALIAS = "torch-2.13.0-cpu/aa_separable_cl"
TRAIN = "torch-2.13.0-cpu/mlp_train"
Text = Callable[..., str]


def check(folder: Path, source: str) -> dict[str, dict[str, Any]]:
    """Run a bench file without timing; return what it found of each variant."""
    path, results = folder / "output_code_bench.py", folder / "results.json"
    path.write_text(source)
    ended = subprocess.run(
        [sys.executable, str(path), "--check-only", "--json", str(results)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert results.exists(), ended.stderr[-3000:]
    return {each["name"]: each for each in json.loads(results.read_text())["variants"]}


@pytest.mark.compiles
def test_strides_loops_and_index_widths_compute_the_same(bench_text: Text, tmp_path: Path) -> None:
    source = bench_text(ANTIALIAS)
    for spec in (
        "stride:buf1=channels_last",
        "stride:buf1=contiguous",
        "loops:cpp_fused x1,x2 nest=2",
        "loops@v3:cpp_fused x1,x2 nest=2",
        "index:cpp_fused int32",
    ):
        source = apply_rewrite(source, spec)
    found = check(tmp_path, source)
    assert found["call"]["correct"]
    rewrites = [each for name, each in found.items() if re.search(r"_v[3-7]$", name)]
    assert len(rewrites) == 8
    assert all(each["correct"] for each in rewrites), [each for each in rewrites if not each["correct"]]


@pytest.mark.compiles
def test_one_reader_that_does_not_follow_is_seen(bench_text: Text, tmp_path: Path) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "stride:buf1=channels_last")
    start = source.index("_v3 = async_compile")
    load = re.search(r"tmpbuf\[x3_inner\] = out_ptr1\[static_cast<int64_t>\((.*)\)\];", source[start:])
    assert load is not None
    row = re.search(r"tmp\d+", load[1])
    assert row is not None
    as_before = f"(x3 + x3_inner) + 256L*x1 + 768L*{row[0]} + 264960L*x0"
    wrong = source[:start] + source[start:].replace(load[1], as_before, 1)
    found = check(tmp_path, wrong)
    assert found["call"]["correct"]
    assert not found["call_v3"]["correct"]
    share = found["call_v3"]["mismatches"] / found["call_v3"]["elements"]
    assert share > 0.9, "a pixel is right by chance at most"


@pytest.mark.compiles
def test_ablations_compile_and_are_not_judged(bench_text: Text, tmp_path: Path) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "ablation:cpp_fused")
    left_out = ablations(source)
    assert list(left_out.values()) == ["no_loads", "store_only"]
    found = check(tmp_path, source)
    assert found["call"]["correct"]
    assert not found.keys() & left_out.keys()


def test_a_reduction_is_left_out_by_handing_its_values_to_nobody(bench_text: Text, kernel_text: Text) -> None:
    source = apply_rewrite(bench_text(TRAIN, "backward"), "ablation:cpp_fused_sum_1")
    full, reduced, loaded, stored = (
        kernel_text(source, "cpp_fused_sum_1", number) for number in (0, 3, 4, 5)
    )
    combined = re.findall(r"tmp_acc\w+ = tmp_acc\w+ \+ tmp\d+;", full)
    assert combined
    assert reduced.count("asm volatile") == len(combined)
    assert not re.search(r"tmp_acc\w+ = tmp_acc\w+ \+ tmp\d+;", reduced)
    assert "in_ptr0 +" in reduced
    assert "in_ptr0 +" not in loaded
    assert re.search(r"tmp0 = at::vec::Vectorized<float>\(static_cast<float>\(x0 \+", loaded)
    assert re.search(r"decltype\(tmp_acc0_vec\)\(static_cast<float>\(x0\)\)\.store\(out_ptr0", stored)


def test_32_bits_must_hold_every_index(bench_text: Text) -> None:
    source = bench_text("torch-2.13.0-cpu/hflip_cl")
    large = source.replace(
        "(1, 3, 224, 224), (150528, 1, 672, 3)", "(20000, 3, 224, 224), (150528, 1, 672, 3)"
    )
    assert large != source
    with pytest.raises(
        ProbeError, match="32 bits may be too few: the extent of arg0_1 is 3010560000 elements"
    ):
        rewrite_variants(large, "index:cpp_fused_flip_0 int32")
    with pytest.raises(ProbeError, match="symbolic"):
        rewrite_variants(bench_text("torch-2.13.0-cpu/dynamic_shapes"), "index:cpp_fused int32")
    with pytest.raises(ProbeError, match="indexes with int64 already"):
        rewrite_variants(source, "index:cpp_fused_flip_0 int64")


def test_only_loops_and_indices_are_narrowed(bench_text: Text, kernel_text: Text) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "index:cpp_fused int32")
    text = kernel_text(source, "cpp_fused", 3)
    assert not re.search(r"for ?\((?:int64_t|long) x", text)
    assert not re.search(r"_ptr\d+(?:\[| \+ )static_cast<int64_t>", text)
    assert not re.search(r"_ptr\d+(?:\[| \+ )static_cast<int32_t>\([^)]*\dL", text)
    assert "auto tmp0 = static_cast<int64_t>(x0);" in text
    assert "std::array<int64_t, 16> tmpbuf" in text
