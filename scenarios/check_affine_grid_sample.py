"""Turn an image: `affine_grid` makes the positions, `grid_sample` reads the pixels around each.

Pixel i of n has the coordinate (2i + 1) / n - 1, so that the image spans -1 to 1; with `align_corners` it is
2i / (n - 1) - 1. The turn has the angle of the triangle with sides 3, 4 and 5: in pixels from the image's
centre, output pixel (x, y) reads the position (0.8 x - 0.6 y, 0.6 x + 0.8 y), moved by 1/20. All positions
are whole tenths of a pixel plus 1/20, so none is as near to one pixel as to the next, where rounding would
decide which one `nearest` copies.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import BY_BATCH, BY_HISTORY, BY_LAYOUT, LAYOUTS, dynamic, image, images_before
from interpolation import cubic
from rounding import steps
from training import train_first

from inductor_probe.scenario import Case, Check, Scenario, combined

COSINE, SINE, SHIFT = 0.8, 0.6, 0.05


def turned(image: torch.Tensor, theta: torch.Tensor, mode: str, align_corners: bool) -> torch.Tensor:
    """Return `image` read at the positions that the (batch, 2, 3) matrices `theta` map its pixels to."""
    grid = F.affine_grid(theta, list(image.shape), align_corners=align_corners)
    return F.grid_sample(image, grid, mode=mode, align_corners=align_corners)


def in_float64(image: torch.Tensor, theta: torch.Tensor, mode: str, align_corners: bool) -> torch.Tensor:
    """Return the definition: a sum over the pixels around each position; those beyond the edge count as 0."""
    height, width = image.shape[-2:]
    x = torch.arange(width, dtype=torch.float64, device=image.device) - (width - 1) / 2
    y = torch.arange(height, dtype=torch.float64, device=image.device)[:, None] - (height - 1) / 2
    at_x = COSINE * x - SINE * y + SHIFT + (width - 1) / 2
    at_y = SINE * x + COSINE * y + SHIFT + (height - 1) / 2
    radius, kernel = KERNELS[mode]
    result = torch.zeros(image.shape, dtype=torch.float64, device=image.device)
    for row in range(1 - radius, 1 + radius):
        for column in range(1 - radius, 1 + radius):
            i, j = at_y.floor() + row, at_x.floor() + column
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            weight = kernel((at_y - i).abs()) * kernel((at_x - j).abs()) * inside
            result += weight * image[..., i.long().clamp(0, height - 1), j.long().clamp(0, width - 1)]
    return result


KERNELS = {
    "bilinear": (1, lambda distance: 1 - distance),
    "nearest": (1, lambda distance: distance < 0.5),
    "bicubic": (2, cubic),
}
"""By mode: how many pixels to each side of a position count, and what one weighs at a distance."""


def build(case: Case) -> Check:
    """Make the image of a case, with values in [0, 1], and the turn in `affine_grid`'s coordinates.

    A position, up to the image's size, is computed in float32 with some 6 roundings. At the edge, where
    pixels become 0, the result moves as fast as the position does, and along both axes. What `nearest` copies
    is exact. In a shorter dtype a position would be off by whole pixels.

    With `backward` the image has a gradient, of as many outputs as a pixel's own neighbours.
    """
    height, width = case["height"], case["width"]
    # Half the pixels from -1 to 1: distances between the outermost centres, or between the image's edges.
    across, down = (n - 1 if case["align_corners"] else n for n in (width, height))
    theta = torch.tensor(
        [
            [COSINE, -SINE * down / across, 2 * SHIFT / across],
            [SINE * across / down, COSINE, 2 * SHIFT / down],
        ],
        device=case["device"],
    )
    tolerance = 0.0 if case["mode"] == "nearest" else steps(torch.float32, 12, largest=max(height, width))
    training = case["backward"]
    if training:
        tolerance = (2 * KERNELS[case["mode"]][0]) ** 2 * (tolerance or steps(torch.float32, 1))

    def inputs_of(pixels: torch.Tensor) -> tuple[torch.Tensor | str | bool, ...]:
        turns = theta.expand(len(pixels), 2, 3).contiguous()
        above = [torch.rand_like(pixels)] if training else []
        return (pixels, turns, case["mode"], case["align_corners"], *above)

    return Check(
        turned,
        inputs_of(image(case)),
        references={
            "float64": partial(train_first, in_float64, dtype=torch.float64) if training else in_float64
        },
        tolerance=tolerance,
        options={"dynamic": dynamic(case)},
        step=train_first if training else None,
        before=[inputs_of(pixels) for pixels in images_before(case)],
    )


BY_MODE = {mode: {"mode": mode} for mode in KERNELS}
BY_CORNERS = {"half_pixel": {}, "align_corners": {"align_corners": True}}
BY_SIZE = {"345x456": {"height": 345, "width": 456}}
BATCH_OF_PHOTOS = {"batch": 4, "height": 345, "width": 456}
CUDA_BATCH = {"device": "cuda", "batch": 8, "height": 1080, "width": 1920}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "mode": "bilinear",
        "align_corners": False,
        "layout": "channels_first",
        "batch": 1,
        "height": 250,
        "width": 200,
        "dynamic": False,
        "before": 0,
        "backward": False,
    },
    cases={
        "bilinear": {},
        "nearest": {"mode": "nearest"},
        "bicubic": {"mode": "bicubic"},
        "bilinear_channels_last": {"layout": "channels_last", **BATCH_OF_PHOTOS},
        "bilinear_align_corners": {"align_corners": True},
        "cuda_bilinear": {**CUDA_BATCH},
        "cuda_nearest": {"mode": "nearest", **CUDA_BATCH},
        "cuda_bicubic": {"mode": "bicubic", **CUDA_BATCH},
        "cuda_bilinear_channels_last": {"layout": "channels_last", **CUDA_BATCH},
    },
    choices={"layout": LAYOUTS, "dtype": ("float32",), "mode": tuple(KERNELS)},
    matrices={
        "quick": combined(BY_MODE, BY_CORNERS, BY_SIZE),
        "batches": combined(BY_MODE, BY_LAYOUT, BY_BATCH, BY_SIZE),
        "shapes": combined(BY_MODE, BY_HISTORY),
        "backward": combined({"backward": {"backward": True}}, BY_MODE, BY_CORNERS),
        "large": combined(BY_MODE, {"2345x2456-large": {"height": 2345, "width": 2456}}),
    },
)

if __name__ == "__main__":
    scenario.main()
