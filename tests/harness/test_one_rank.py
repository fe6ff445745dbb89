"""Collectives of a stand-in process group of one rank."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inductor_probe.harness import one_rank
from inductor_probe.harness.shims import operator_of_shim

_CALLS = torch.ops._c10d_functional


@pytest.fixture(autouse=True)
def stood_in() -> None:
    assert one_rank.ONE_RANK


def test_a_reduction_is_of_this_rank_alone_and_what_is_gathered_are_copies() -> None:
    x = torch.arange(6.0).view(3, 2)
    assert torch.equal(_CALLS.all_reduce.default(x, "sum", "0"), x)
    assert torch.equal(_CALLS.all_gather_into_tensor.default(x, 2, "0"), torch.cat([x, x]))
    assert torch.equal(_CALLS.reduce_scatter_tensor.default(x, "avg", 3, "0"), x[:1])
    assert torch.equal(_CALLS.all_to_all_single.default(x, [2, 2], [1, 2], "0"), x[[0, 1, 2, 0]])
    out = torch.empty(6, 2)
    out[:3] = x
    gathered = _CALLS.all_gather_into_tensor_out.default(out[:3], 2, "0", out=out)
    assert torch.equal(gathered, torch.cat([x, x]))
    for one in _CALLS.all_reduce_coalesced.default([x, x + 1], "max", "0"):
        assert torch.equal(_CALLS.wait_tensor.default(one), one)


def test_what_is_reduced_in_place_stays_there() -> None:
    x = torch.ones(2)
    result = _CALLS.all_reduce_.default(x, "sum", "0")
    assert result.data_ptr() == x.data_ptr()
    assert _CALLS.all_reduce.default(x, "sum", "0").data_ptr() != x.data_ptr()


def test_the_names_of_the_c_interface_are_those_operators() -> None:
    names = ("aoti_torch_cpu__c10d_functional_all_reduce_", "aoti_torch_cpu__c10d_functional_wait_tensor")
    operators: list[Any] = [_CALLS.all_reduce_.default, _CALLS.wait_tensor.default]
    assert [operator_of_shim(name) for name in names] == operators
