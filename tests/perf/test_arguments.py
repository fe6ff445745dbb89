"""Arguments of plain functions: what is written makes the tensor that torch would make."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.errors import ProbeError
from inductor_probe.harness.inputs import Inputs
from inductor_probe.harness.jobs import JobError
from inductor_probe.measuring.arguments import DTYPES, argument_of
from inductor_probe.measuring.child.cases import of_function


def made(text: str) -> torch.Tensor:
    argument = argument_of(text)
    tensor: torch.Tensor = Inputs(0).tensor(
        argument["name"],
        argument["size"],
        argument["stride"],
        getattr(torch, argument["dtype"]),
        "cpu",
        offset=argument["offset"],
        high=255,
    )
    return tensor


@given(st.lists(st.integers(1, 5), min_size=4, max_size=5), st.sampled_from(sorted(DTYPES)))
def test_channels_last_is_what_torch_calls_so(size: list[int], dtype: str) -> None:
    tensor = made(f"x={dtype}{size}:channels_last")
    memory_format = torch.channels_last if len(size) == 4 else torch.channels_last_3d
    expected = torch.empty(size, dtype=tensor.dtype).contiguous(memory_format=memory_format)
    assert tensor.is_contiguous(memory_format=memory_format)
    assert tensor.shape == expected.shape
    if 1 not in size:
        assert tensor.stride() == expected.stride()


def test_sliced_is_a_view_inside_of_a_larger_tensor() -> None:
    tensor = made("x=f32[2,3,4]:sliced")
    like = torch.empty(2, 3 + 16, 4 + 16)[:, 8:-8, 8:-8]
    assert (tensor.stride(), tensor.storage_offset()) == (like.stride(), like.storage_offset())


def test_strided_has_every_second_element() -> None:
    assert made("x=f32[2,3]:strided").stride() == torch.empty(2, 6)[:, ::2].stride()


def test_values_and_scalars() -> None:
    assert argument_of("size=(256, 256)")["value"] == (256, 256)
    assert made("x=f32[]").shape == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "write NAME="),
        ("1x=f32[1]", "write NAME="),
        ("x=f33[1]", "unknown dtype 'f33'"),
        ("x=f32[1]:nope", "unknown memory format 'nope'"),
        ("x=f32[1,2]:channels_last", "4 or more dimensions"),
        ("x=f32[1,2", "neither a tensor nor a Python value"),
        ("x=f32[99999999,99999999]", "elements"),
    ],
)
def test_what_is_no_argument_is_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ProbeError) as caught:
        argument_of(text)
    assert words in f"{caught.value.message} {caught.value.hint}"


def blend(x: torch.Tensor, y: torch.Tensor, share: float = 0.5, *, out: object = None) -> torch.Tensor:
    return x * share + y * (1 - share)


def case_of(function: Callable[..., torch.Tensor], *texts: str) -> tuple[object, ...]:
    arguments = [argument_of(text) for text in texts]
    names = {function.__name__: function}
    scenario = of_function(names, {"function": function.__name__, "arguments": arguments})
    return tuple(scenario.build(scenario.case(function.__name__)).inputs)


def test_arguments_go_to_the_parameters_that_they_name() -> None:
    x, y, share = case_of(blend, "share=0.25", "y=f32[2]", "x=f32[3]")
    assert isinstance(x, torch.Tensor)
    assert isinstance(y, torch.Tensor)
    assert (tuple(x.shape), tuple(y.shape), share) == ((3,), (2,), 0.25)
    assert len(case_of(blend, "y=f32[2]", "x=f32[3]")) == 2


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("x=f32[3]", "z=f32[3]"), "blend takes no z"),
        (("x=f32[3]",), "blend needs y; add --arg y=VALUE"),
        (("x=f32[3]", "y=f32[3]", "out=1"), "blend takes out by keyword only"),
    ],
)
def test_an_argument_that_no_parameter_takes_is_a_sentence(texts: tuple[str, ...], words: str) -> None:
    with pytest.raises(JobError, match=words):
        case_of(blend, *texts)
