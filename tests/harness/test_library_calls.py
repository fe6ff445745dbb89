"""Library calls of a GPU that the CPU has no kernel for: by formula, or drawn numbers that both sides get."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from inductor_probe.harness.interpreter.errors import NotInterpretedError
from inductor_probe.harness.interpreter.library_calls import LibraryCalls

ATEN = torch.ops.aten


def tensors(count: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, 16, 32, generator=generator).bfloat16() for _ in range(count)]


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        (ATEN._scaled_dot_product_cudnn_attention, (None, True, 0.0, True)),
        (ATEN._scaled_dot_product_flash_attention, (0.0, True)),
        (ATEN._scaled_dot_product_efficient_attention, (None, True, 0.0, True)),
    ],
)
def test_fused_attention_is_its_formula_with_the_strides_that_a_gpu_gives(
    operator: Any, options: tuple[Any, ...]
) -> None:
    given = tensors()
    meta = operator(*(each.to("meta") for each in given), *options)
    with LibraryCalls() as library:
        results = operator(*given, *options)
    assert library.by_formula == {str(operator.default)}
    assert results[0].dtype == torch.bfloat16
    assert results[0].stride() == meta[0].stride()
    right = F.scaled_dot_product_attention(*(each.double() for each in given), is_causal=True)
    torch.testing.assert_close(results[0].double(), right, atol=1e-2, rtol=1e-2)


def test_attention_that_drops_numbers_is_not_made_up() -> None:
    with (
        pytest.raises(NotInterpretedError, match="drops numbers that are drawn on a GPU alone"),
        LibraryCalls(),
    ):
        ATEN._scaled_dot_product_flash_attention(*tensors(), 0.5)


def test_an_operator_of_a_gpu_alone_gives_each_dtype_the_same_numbers() -> None:
    library = torch.library.Library("probe_of_a_gpu", "DEF")
    library.define("mix(Tensor x) -> (Tensor, Tensor, int)")
    library.impl("mix", lambda x: (x.new_empty(x.shape), x.new_empty(3, dtype=torch.int64), 5), "Meta")
    (narrow,) = tensors(1)
    with LibraryCalls() as calls:
        mixed, whole, number = torch.ops.probe_of_a_gpu.mix(narrow)
        wide, *_ = torch.ops.probe_of_a_gpu.mix(narrow.double())
        torch.add(narrow, 1)
    assert calls.drawn == {"probe_of_a_gpu.mix.default"}
    assert (mixed.dtype, whole.dtype, number) == (torch.bfloat16, torch.int64, 5)
    assert mixed.unique().numel() == 17
    assert torch.equal(mixed.double(), wide)
    assert not whole.any()
