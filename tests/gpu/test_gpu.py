"""What only a GPU can show: Triton dumps, their layouts, and bench files that run on it.

`make test-gpu` runs this; without a CUDA device every test is skipped and says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import inductor_probe as ip
from inductor_probe.errors import ExitCode
from tests.conftest import Ran

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(30),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
Probe = Callable[..., Ran]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gpu")


@pytest.fixture(scope="module")
def dumped(folder: Path) -> None:
    """Dump the channels-last flip and the separable antialias once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ip.dump("check_hflip.py", cases=["cuda_channels_last"], label="flip")
        ip.dump("check_interpolate_bilinear_aa.py", cases=["cuda_separable_channels_last"], label="antialias")


@pytest.mark.usefixtures("dumped")
def test_triton_kernels_are_counted_and_linked(probe: Probe, folder: Path) -> None:
    rows = json.loads(probe("layouts", "--json", "antialias", cwd=folder).out)["rows"]
    written = [row for row in rows if row["producer"]]
    assert written
    assert all(row["kernel"].startswith("triton_") for row in written)
    assert {row["layout"]["device"] for row in rows} == {"cuda:0"}
    assert rows[0]["memory_format"] == "channels_last"


@pytest.mark.usefixtures("dumped")
@pytest.mark.parametrize("label", ["flip", "antialias"])
def test_a_triton_bench_file_checks_and_times_itself(probe: Probe, folder: Path, label: str) -> None:
    ran = probe("bench-kernel", label, "--json", "--budget", "6s", "--processes", "3", cwd=folder)
    assert ran.status == ExitCode.OK, ran.err
    answer = json.loads(ran.out)
    (result,) = answer["results"]
    assert all(variant["correct"] for variant in result["variants"])
    for time in result["times"]:
        print(f"{label}: {time['name'][:60]}: {time['seconds'] * 1e6:.2f} us")
    for comparison in result["comparisons"]:
        print(f"{label}: {comparison['candidate'][:50]}: {comparison['ratio']:.4f} {comparison['verdict']}")
    print(f"{label}: {answer['summary'][0]}")


@pytest.mark.usefixtures("dumped")
def test_a_wrong_triton_edit_is_refused(probe: Probe, folder: Path) -> None:
    assert probe("bench-kernel", "flip", "--no-run", cwd=folder).status == ExitCode.OK
    (file,) = [path for path in folder.rglob("output_code_bench.py") if "flip" in path.read_text()]
    text = file.read_text()
    start = text.index("_v2 = async_compile.triton(")
    edited, changed = re.subn(
        r"tl\.load\(in_ptr0 \+ \((\d+)", r"tl.load(in_ptr0 + (1 + \1", text[start:], count=1
    )
    assert changed == 1
    file.write_text(text[:start] + edited)
    ran = probe("bench-kernel", "flip", "--json", cwd=folder)
    assert ran.status == ExitCode.MISMATCH, ran.err
    wrong = [variant for variant in json.loads(ran.out)["results"][0]["variants"] if not variant["correct"]]
    assert wrong
    assert all(variant["mismatches"] > 0 and variant["first_bad"] for variant in wrong)
