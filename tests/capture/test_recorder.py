"""Facts of inputs, on tensors of every kind, without a compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_probe.capture.recorder import input_fact


@pytest.mark.parametrize(
    ("tensor", "extremes"),
    [
        (torch.tensor([-3, 9], dtype=torch.int8), (-3, 9)),
        (torch.tensor([True, False]), (0, 1)),
        (torch.tensor([7, 65535], dtype=torch.uint16), (7, 65535)),
        (torch.tensor([7, 2**32 - 1], dtype=torch.uint32), (7, 2**32 - 1)),
        (torch.tensor([3, 2**64 - 1, 2**63], dtype=torch.uint64), (3, 2**64 - 1)),
        (torch.tensor([5], dtype=torch.int32).expand(4), (5, 5)),
        (torch.empty(0, dtype=torch.int64), (None, None)),
        (torch.rand(3), (None, None)),
        (torch.rand(3, dtype=torch.complex64), (None, None)),
    ],
    ids=lambda value: str(value.dtype) if isinstance(value, torch.Tensor) else "",
)
def test_integers_have_extremes(tensor: torch.Tensor, extremes: tuple[int | None, int | None]) -> None:
    fact = input_fact("x", tensor, None)
    assert fact is not None
    assert (fact.get("minimum"), fact.get("maximum")) == extremes


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_floats_have_a_mean_and_a_deviation(dtype: torch.dtype) -> None:
    fact = input_fact("x", torch.tensor([1, 3], dtype=dtype), None)
    assert fact is not None
    assert (fact["mean"], fact["deviation"]) == (2, 1)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1, float("inf")]),
        torch.tensor([1, float("nan")]),
        torch.empty(0),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2).to(torch.float8_e4m3fn),
    ],
    ids=["infinity", "nan", "empty", "complex", "float8"],
)
def test_floats_that_are_not_finite_or_not_computed_with_have_none(tensor: torch.Tensor) -> None:
    fact = input_fact("x", tensor, None)
    assert fact is not None
    assert not {"mean", "deviation"} & set(fact)


def test_a_tensor_that_repeats_its_elements_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump went through 2**32 elements of an `expand`, one in memory, for half a minute."""
    read: list[int] = []

    def watch(name: str) -> None:
        compute = getattr(torch, name)

        def compute_and_count(tensor: torch.Tensor, **options: int) -> Any:
            read.append(tensor.numel())
            return compute(tensor, **options)

        monkeypatch.setattr(torch, name, compute_and_count)

    watch("std_mean")
    watch("aminmax")
    floats = input_fact("x", torch.tensor([[1.0], [3.0]]).expand(9, 2, 5), None)
    assert floats is not None
    assert (floats["size"], floats["stride"]) == ([9, 2, 5], [0, 1, 0])
    assert (floats["mean"], floats["deviation"]) == (2, 1)
    whole = input_fact("x", torch.tensor([4, 9]).expand(7, 2), None)
    assert whole is not None
    assert (whole["minimum"], whole["maximum"]) == (4, 9)
    assert read == [2, 2]


def test_a_view_keeps_its_offset_and_saves_its_whole_storage(tmp_path: Path) -> None:
    image = torch.arange(24, dtype=torch.uint8).reshape(4, 6)
    fact = input_fact("x", image[1:3, 2:5], tmp_path)
    assert fact is not None
    assert (fact["size"], fact["stride"], fact["offset"]) == ([2, 3], [6, 1], 8)
    assert (tmp_path / "probe_inputs" / fact["saved"]).read_bytes() == bytes(range(24))


def test_other_things_than_tensors_and_numbers_have_no_fact() -> None:
    assert input_fact("x", "text", None) is None
    assert input_fact("s0", 7, None) == {"name": "s0", "kind": "symint", "value": 7}
