"""Fused attention in float64: what torch computes of it step by step, with its gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from inductor_probe.harness.attention import OPERATORS
from inductor_probe.harness.random_numbers import draws_numbers

CUDNN, EFFICIENT = "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention"
BIAS = torch.randn(2, 1, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


class Narrow:
    """The operator of a GPU, which is not here: its schema, and outputs of its sizes in its types."""

    def __init__(self, name: str, sums: tuple[int, ...]) -> None:
        self.name, self.sums = name, sums
        self._schema = getattr(torch.ops.aten, name).default._schema

    def __call__(
        self, query: torch.Tensor, _key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
    ) -> Any:
        assert {query.dtype, value.dtype} == {torch.bfloat16}
        out = torch.empty(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
        return out, torch.empty(self.sums), torch.tensor(3), torch.tensor(4)


@pytest.mark.parametrize(
    ("operator", "bias", "options"),
    [
        (Narrow(CUDNN, (2, 4, 5, 1)), None, {"is_causal": True}),
        (Narrow(CUDNN, (2, 4, 5, 1)), BIAS, {}),
        (Narrow(EFFICIENT, (2, 4, 32)), BIAS, {"scale": 0.3}),
        (Narrow(EFFICIENT, (0,)), None, {}),
    ],
)
@pytest.mark.parametrize("at_once", [1 << 27, 1])
def test_the_result_and_its_gradients_are_those_of_the_formula(
    monkeypatch: pytest.MonkeyPatch,
    operator: Narrow,
    bias: torch.Tensor | None,
    options: dict[str, Any],
    at_once: int,
) -> None:
    monkeypatch.setattr("inductor_probe.harness.attention._AT_ONCE", at_once)
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(2, 4, length, width, dtype=torch.float64, requires_grad=True)
        for length, width in ((5, 8), (7, 8), (7, 6))
    )
    forward, backward = (OPERATORS[f"aten.{operator.name}{suffix}.default"] for suffix in ("", "_backward"))
    given = (*(each.detach() for each in (query, key, value)), bias)
    out, logarithms, *_ = forward.func(operator, *given, True, **options)  # type: ignore[attr-defined]
    expected = F.scaled_dot_product_attention(query, key, value, bias, **options)
    torch.testing.assert_close(out, expected)
    if operator.sums == (0,):
        return
    gradient = torch.randn_like(expected)
    expected.backward(gradient)
    left = (gradient, *given, out, logarithms, 3, 4)
    if operator.name == CUDNN:
        left = (gradient, *given[:3], out, logarithms, 3, 4, bias, None, None, 5, 7, 0.0)
        result = backward(*left, options.get("is_causal", False), scale=options.get("scale"))
    else:
        result = backward(*left, 0.0, [True, True, True, False], **options)
    for found, wanted in zip(result, (query.grad, key.grad, value.grad), strict=False):
        torch.testing.assert_close(found, wanted)


def test_attention_without_dropout_draws_no_random_numbers() -> None:
    """It counted as drawn otherwise in eager, so that code was compared with A to the bit."""
    attention = torch.ops.aten._scaled_dot_product_cudnn_attention.default
    assert not draws_numbers(attention, (1, 2, 3, None, False, 0.0), {})
    assert not draws_numbers(attention, (1, 2, 3, None, False), {})
    assert draws_numbers(attention, (1, 2, 3, None, False), {"dropout_p": 0.1})
    assert draws_numbers(torch.ops.aten.bernoulli.p, (1, 0.5), {})
    assert not draws_numbers(torch.ops.aten.add.Tensor, (1, 2), {})
