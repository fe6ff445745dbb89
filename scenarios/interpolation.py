"""What the scenarios that resample images share: cases, and resampling by its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

import torch
from images import (
    BY_BATCH,
    BY_DTYPE,
    BY_HISTORY,
    BY_LAYOUT,
    LAYOUTS,
    Axis,
    dynamic,
    image,
    images_before,
    some,
)
from rounding import steps
from training import train, train_in_float64

from inductor_probe.scenario import Case, Check, Knob, combined

PHOTO = {"batch": 1, "height": 500, "width": 400}
BATCH_OF_PHOTOS = {"batch": 4, "height": 345, "width": 456}
THUMBNAIL = {"batch": 1, "height": 120, "width": 161}
CUDA_BATCH = {"device": "cuda", "batch": 8, "height": 1080, "width": 1920}

DEFAULTS: Mapping[str, Knob] = {
    "device": "cpu",
    "dtype": "float32",
    "layout": "channels_first",
    **PHOTO,
    "out_height": 256,
    "out_width": 256,
    "dynamic": False,
    "before": 0,
    "backward": False,
}
CPU_CASES: Mapping[str, Mapping[str, Knob]] = {
    "channels_first": {**PHOTO},
    "channels_last": {"layout": "channels_last", **BATCH_OF_PHOTOS},
    "upscale": {**THUMBNAIL},
}
CUDA_CASES: Mapping[str, Mapping[str, Knob]] = {
    "cuda_channels_first": {**CUDA_BATCH},
    "cuda_channels_last": {**CUDA_BATCH, "layout": "channels_last"},
    "cuda_upscale": {**CUDA_BATCH, "out_height": 2160, "out_width": 3840},
}
CHOICES = {"layout": LAYOUTS, "dtype": tuple(BY_DTYPE)}


SIZES = {
    "345x456-271x272": (345, 456, 271, 272),
    "500x400-256x256": (500, 400, 256, 256),
    "1200x1300-200x300": (1200, 1300, 200, 300),
    "300x400-600x700": (300, 400, 600, 700),
}
QUICK_SIZES = ("345x456-271x272", "500x400-256x256")
LARGE_SIZES = {
    "2345x2456-1234x1345-large": (2345, 2456, 1234, 1345),
    "3456x4567-2345x3456-large": (3456, 4567, 2345, 3456),
}


def by_size(sizes: Mapping[str, tuple[int, int, int, int]]) -> Axis:
    """Return the knobs of each size."""
    knobs = ("height", "width", "out_height", "out_width")
    return {name: dict(zip(knobs, size, strict=True)) for name, size in sizes.items()}


def matrices(**knobs: Knob) -> dict[str, dict[str, dict[str, Knob]]]:
    """Return the matrices that all have, in which `knobs` are set.

    `quick`, `sizes` and `large` are of float32; `dtypes` of all; `shapes` says how sizes are known;
    `backward` are training steps.
    """
    plain = some(BY_LAYOUT, "channels_first", "channels_last")
    sizes = by_size(SIZES)
    axes = {
        "quick": (plain, some(BY_BATCH, "batch1", "batch4"), some(sizes, *QUICK_SIZES)),
        "sizes": (BY_LAYOUT, BY_BATCH, sizes),
        "large": (plain, some(BY_BATCH, "batch1"), by_size(LARGE_SIZES)),
        "dtypes": (BY_DTYPE, BY_LAYOUT, some(BY_BATCH, "batch1", "batch4"), some(sizes, *QUICK_SIZES)),
        "shapes": (BY_HISTORY, plain, some(sizes, QUICK_SIZES[0])),
        "backward": ({"backward": {"backward": True}}, plain, some(BY_BATCH, "batch1", "batch4"), sizes),
    }
    return {
        name: {case: {**values, **knobs} for case, values in combined(*each).items()}
        for name, each in axes.items()
    }


def check_of(
    case: Case,
    function: FunctionType,
    references: Mapping[str, Callable[..., torch.Tensor]],
    *arguments: Any,
    tolerance: float,
    variants: Mapping[str, FunctionType] | None = None,
) -> Check:
    """Return the check of a function that resamples the image of a case: `function(image, *arguments)`.

    With `backward` it is a training step. The gradient that comes from above is in [0, 1] and in the layout
    of the image, and the references are differentiated in float64.
    """

    def inputs_of(pixels: torch.Tensor) -> tuple[Any, ...]:
        return (pixels, *arguments, *([_above(case, pixels)] if case["backward"] else []))

    training = bool(case["backward"])
    if training:
        references = {name: partial(train_in_float64, reference) for name, reference in references.items()}
        tolerance *= _outputs_of_a_pixel(case)
    return Check(
        function,
        inputs_of(image(case)),
        references=references,
        tolerance=tolerance,
        options={"dynamic": dynamic(case)},
        step=train if training else None,
        variants=variants or {},
        before=[inputs_of(pixels) for pixels in images_before(case)],
    )


def _above(case: Case, pixels: torch.Tensor) -> torch.Tensor:
    shape = (*pixels.shape[:2], case["out_height"], case["out_width"])
    last = case["layout"] == "channels_last"
    return torch.rand(shape, dtype=pixels.dtype, device=pixels.device).contiguous(
        memory_format=torch.channels_last if last else torch.contiguous_format
    )


def _outputs_of_a_pixel(case: Case) -> float:
    """Return how many outputs a pixel is part of, at most: terms of its gradient.

    The filters of `bicubic` and antialias reach over 4 pixels of the input, or of the output where that is
    smaller.
    """
    scales = (case["out_height"] / case["height"], case["out_width"] / case["width"])
    return 4 * max(scales[0], 1.0) * 4 * max(scales[1], 1.0)


def tolerance_of(case: Case, roundings: float, *, largest: float = 1.0) -> float:
    """Return how far a resampled pixel may be off, with images that have values in [0, 1], or uint8.

    Centres of up to the image's size are computed in float32, and the error of that is the error of a weight:
    `roundings` of it reach the result. That is rounded to the dtype: a sum, and what is up to `largest` in
    it. For uint8 torch has weights of 16 bits and rounds each axis: whole numbers that differ by 1.
    """
    if case["dtype"] == "uint8":
        return 1.0
    tolerance = steps(torch.float32, roundings, largest=max(case["height"], case["width"]))
    dtype = getattr(torch, case["dtype"])
    return tolerance + (steps(dtype, 2, largest=largest) if dtype.itemsize < 4 else 0.0)


def resample(image: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return what the float64 matrices `rows` (out_height, height) and `columns` (out_width, width) make of
    it.

    Of uint8, what the columns make is limited to 0 ... 255 before the rows, as it is in torch: cubic weights
    can make -30 of pixels that are 0 and 255.
    """
    rows, columns = rows.to(image.device), columns.to(image.device)
    if image.dtype == torch.uint8:
        return levels_of(rows @ (image.double() @ columns.T).clamp(0, 255))
    return rows @ image.double() @ columns.T


def levels_of(image: torch.Tensor) -> torch.Tensor:
    """Return an image rounded to whole numbers from 0 to 255, in its dtype."""
    return image.round().clamp(0, 255)


def in_dtype_of(image: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return what was computed of an image in that image's dtype."""
    if image.dtype == result.dtype:
        return result
    return (levels_of(result) if image.dtype == torch.uint8 else result).to(image.dtype)


def dense_weights(
    centres: torch.Tensor, kernel: Callable[[torch.Tensor], torch.Tensor], radius: int, n: int
) -> torch.Tensor:
    """Return the float64 matrix of shape (len(centres), n) that resamples one axis of `n` pixels.

    Pixels from `radius` - 1 left of each centre to `radius` right of it weigh `kernel(distance)`. The edge
    pixel stands in for those beyond the edge.
    """
    first = centres.floor() - (radius - 1)
    pixel = first[:, None] + torch.arange(2 * radius)
    weight = kernel((pixel - centres[:, None]).abs())
    dense = torch.zeros(len(centres), n, dtype=torch.float64)
    return dense.scatter_add_(1, pixel.long().clamp(0, n - 1), weight)


def half_pixel_centres(n: int, m: int) -> torch.Tensor:
    """Return where the centres of `m` output pixels lie among `n` input pixels, in float64.

    Pixel 0 has its centre at 0, the image its edges at -1/2 and n - 1/2: (i + 1/2) n/m - 1/2.
    """
    return (torch.arange(m, dtype=torch.float64) + 0.5) * n / m - 0.5


def corner_centres(n: int, m: int) -> torch.Tensor:
    """Return the same with the outermost centres of input and output on each other: i (n - 1) / (m - 1)."""
    return torch.arange(m, dtype=torch.float64) * (n - 1) / max(m - 1, 1)


def cubic(distance: torch.Tensor, a: float = -0.75) -> torch.Tensor:
    """Return the weight of a pixel at `distance` t >= 0 from the centre: the cubic convolution kernel.

    R. Keys, "Cubic convolution interpolation for digital image processing" (1981), with the a that torch
    takes: (a + 2) t^3 - (a + 3) t^2 + 1 up to t = 1, a t^3 - 5 a t^2 + 8 a t - 4 a up to t = 2, and 0 beyond.
    """
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))
