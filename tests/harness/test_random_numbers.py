from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._inductor.inductor_prims  # it registers `prims.inductor_random`

from inductor_probe.harness import random_numbers
from inductor_probe.harness.random_numbers import (
    Draw4x,
    Draws,
    draws_4x,
    draws_noted,
    four_at_a_time,
    integers,
    multiplied,
    normal,
    philox,
    uniform,
)

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


KERNEL = """
def triton_poi_fused_rand_0(in_ptr0, out_ptr0, load_seed_offset, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + load_seed_offset)
    tmp1 = (x0).to(tl.int32)
    tmp2 = triton_helpers.rand4x(tmp0, (tmp1).to(tl.uint32), XBLOCK)
    tl.store(out_ptr0 + (x0), tmp2, xmask)
"""
TRANSPOSED = KERNEL.replace("(x0).to(tl.int32)", "(x1 + 64*x0).to(tl.int32)")
ONE_AT_A_TIME = KERNEL.replace(
    "triton_helpers.rand4x(tmp0, (tmp1).to(tl.uint32), XBLOCK)", "tl.rand(tmp0, tmp1)"
)


def test_the_text_of_a_kernel_says_which_seed_gives_four_numbers_a_count() -> None:
    assert draws_4x(KERNEL) == (Draw4x("in_ptr0", "load_seed_offset", "XBLOCK", consecutive=True),)
    assert not draws_4x(TRANSPOSED)[0].consecutive
    assert draws_4x(ONE_AT_A_TIME) == (), "as torch before 2.13 writes it"


@pytest.mark.parametrize(
    ("text", "block", "four", "others"),
    [
        (KERNEL, 64, True, set()),
        (KERNEL, 2, False, set()),  # rand4x itself draws one at a time then
        (ONE_AT_A_TIME, 64, False, set()),
        (TRANSPOSED, 64, True, {"rand in kernel, whose blocks draw numbers of other blocks again"}),
    ],
)
def test_eager_draws_as_the_kernels_that_were_launched(
    monkeypatch: pytest.MonkeyPatch, text: str, block: int, four: bool, others: set[str]
) -> None:
    """The launch is of what has the parts of inductor's CachingAutotuner that are asked for."""
    monkeypatch.setattr(random_numbers, "SEEDS_4X", {})
    seeds, launched = torch.tensor([5, 9, 11]), list[Any]()

    def run(*args: Any, stream: int) -> None:
        launched.append((args, stream))
        args[0].zero_()  # a buffer of seeds may be written to once they are read

    names = ["in_ptr0", "out_ptr0", "load_seed_offset", "xnumel", "XBLOCK"]
    launchers = [SimpleNamespace(config=SimpleNamespace(kwargs={"XBLOCK": block}))]
    function = SimpleNamespace(src=text, arg_names=names)
    namespace = {"kernel": SimpleNamespace(fn=function, launchers=launchers, run=run), "other": 1}
    original = namespace["kernel"]
    with draws_noted(namespace):
        namespace["kernel"].run(seeds, torch.empty(10), 1, 10, stream=3)
    assert namespace["kernel"] is original
    assert launched[0][1] == 3
    with Draws() as draws:
        drawn = torch.ops.prims.inductor_random([10], torch.tensor(9), "rand")
        single = torch.ops.prims.inductor_random([10], torch.tensor(11), "rand")
    one = uniform(philox(9, 10, CPU)[0])
    assert torch.equal(drawn, four_at_a_time(9, 10, CPU, "rand") if four else one)
    assert torch.equal(single, uniform(philox(11, 10, CPU)[0])), "no kernel drew with this seed"
    assert draws.others == others
