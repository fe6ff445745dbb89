"""Bicubic resampling without antialias: each output pixel is made of the 4 x 4 input pixels around its
centre.

For one axis, with the centre at c, the pixel k weighs `interpolation.cubic(|k - c|)`, and the edge pixel
stands in for those beyond the edge.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from interpolation import (
    CHOICES,
    CPU_CASES,
    CUDA_CASES,
    DEFAULTS,
    check_of,
    corner_centres,
    cubic,
    dense_weights,
    half_pixel_centres,
    matrices,
    resample,
    tolerance_of,
)

from inductor_probe.scenario import Case, Check, Scenario


def bicubic(image: torch.Tensor, height: int, width: int, align_corners: bool) -> torch.Tensor:
    """Return what torch makes of it."""
    return F.interpolate(image, size=(height, width), mode="bicubic", align_corners=align_corners)


def in_float64(image: torch.Tensor, height: int, width: int, align_corners: bool) -> torch.Tensor:
    """Return the definition itself: dense weights of every input pixel, in float64."""
    centres = corner_centres if align_corners else half_pixel_centres
    rows, columns = (
        dense_weights(centres(n, m), cubic, 2, n)
        for n, m in zip(image.shape[-2:], (height, width), strict=True)
    )
    return resample(image, rows, columns)


def build(case: Case) -> Check:
    """Make the image of a case.

    The kernel's slope is 1.3 at most, and four weights of each axis move with a centre: 8 roundings of a
    centre are what a pixel can be off by. Weights have together up to 1.4 times the size of the pixels.
    """
    arguments = (case["out_height"], case["out_width"], case["align_corners"])
    tolerance = tolerance_of(case, 8, largest=2)
    return check_of(case, bicubic, {"float64": in_float64}, *arguments, tolerance=tolerance)


scenario = Scenario(
    build,
    defaults={**DEFAULTS, "align_corners": False},
    cases={**CPU_CASES, "align_corners": {"align_corners": True}, **CUDA_CASES},
    choices=CHOICES,
    matrices=matrices(),
)

if __name__ == "__main__":
    scenario.main()
