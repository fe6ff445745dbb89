"""Every scenario's cases for the CPU, compiled, against eager and their other references."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from inductor_probe.scenario import run_case
from tests.scenarios.conftest import SCRIPTS, cases_on, load
from tests.scenarios.test_kernels import CASES as DUMPED

LIKE = {
    "check_affine_grid_sample": {
        "bilinear_channels_last": "bilinear",
        "bilinear_align_corners": "bilinear",
    },
    "check_attention": {"capped": "capped_training"},
    "check_convolution": {
        "channels_first": "after_index",
        "channels_last": "after_index",
        "after_interpolate": "after_index",
    },
    "check_cumsum": {"columns": "rows"},
    "check_embedding": {"embedding": "embedding_training"},
    "check_grid_sample_3d": {"bilinear_align_corners": "bilinear", "nearest": "bilinear"},
    "check_hflip": {"channels_first": "sliced"},
    "check_interpolate_bicubic": {
        "channels_first": "channels_last",
        "upscale": "channels_last",
        "align_corners": "channels_last",
    },
    "check_interpolate_bilinear": {"channels_last": "channels_first", "upscale": "channels_first"},
    "check_interpolate_bilinear_aa": {
        "separable_channels_first": "separable_upscale",
        "separable_channels_last": "separable_upscale",
        "single_channels_first": "single_upscale",
        "single_channels_last": "single_upscale",
    },
    "check_interpolate_linear": {
        "linear_align_corners": "linear",
        "trilinear_align_corners": "trilinear",
        "trilinear_channels_last": "trilinear",
    },
    "check_interpolate_nearest": {"channels_first": "upscale"},
    "check_interpolate_nearest_exact": {"channels_first": "channels_last", "upscale": "channels_last"},
    "check_matmul": {"bmm_max_autotune": "bmm_template"},
    "check_vflip": {"channels_first": "sliced", "channels_last": "sliced"},
}
"""Cases that do not run here, for they cost seconds of compiling each. Beside each is the case of the same
script that does run, and compiles to the same kind of kernel.
"""


@pytest.fixture(scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile whatever this machine has compiled before, for one thread."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        torch.set_num_threads(1)
        yield
    torch.set_num_threads(threads)
    torch._dynamo.reset()


@pytest.mark.compiles
@pytest.mark.usefixtures("_own_cache")
@pytest.mark.filterwarnings("ignore:::torch")  # torch deprecates functions that its own compiler still calls
@pytest.mark.parametrize(("script", "case"), cases_on("cpu"))
def test_case_compiles_and_agrees(script: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if DUMPED.get(script) == case:
        pytest.skip("test_kernels.py compiles it and checks its result")
    if like := LIKE.get(script, {}).get(case):
        pytest.skip(f"its kernel is like {like}'s; `python scenarios/{script}.py --case {case}` runs it")
    scenario = load(script, monkeypatch).scenario
    line, right = run_case(scenario, scenario.case(case))
    assert right, line


def test_what_does_not_run_has_a_stand_in_that_does() -> None:
    cases = cases_on("cpu")
    for script, likes in LIKE.items():
        for case, like in likes.items():
            assert (script, case) in cases
            assert (script, like) in cases
            assert like not in likes
    assert {script for script, _ in cases} == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_matrices_name_knobs_of_their_scenario_and_allowed_values(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix is compiled by `probe perf` alone: a case that cannot be built would be seen there first."""
    scenario = load(script, monkeypatch).scenario
    for name, knobs in scenario.every_case.items():
        assert set(knobs) <= set(scenario.defaults), name
        case = scenario.case(name)
        for knob, value in case.knobs.items():
            assert type(value) is type(scenario.defaults[knob]), (name, knob)
            assert value in scenario.choices.get(knob, (value,)), (name, knob)
    for matrix in scenario.matrices:
        assert len(scenario.matrix(matrix)) == len(scenario.matrices[matrix])
    named_twice = [
        name
        for matrix in scenario.matrices.values()
        for name, knobs in matrix.items()
        if {**scenario.defaults, **knobs} != dict(scenario.case(name).knobs)
    ]
    assert not named_twice, "cases of one name in two matrices have other knobs"
