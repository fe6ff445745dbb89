"""Antialiased bilinear resampling written in torch ops; torch itself calls an extern kernel for it.

The mathematics, for one axis of n input and m output pixels. Pixel k of the input covers [k, k + 1], so its
centre is k + 1/2; output pixel i has its centre at c = (i + 1/2) n/m in input coordinates. Where the image
shrinks (n > m), the triangle filter is stretched to the distance between output centres: its radius is
r = max(n/m, 1) input pixels. Then

    weight(i, k) = max(0, 1 - |k + 1/2 - c| / r),  divided by the sum over the pixels k that exist.

Multiplied by 2 m r = 2 max(n, m), which the division cancels, that is

    weight(i, k) = max(0, 2 max(n, m) - |(2k + 1) m - (2i + 1) n|),

all integers: float32 holds them exactly up to 2**24, and rounds only in the division.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import LAYOUTS, image
from interpolation import matrices
from rounding import steps

from inductor_probe.scenario import Case, Check, Scenario


def taps(n: int, m: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which of `n` pixels make each of `m`, and with what weight.

    The filter reaches over less than 2r pixels from the first whose centre is not left of c - r, so
    ceil(2r) = ceil(2 max(n, m) / m) taps are enough.

    Returns:
        Indices (int64) and weights (float32), both of shape (m, taps). Taps beyond the image's edge have
        weight 0 and the index of the edge.
    """
    reach = 2 * max(n, m)
    count = -(-reach // m)
    centre = (2 * torch.arange(m, device=device, dtype=torch.float32)[:, None] + 1) * n  # 2m c
    first = torch.ceil((centre - reach - m) / (2 * m))
    pixel = first + torch.arange(count, device=device, dtype=torch.float32)
    weight = (reach - ((2 * pixel + 1) * m - centre).abs()).clamp(min=0)
    weight = torch.where((pixel >= 0) & (pixel < n), weight, 0.0)
    return pixel.to(torch.int64).clamp(0, n - 1), weight / weight.sum(dim=-1, keepdim=True)


def separable(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resample rows, then columns. Between the passes the image asks for the layout that it came in."""
    columns, column_weights = taps(image.shape[-1], width, image.device)
    rows, row_weights = taps(image.shape[-2], height, image.device)
    channels_last = image.is_contiguous(memory_format=torch.channels_last)
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    narrow = (image[..., columns] * column_weights).sum(dim=-1)
    narrow = narrow.contiguous(memory_format=memory_format)
    return (narrow[..., rows, :] * row_weights[..., None]).sum(dim=-2)


def single(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resample both axes at once: one reduction over a window of rows and columns, nothing in between."""
    columns, column_weights = taps(image.shape[-1], width, image.device)
    rows, row_weights = taps(image.shape[-2], height, image.device)
    window = image[..., rows[:, :, None, None], columns]  # (..., height, row taps, width, column taps)
    return (window * (row_weights[:, :, None, None] * column_weights)).sum(dim=(-3, -1))


def no_split(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resample columns tap by tap, and rows by a reduction: nothing splits the passes into two kernels.

    The first pass is no reduction, so that inductor can compute it again inside of the second.
    """
    columns, column_weights = taps(image.shape[-1], width, image.device)
    rows, row_weights = taps(image.shape[-2], height, image.device)
    narrow = image[..., columns[:, 0]] * column_weights[:, 0]
    for tap in range(1, columns.shape[1]):
        narrow = narrow + image[..., columns[:, tap]] * column_weights[:, tap]
    return (narrow[..., rows, :] * row_weights[..., None]).sum(dim=-2)


def interpolate(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return what torch's own kernel makes of it."""
    return F.interpolate(image, size=(height, width), mode="bilinear", antialias=True)


def in_float64(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return the definition itself: dense weights of every input pixel, in float64."""
    by_rows, by_columns = dense_weights(image.shape[-2], height), dense_weights(image.shape[-1], width)
    return by_rows @ image.double().cpu() @ by_columns.T


def dense_weights(n: int, m: int) -> torch.Tensor:
    """Return the float64 matrix of shape (m, n) that resamples one axis."""
    centre = (torch.arange(m, dtype=torch.float64)[:, None] + 0.5) * n / m
    distance = (torch.arange(n, dtype=torch.float64) + 0.5 - centre).abs()
    weight = (1 - distance / max(n / m, 1)).clamp(min=0)
    return weight / weight.sum(dim=-1, keepdim=True)


KERNELS = {"separable": separable, "single": single, "no_split": no_split, "interpolate": interpolate}
VARIANTS = ("separable", "single", "no_split")
"""Each is timed against torch's own kernel, where the case is about that."""


def build(case: Case) -> Check:
    """Make the image of a case. Values are in [0, 1], sums of a few hundred float32 products at most.

    Torch's own kernel computes the centres, up to the image's size, in float32.
    """
    largest = max(case["height"], case["width"])
    return Check(
        KERNELS[case["kernel"]],
        (image(case), case["out_height"], case["out_width"]),
        references={"interpolate": interpolate, "float64": in_float64},
        tolerance=1e-5 if case["kernel"] != "interpolate" else steps(torch.float32, 3, largest=largest),
        options={"dynamic": case["dynamic"]},
        variants={name: KERNELS[name] for name in VARIANTS} if case["kernel"] == "interpolate" else {},
    )


BATCH_OF_PHOTOS = {"batch": 4, "height": 345, "width": 456}
PHOTO = {"batch": 1, "height": 500, "width": 400}
THUMBNAIL = {"batch": 1, "height": 120, "width": 161}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "kernel": "separable",
        "layout": "channels_first",
        **PHOTO,
        "out_height": 256,
        "out_width": 256,
        "dynamic": False,
    },
    cases={
        "separable_channels_first": {**PHOTO},
        "separable_channels_last": {"layout": "channels_last", **BATCH_OF_PHOTOS},
        "separable_upscale": {**THUMBNAIL},
        "single_channels_first": {"kernel": "single", **PHOTO},
        "single_channels_last": {"kernel": "single", "layout": "channels_last", **BATCH_OF_PHOTOS},
        "single_upscale": {"kernel": "single", **THUMBNAIL},
        "cuda_separable_channels_first": {"device": "cuda", **PHOTO},
        "cuda_separable_channels_last": {"device": "cuda", "layout": "channels_last", **BATCH_OF_PHOTOS},
        "cuda_single_channels_first": {"device": "cuda", "kernel": "single", **PHOTO},
        "cuda_single_channels_last": {
            "device": "cuda", "kernel": "single", "layout": "channels_last", **BATCH_OF_PHOTOS,
        },
    },
    choices={"layout": LAYOUTS, "dtype": ("float32",), "kernel": tuple(KERNELS)},
    matrices=matrices(kernel="interpolate"),
)  # fmt: skip

if __name__ == "__main__":
    scenario.main()
