"""Bilinear resampling without antialias: each output pixel is made of the 2 x 2 input pixels around its
centre.

For one axis, with the centre at c, the pixel k weighs max(0, 1 - |k - c|), and the edge pixel stands in for
those beyond the edge.
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
    dense_weights,
    half_pixel_centres,
    matrices,
    resample,
    tolerance_of,
)

from inductor_probe.scenario import Case, Check, Scenario


def bilinear(image: torch.Tensor, height: int, width: int, align_corners: bool) -> torch.Tensor:
    """Return what torch makes of it."""
    return F.interpolate(image, size=(height, width), mode="bilinear", align_corners=align_corners)


def in_float64(image: torch.Tensor, height: int, width: int, align_corners: bool) -> torch.Tensor:
    """Return the definition itself: dense weights of every input pixel, in float64."""
    centres = corner_centres if align_corners else half_pixel_centres
    rows, columns = (
        dense_weights(centres(n, m), lambda distance: 1 - distance, 1, n)
        for n, m in zip(image.shape[-2:], (height, width), strict=True)
    )
    return resample(image, rows, columns)


def build(case: Case) -> Check:
    """Make the image of a case."""
    arguments = (case["out_height"], case["out_width"], case["align_corners"])
    references = {"float64": in_float64}
    return check_of(case, bilinear, references, *arguments, tolerance=tolerance_of(case, 3))


scenario = Scenario(
    build,
    defaults={**DEFAULTS, "align_corners": False},
    cases={**CPU_CASES, "align_corners": {"align_corners": True}, **CUDA_CASES},
    choices=CHOICES,
    matrices=matrices(),
)

if __name__ == "__main__":
    scenario.main()
