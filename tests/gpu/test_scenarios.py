"""Every scenario's cases for CUDA, compiled, against eager and their other references; and their kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch
from torch._inductor.utils import run_and_get_code

from inductor_probe.scenario import run_case
from tests.scenarios.conftest import cases_on, load

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings(
        "ignore:::torch"
    ),  # torch deprecates functions that its own compiler still calls
]

KERNELS = {
    ("check_attention", "cuda_capped"): ["reduction"],
    ("check_cumsum", "cuda_rows"): ["reduction"],
    ("check_cumsum", "cuda_split"): ["split_scan"],
    ("check_layer_norm", "cuda_inference"): ["persistent_reduction"],
    ("check_optimizer_step", "cuda_sgd"): ["foreach"],
    ("check_reduction", "cuda_persistent"): ["persistent_reduction"],
    ("check_reduction", "cuda_inner"): ["reduction"],
    ("check_reduction", "cuda_outer"): ["reduction"],
    ("check_reduction", "cuda_persistent_outer"): ["persistent_reduction"],
    ("check_reduction", "cuda_split"): ["reduction", "persistent_reduction"],
    ("check_reduction", "cuda_split_inner"): ["reduction", "persistent_reduction"],
    ("check_reduction", "cuda_split_outer"): ["reduction", "reduction"],
    ("check_reduction", "cuda_cooperative"): ["cooperative_reduction"],
    ("check_softmax", "cuda_rows"): ["persistent_reduction"],
    ("check_softmax", "cuda_long_rows"): ["reduction"],
    ("check_softmax", "cuda_columns"): ["reduction"],
}
"""Heuristics of the Triton kernels, in the order of the wrapper's text."""


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize(("script", "case"), cases_on("cuda"))
def test_case_compiles_and_agrees(script: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = load(script, monkeypatch).scenario
    (line, right), codes = run_and_get_code(run_case, scenario, scenario.case(case))
    assert right, line
    heuristics = re.findall(r"@triton_heuristics\.(\w+)\(", "".join(codes))
    if (script, case) in KERNELS:
        assert heuristics == KERNELS[script, case]
    if case.endswith("_template"):  # with its epilogue or without: inductor times both
        assert "template" in heuristics
