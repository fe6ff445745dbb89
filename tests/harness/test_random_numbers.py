from __future__ import annotations

import math

import pytest
import torch

from inductor_probe.harness.random_numbers import Draws, integers, multiplied, normal, philox, uniform

CPU = torch.device("cpu")


def test_philox_gives_the_numbers_that_its_authors_publish() -> None:
    # Known answer of philox4x32-10 for a counter and a key of zeros, from the Random123 distribution.
    words = [int(word[0]) for word in philox(0, 1, CPU)]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_products_of_32_bits_do_not_overflow() -> None:
    words = [0, 1, 0xFFFF, 0x10000, 0x80000000, 0xFFFFFFFF]
    for factor in (0xD2511F53, 0xFFFFFFFF):
        high, low = multiplied(torch.tensor(words), factor)
        exact = [word * factor for word in words]
        assert high.tolist() == [product >> 32 for product in exact]
        assert low.tolist() == [product & 0xFFFFFFFF for product in exact]


def test_distributions_are_what_they_are_called() -> None:
    words = philox(7, 20000, CPU)
    drawn = uniform(words[0])
    assert drawn.dtype == torch.float32
    assert 0 <= drawn.min() < 0.001
    assert 0.999 < drawn.max() < 1
    gauss = normal(words)
    assert abs(gauss.mean().item()) < 0.03
    assert abs(gauss.std().item() - 1) < 0.03


@pytest.mark.parametrize(("low", "high"), [(0, 9), (-3, 4), (0, 2**31), (-(2**40), 2**62)])
def test_whole_numbers_are_the_remainder_of_64_bits(low: int, high: int) -> None:
    words = philox(11, 50, CPU)
    exact = [
        low + (first | second << 32) % (high - low)
        for first, second in zip(words[0].tolist(), words[1].tolist(), strict=True)
    ]
    assert integers(words, low, high).tolist() == exact


def test_other_operations_run_as_they_are_and_random_ones_are_noted() -> None:
    with Draws() as draws:
        assert (torch.ones(2) + 1).tolist() == [2, 2]
        assert not draws.others
        torch.rand(2)
    assert draws.others == {"aten.rand.default"}
    assert math.isfinite(torch.rand(1).item())
