"""Nearest-neighbour resampling as it has always been: output pixel i copies input pixel floor(i n/m).

Half a pixel is missing: the image shifts by up to half an input pixel. `check_interpolate_nearest_exact.py`
has the formula that does not shift it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import DTYPES
from interpolation import CHOICES, CPU_CASES, CUDA_CASES, DEFAULTS, check_of, matrices
from rounding import steps

from inductor_probe.scenario import Case, Check, Scenario


def nearest(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return what torch makes of it."""
    return F.interpolate(image, size=(height, width), mode="nearest")


def by_index(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return the same by gathering rows and columns."""
    rows, columns = sources(image.shape[-2], height), sources(image.shape[-1], width)
    return image[..., rows.to(image.device)[:, None], columns.to(image.device)]


def sources(n: int, m: int) -> torch.Tensor:
    """Return which of `n` pixels each of `m` copies (int64).

    In float32, as torch's kernels do it: where the exact product is a whole number, the rounding of n / m
    decides.
    """
    position = torch.arange(m, dtype=torch.float32) * (n / m)
    return position.floor().long().clamp(max=n - 1)


def build(case: Case) -> Check:
    """Make the image of a case; values are copied, so only sums in gradients may differ."""
    sizes = (case["out_height"], case["out_width"])
    tolerance = steps(torch.float32, 1) if case["backward"] else 0.0
    return check_of(case, nearest, {"by index": by_index}, *sizes, tolerance=tolerance)


scenario = Scenario(
    build, DEFAULTS, {**CPU_CASES, **CUDA_CASES}, {**CHOICES, "dtype": DTYPES}, matrices=matrices()
)

if __name__ == "__main__":
    scenario.main()
