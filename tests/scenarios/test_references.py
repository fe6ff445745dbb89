"""The references of the scenarios, against their functions run eagerly: with other sizes than the cases have,
too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch

from inductor_probe.scenario import Check
from tests.scenarios.conftest import cases_on, load
from tests.scenarios.test_mathematics import SIZES

INTERPOLATIONS = [
    ("check_interpolate_nearest", {}),
    ("check_interpolate_nearest_exact", {}),
    ("check_interpolate_bilinear", {"align_corners": "false"}),
    ("check_interpolate_bilinear", {"align_corners": "true"}),
    ("check_interpolate_bicubic", {"align_corners": "false"}),
    ("check_interpolate_bicubic", {"align_corners": "true"}),
]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Check]:
    def _built(script: str, case: str, knobs: Mapping[str, object]) -> Check:
        scenario = load(script, monkeypatch).scenario
        (chosen,) = scenario.select([case], [f"{knob}={value}" for knob, value in knobs.items()])
        torch.manual_seed(0)
        check = scenario.build(chosen)
        assert isinstance(check, Check)
        return check

    return _built


def tensors(value: torch.Tensor | tuple[torch.Tensor, ...] | list[torch.Tensor]) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def copied(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value.clone() if isinstance(value, torch.Tensor) else value


def eagerly(check: Check) -> list[torch.Tensor]:
    inputs = copied(check.inputs)
    assert isinstance(inputs, tuple)
    return tensors(check.step(check.function, *inputs) if check.step else check.function(*inputs))


def assert_references_agree(check: Check) -> None:
    expected = eagerly(check)
    assert check.references
    for name, reference in check.references.items():
        inputs = copied(check.inputs)
        assert isinstance(inputs, tuple)
        for out, theirs in zip(tensors(reference(*inputs)), expected, strict=True):
            torch.testing.assert_close(
                out.double(), theirs.double(), rtol=0, atol=check.tolerance, msg=lambda m, n=name: f"{n}: {m}"
            )


@pytest.mark.parametrize(("script", "case"), cases_on("cpu"))
def test_references_agree(built: Callable[..., Check], script: str, case: str) -> None:
    assert_references_agree(built(script, case, {}))


@pytest.mark.parametrize(("script", "case"), cases_on("cpu"))
def test_tolerance_tells_a_wrong_result(built: Callable[..., Check], script: str, case: str) -> None:
    """What a result is about must be far more than it may be off: 8 bits of bfloat16 leave a factor of 5."""
    check = built(script, case, {})
    for out in eagerly(check):
        about = out.double().std().item() if out.numel() > 1 else abs(out.item())
        short = out.dtype in {torch.bfloat16, torch.float16}
        assert check.tolerance <= about * (0.2 if short else 0.003)


@pytest.mark.parametrize(("size", "out"), SIZES, ids=str)
@pytest.mark.parametrize(("script", "knobs"), INTERPOLATIONS)
def test_interpolations(
    built: Callable[..., Check],
    script: str,
    knobs: Mapping[str, object],
    size: tuple[int, int],
    out: tuple[int, int],
) -> None:
    sizes = {"height": size[0], "width": size[1], "out_height": out[0], "out_width": out[1]}
    assert_references_agree(built(script, "channels_last", {**knobs, **sizes, "batch": 2}))


@pytest.mark.parametrize("size", [(8, 8), (7, 5), (6, 9), (31, 64), (40, 3)], ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_turned_images(
    built: Callable[..., Check], mode: str, align_corners: bool, size: tuple[int, int]
) -> None:
    knobs = {"align_corners": align_corners, "height": size[0], "width": size[1], "batch": 2}
    assert_references_agree(built("check_affine_grid_sample", mode, knobs))


@pytest.mark.parametrize("dim", ["inner", "outer", "all"])
@pytest.mark.parametrize("op", ["sum", "variance", "argmax"])
def test_reductions(built: Callable[..., Check], op: str, dim: str) -> None:
    assert_references_agree(
        built("check_reduction", "inner", {"op": op, "dim": dim, "rows": 33, "columns": 70})
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("script", "case"),
    [
        ("check_attention", "capped_training"),
        ("check_dynamic_shapes", "all"),
        ("check_embedding", "bag"),
        ("check_embedding", "embedding_training"),
        ("check_index_put", "accumulate"),
        ("check_layer_norm", "training"),
        ("check_matmul", "mm"),
        ("check_reduction", "inner"),
        ("check_reduction", "variance"),
        ("check_softmax", "rows"),
    ],
)
def test_tolerances_hold_in_every_dtype(
    built: Callable[..., Check], script: str, case: str, dtype: str
) -> None:
    assert_references_agree(built(script, case, {"dtype": dtype}))
