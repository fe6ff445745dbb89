"""Antialiased bilinear resampling written in torch ops; torch itself calls an extern kernel for it.

The mathematics, for one axis of n input and m output pixels. Pixel k of the input covers [k, k + 1], so its
centre is k + 1/2; output pixel i has its centre at c = (i + 1/2) n/m in input coordinates. Where the image
shrinks (n > m), the triangle filter is stretched to the distance between output centres: its radius is
r = max(n/m, 1) input pixels. Then

    weight(i, k) = max(0, 1 - |k + 1/2 - c| / r),  divided by the sum over the pixels k that exist.

Multiplied by 2 m r = 2 max(n, m), which the division cancels, that is

    weight(i, k) = max(0, 2 max(n, m) - |(2k + 1) m - (2i + 1) n|),

all integers: float32 holds them exactly up to 2**24, and rounds only in the division.
Sums are float32, and the result has the dtype of the image: that of uint8 is rounded once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import BY_DTYPE, LAYOUTS
from interpolation import check_of, in_dtype_of, matrices, resample, tolerance_of

from inductor_probe.scenario import Case, Check, Knob, Scenario


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
    return in_dtype_of(image, (narrow[..., rows, :] * row_weights[..., None]).sum(dim=-2))


def single(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resample both axes at once: one reduction over a window of rows and columns, nothing in between."""
    columns, column_weights = taps(image.shape[-1], width, image.device)
    rows, row_weights = taps(image.shape[-2], height, image.device)
    window = image[..., rows[:, :, None, None], columns]  # (..., height, row taps, width, column taps)
    return in_dtype_of(image, (window * (row_weights[:, :, None, None] * column_weights)).sum(dim=(-3, -1)))


def no_split(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resample columns tap by tap, and rows by a reduction: nothing splits the passes into two kernels.

    The first pass is no reduction, so that inductor can compute it again inside of the second.
    """
    columns, column_weights = taps(image.shape[-1], width, image.device)
    rows, row_weights = taps(image.shape[-2], height, image.device)
    narrow = image[..., columns[:, 0]] * column_weights[:, 0]
    for tap in range(1, columns.shape[1]):
        narrow = narrow + image[..., columns[:, tap]] * column_weights[:, tap]
    return in_dtype_of(image, (narrow[..., rows, :] * row_weights[..., None]).sum(dim=-2))


def interpolate(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return what torch's own kernel makes of it."""
    return F.interpolate(image, size=(height, width), mode="bilinear", antialias=True)


def in_float64(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return the definition itself: dense weights of every input pixel, in float64."""
    by_rows, by_columns = dense_weights(image.shape[-2], height), dense_weights(image.shape[-1], width)
    return resample(image, by_rows, by_columns)


def dense_weights(n: int, m: int) -> torch.Tensor:
    """Return the float64 matrix of shape (m, n) that resamples one axis."""
    centre = (torch.arange(m, dtype=torch.float64)[:, None] + 0.5) * n / m
    distance = (torch.arange(n, dtype=torch.float64) + 0.5 - centre).abs()
    weight = (1 - distance / max(n / m, 1)).clamp(min=0)
    return weight / weight.sum(dim=-1, keepdim=True)


KERNELS = {"separable": separable, "single": single, "no_split": no_split, "interpolate": interpolate}
VARIANTS = ("separable", "single", "no_split")
"""Each is timed against torch's own kernel; of bfloat16 torch has none for a CPU, so against the first."""


def build(case: Case) -> Check:
    """Make the image of a case. Values are in [0, 1], sums of a few hundred float32 products at most.

    Torch's own kernel computes the centres, up to the image's size, in float32.
    """
    own, short = case["kernel"] == "interpolate", case["dtype"] == "bfloat16"
    return check_of(
        case,
        KERNELS[case["kernel"]],
        {"float64": in_float64} if short else {"interpolate": interpolate, "float64": in_float64},
        *(case["out_height"], case["out_width"]),
        tolerance=tolerance_of(case, 3) if own or case["dtype"] != "float32" else 1e-5,
        variants={name: KERNELS[name] for name in VARIANTS if name != case["kernel"]} if own or short else {},
    )


def compared(matrices: dict[str, dict[str, dict[str, Knob]]]) -> dict[str, dict[str, dict[str, Knob]]]:
    """Return the cases with the decompositions alone where torch has no kernel."""
    for cases in matrices.values():
        for knobs in cases.values():
            if knobs.get("dtype") == "bfloat16":
                knobs["kernel"] = VARIANTS[0]
    return matrices


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
        "before": 0,
        "backward": False,
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
    choices={"layout": LAYOUTS, "dtype": tuple(BY_DTYPE), "kernel": tuple(KERNELS)},
    matrices=compared(matrices(kernel="interpolate")),
)  # fmt: skip

if __name__ == "__main__":
    scenario.main()
