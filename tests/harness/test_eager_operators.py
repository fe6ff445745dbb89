"""Which operators eager runs in a call, and what torch says of each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from inductor_probe.harness.eager_operators import MOST_CALLS, eager_operators

BYTES = 4 * 64 * 32


def operators(run: Any) -> dict[str, Any]:
    return {one["name"]: one for one in eager_operators(run, lambda: None, 0.1)}


def test_each_operator_has_its_calls_bytes_and_the_function_that_the_program_calls() -> None:
    x = torch.randn(64, 32)
    seen = operators(lambda: F.softplus(F.softplus(F.layer_norm(x, (32,)))).t().contiguous())
    assert seen["aten::softplus"]["calls"] == 2
    assert seen["aten::softplus"]["functions"] == ["softplus"]
    assert (seen["aten::softplus"]["read"], seen["aten::softplus"]["written"]) == (2 * BYTES, 2 * BYTES)
    assert seen["aten::softplus"]["allocated"] == 2 * BYTES
    assert seen["aten::native_layer_norm"]["functions"] == ["layer_norm"]
    assert seen["aten::native_layer_norm"]["written"] == BYTES + 2 * 4 * 64  # the mean, and the deviation
    assert seen["aten::t"]["read"] == 0  # a view moves nothing
    assert sum(one["share"] for one in seen.values()) <= 1


def test_operators_within_an_operator_are_below_it_and_no_rows() -> None:
    theta = torch.rand(2, 2, 3)
    seen = operators(lambda: F.affine_grid(theta, [2, 3, 64, 32], align_corners=False))
    assert [*seen] == ["aten::affine_grid_generator"]
    (row,) = seen.values()
    assert row["own"] < 1
    assert "aten::bmm" in dict(row["below"])
    assert row["allocated"] > row["written"] == 2 * 4 * 2 * 64 * 32


def test_memory_that_is_broadcast_is_read_once() -> None:
    row = torch.randn(1, 32).expand(64, 32)
    assert operators(lambda: row * 2)["aten::mul"]["read"] == 4 * 32


def test_what_calls_change_is_put_back_after_each() -> None:
    x, restored = torch.zeros(4), list[float]()

    def restore() -> None:
        restored.append(x[0].item())
        x.zero_()

    seen = {one["name"] for one in eager_operators(lambda: x.add_(1), restore, 60.0)}
    assert seen == {"aten::add_"}
    assert restored == [1.0] * (MOST_CALLS + 1)


def test_an_operator_that_raises_ends_it() -> None:
    with pytest.raises(RuntimeError):
        eager_operators(lambda: torch.ones(2) + torch.ones(3), lambda: None, 0.1)
