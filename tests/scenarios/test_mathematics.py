"""The scenarios' functions, run eagerly: what they compute, for sizes that their cases do not have."""

from __future__ import annotations

import math
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

SIZES = [
    ((7, 5), (3, 2)),  # odd to odd and even, shrinking
    ((500, 400), (256, 256)),
    ((64, 64), (32, 16)),  # whole ratios: centres fall on pixel edges
    ((33, 10), (32, 11)),  # nearly the same, one axis each way
    ((9, 9), (9, 9)),
    ((5, 8), (17, 31)),  # enlarging
    ((1, 1), (4, 3)),
    ((40, 1), (1, 7)),  # one output row from all rows
    ((3, 200), (3, 2)),  # a filter of 200 taps
]


@pytest.mark.parametrize(("size", "out"), SIZES, ids=str)
@pytest.mark.parametrize("kernel", ["separable", "single"])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_decompositions_are_interpolate_and_the_definition(
    aa: ModuleType,
    size: tuple[int, int],
    out: tuple[int, int],
    kernel: str,
    memory_format: torch.memory_format,
) -> None:
    torch.manual_seed(0)
    image = torch.rand(2, 3, *size).contiguous(memory_format=memory_format)
    got = aa.KERNELS[kernel](image, *out)
    theirs = F.interpolate(image, size=out, mode="bilinear", antialias=True)
    torch.testing.assert_close(got, theirs, rtol=0, atol=2e-6)
    torch.testing.assert_close(got.double(), aa.in_float64(image, *out), rtol=0, atol=1e-6)


def test_the_definition_itself_is_interpolate_in_float64(aa: ModuleType) -> None:
    torch.manual_seed(0)
    image = torch.rand(1, 2, 345, 456, dtype=torch.float64)
    for out in [(256, 256), (100, 1000)]:
        theirs = F.interpolate(image, size=out, mode="bilinear", antialias=True)
        torch.testing.assert_close(aa.in_float64(image, *out), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(500, 256), (456, 256), (120, 256), (7, 3), (1, 5), (9, 9), (1000, 1)])
def test_taps_are_few_and_carry_every_weight(aa: ModuleType, n: int, m: int) -> None:
    index, weight = aa.taps(n, m, torch.device("cpu"))
    assert index.shape == weight.shape == (m, math.ceil(2 * max(n / m, 1)))
    dense = torch.zeros(m, n, dtype=torch.float64).scatter_add_(1, index, weight.double())
    torch.testing.assert_close(dense, aa.dense_weights(n, m), rtol=0, atol=1e-7)


def test_hint_between_the_passes_follows_the_input(aa: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.memory_format] = []
    contiguous = torch.Tensor.contiguous

    def spy(tensor: torch.Tensor, *, memory_format: torch.memory_format) -> torch.Tensor:
        asked.append(memory_format)
        return contiguous(tensor, memory_format=memory_format)

    image = torch.rand(2, 3, 8, 8)
    wide = image.contiguous(memory_format=torch.channels_last)
    monkeypatch.setattr(torch.Tensor, "contiguous", spy)
    aa.separable(image, 4, 4)
    aa.separable(wide, 4, 4)
    assert asked == [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize("layout", ["channels_first", "channels_last", "sliced"])
def test_flips_and_their_references_agree_on_values_they_move(flip: ModuleType, layout: str) -> None:
    case = flip.scenario.case(layout)
    check = flip.build(case)
    (image,) = check.inputs
    assert tuple(image.shape) == (1, 3, 224, 224)
    assert image.dtype == torch.uint8
    flipped = check.function(image)
    assert torch.equal(flipped, check.references["by index"](image))
    assert torch.equal(check.function(flipped), image)
    assert not torch.equal(flipped, image)


def test_layouts_of_images(flip: ModuleType) -> None:
    def image(name: str) -> torch.Tensor:
        inputs = flip.build(flip.scenario.case(name)).inputs
        assert isinstance(inputs[0], torch.Tensor)
        return inputs[0]

    assert image("channels_first").stride() == (3 * 224 * 224, 224 * 224, 224, 1)
    assert image("channels_last").stride() == (3 * 224 * 224, 1, 3 * 224, 3)
    sliced = image("sliced")
    assert (sliced.stride(), sliced.storage_offset()) == ((3 * 245 * 246, 245 * 246, 246, 1), 9 * 246 + 12)


def test_all_cases_have_the_same_knobs(flip: ModuleType, aa: ModuleType) -> None:
    for module in (flip, aa):
        scenario = module.scenario
        assert all(set(scenario.case(name).knobs) == set(scenario.defaults) for name in scenario.cases)
        assert {scenario.case(name)["device"] for name in scenario.cases} == {"cpu", "cuda"}
