"""A convolution behind an operator that makes images: which layout does it get, and which does it return?

A convolution takes channels-last images as they are, and returns channels-last, where the image that it is
given says so. So the memory format in which `interpolate` or `aten.index` returns, by a decomposition or
not, decides whether an image is copied, and in which layout all behind it is. The strides of the result are
compared with eager's beside the values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import BY_BATCH, BY_DTYPE, BY_HISTORY, BY_LAYOUT, LAYOUTS, dynamic, image, images_before, some
from rounding import total
from training import train_first

from inductor_probe.scenario import Case, Check, Scenario, combined


def convolve(image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the sigmoid of a convolution, as large as `image`."""
    return F.conv2d(image, weight, bias, padding=weight.shape[-1] // 2).sigmoid()


def after_flip(image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the same of the image in reverse."""
    return convolve(image.flip(-1), weight, bias)


def after_interpolate(image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the same of the image at half its size: means of 2 x 2 pixels."""
    return convolve(F.interpolate(image, scale_factor=0.5, mode="bilinear"), weight, bias)


def after_index(image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the same of every second pixel, which `aten.index` gathers."""
    rows = torch.arange(0, image.shape[-2], 2, device=image.device)
    columns = torch.arange(0, image.shape[-1], 2, device=image.device)
    return convolve(image[..., rows[:, None], columns], weight, bias)


FUNCTIONS = {"nothing": convolve, "flip": after_flip, "interpolate": after_interpolate, "index": after_index}
"""By what comes before the convolution."""


def by_matrix(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Return the same in float64, with one product of matrices for the convolution."""
    image, weight, bias = (x.double() for x in inputs)
    if function is after_flip:
        image = image.flip(-1)
    elif function is after_interpolate:
        image = F.avg_pool2d(image, 2)
    elif function is after_index:
        image = image[..., ::2, ::2]
    windows = F.unfold(image, weight.shape[-1], padding=weight.shape[-1] // 2)
    result = weight.flatten(1) @ windows + bias[:, None]
    return result.sigmoid().unflatten(-1, image.shape[-2:])


def with_strides(function: Callable[..., Any], *inputs: Any) -> tuple[torch.Tensor, ...]:
    """Return what a function returns, and the strides of the first of it: of a dimension of size 1 a 0."""
    results = function(*inputs)
    first, *others = results if isinstance(results, tuple) else (results,)
    strides = [stride if size > 1 else 0 for size, stride in zip(first.shape, first.stride(), strict=True)]
    return (first, *others, torch.tensor(strides))


def train_with_strides(function: Callable[..., torch.Tensor], *inputs: Any) -> tuple[torch.Tensor, ...]:
    """Return the result, the gradient of the image, and the strides of the result."""
    return with_strides(partial(train_first, function), *inputs)


def build(case: Case) -> Check:
    """Make an image with values in [0, 1], and weights with which a result has a deviation of 1/2 or less.

    A convolution on a GPU multiplies float32 as TF32, which has 10 bits. With `backward` the image has a
    gradient: of as many terms as there are weights of an input channel.
    """
    dtype, size, channels, out = (
        getattr(torch, case["dtype"]), case["kernel_size"], case["channels"], case["out_channels"],
    )  # fmt: skip
    terms = size * size * channels
    weight = (torch.randn(out, channels, size, size, device=case["device"]) * terms**-0.5).to(dtype)
    if case["weight"] == "channels_last":
        weight = weight.contiguous(memory_format=torch.channels_last)
    bias = torch.randn(out, device=case["device"]).to(dtype)
    function, training = FUNCTIONS[case["after"]], case["backward"]

    def inputs_of(pixels: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if not training:
            return (pixels, weight, bias)
        halves = 2 if case["after"] in {"interpolate", "index"} else 1
        above = torch.rand(
            len(pixels), out, *(-(-n // halves) for n in pixels.shape[-2:]), device=pixels.device
        )
        return (pixels, weight, bias, above.to(dtype))

    def reference(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        by_definition = partial(by_matrix, function)
        results = (
            train_first(by_definition, *inputs, dtype=torch.float64)
            if training
            else (by_definition(*inputs),)
        )
        return (*results, with_strides(function, *inputs[:3])[-1])

    eps = 2**-10 if case["device"] != "cpu" and dtype == torch.float32 else torch.finfo(dtype).eps
    return Check(
        function,
        inputs_of(image(case)),
        references={"float64": reference},
        tolerance=(out / channels if training else 1) * (3 * eps + total(dtype, terms, terms**-0.5)),
        options={"dynamic": dynamic(case)},
        step=train_with_strides if training else with_strides,
        before=[inputs_of(pixels) for pixels in images_before(case)],
    )


BY_WEIGHT = {"weight_contiguous": {}, "weight_channels_last": {"weight": "channels_last"}}
BY_AFTER = {f"after_{name}" if name != "nothing" else "alone": {"after": name} for name in FUNCTIONS}
FLOATS = some(BY_DTYPE, "float32", "bfloat16")
CUDA = {"device": "cuda", "dtype": "bfloat16", "batch": 16, "channels": 64, "out_channels": 64}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "layout": "channels_first",
        "weight": "contiguous",
        "after": "nothing",
        "batch": 4,
        "channels": 16,
        "out_channels": 32,
        "kernel_size": 3,
        "height": 64,
        "width": 96,
        "dynamic": False,
        "before": 0,
        "backward": False,
    },
    cases={
        "channels_first": {},
        "channels_last": {"layout": "channels_last"},
        "after_interpolate": {"layout": "channels_last", "after": "interpolate"},
        "after_index": {"layout": "channels_last", "after": "index"},
        "cuda_channels_first": {**CUDA},
        "cuda_channels_last": {**CUDA, "layout": "channels_last"},
        "cuda_after_interpolate": {**CUDA, "layout": "channels_last", "after": "interpolate"},
    },
    choices={
        "layout": LAYOUTS,
        "weight": ("contiguous", "channels_last"),
        "after": tuple(FUNCTIONS),
        "dtype": tuple(FLOATS),
    },
    matrices={
        "quick": combined(BY_AFTER, some(BY_LAYOUT, "channels_first", "channels_last")),
        "layouts": combined(FLOATS, BY_AFTER, BY_LAYOUT, BY_WEIGHT),
        "batches": combined(BY_BATCH, some(BY_LAYOUT, "channels_first", "channels_last"), BY_WEIGHT),
        "shapes": combined(BY_HISTORY, BY_AFTER, some(BY_LAYOUT, "channels_last")),
        "backward": combined(
            {"backward": {"backward": True}}, BY_AFTER, some(BY_LAYOUT, "channels_first", "channels_last")
        ),
    },
)

if __name__ == "__main__":
    scenario.main()
