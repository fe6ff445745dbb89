"""What the scenarios that resample images share: cases, and resampling by its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from images import BY_BATCH, BY_LAYOUT, LAYOUTS, Axis, some

from inductor_probe.scenario import Knob, combined

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
CHOICES = {"layout": LAYOUTS, "dtype": ("float32",)}


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
    """Return the matrices `quick`, `sizes` and `large`, in which `knobs` are set."""
    plain = some(BY_LAYOUT, "channels_first", "channels_last")
    axes = {
        "quick": (plain, some(BY_BATCH, "batch1", "batch4"), some(by_size(SIZES), *QUICK_SIZES)),
        "sizes": (BY_LAYOUT, BY_BATCH, by_size(SIZES)),
        "large": (plain, some(BY_BATCH, "batch1"), by_size(LARGE_SIZES)),
    }
    return {
        name: {case: {**values, **knobs} for case, values in combined(*each).items()}
        for name, each in axes.items()
    }


def resample(image: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return what the float64 matrices `rows` (out_height, height) and `columns` (out_width, width) make of
    it."""
    return rows.to(image.device) @ image.double() @ columns.to(image.device).T


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
