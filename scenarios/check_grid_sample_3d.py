"""Read a volume at given positions: `grid_sample` in 3-D, which inductor calls as an operator of ATEN.

The volume is turned by the angle of the triangle with sides 3, 4 and 5 about one axis, and moved by 1/4 along
it: element (x, y, z) of the output reads the position (0.8 x - 0.6 y, 0.6 x + 0.8 y, z) from the centre, plus
shifts so that no position is as near to one element as to the next.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from rounding import steps

from inductor_probe.scenario import Case, Check, Scenario

SHIFTS = (0.05, 0.05, 0.25)


def sampled(volume: torch.Tensor, grid: torch.Tensor, mode: str, align_corners: bool) -> torch.Tensor:
    """Return `volume` read at the positions `grid`; those beyond the edge count as 0."""
    return F.grid_sample(volume, grid, mode=mode, align_corners=align_corners)


def positions(depth: int, height: int, width: int, device: torch.device) -> list[torch.Tensor]:
    """Return the positions along width, height and depth that are read, in elements, in float64."""
    z, y, x = (
        torch.arange(n, dtype=torch.float64, device=device) - (n - 1) / 2 for n in (depth, height, width)
    )
    y, z = y[:, None], z[:, None, None]
    turned = (0.8 * x - 0.6 * y + 0 * z, 0.6 * x + 0.8 * y + 0 * z, z + 0 * x + 0 * y)
    ends = (width, height, depth)
    return [at + shift + (n - 1) / 2 for at, shift, n in zip(turned, SHIFTS, ends, strict=True)]


def in_float64(volume: torch.Tensor, grid: torch.Tensor, mode: str, align_corners: bool) -> torch.Tensor:
    """Return the definition: a sum over the elements around each position, those beyond the edge being 0."""
    depth, height, width = volume.shape[-3:]
    at = positions(depth, height, width, volume.device)
    result = torch.zeros(volume.shape, dtype=torch.float64, device=volume.device)
    for corner in range(8):
        weight, places = torch.ones_like(at[0]), []
        for axis, n in enumerate((width, height, depth)):
            place = at[axis].floor() + (corner >> axis & 1)
            distance = (at[axis] - place).abs()
            near = (distance < 0.5).double() if mode == "nearest" else 1 - distance
            weight = weight * near * ((place >= 0) & (place < n))
            places.append(place.long().clamp(0, n - 1))
        result += weight * volume.double()[..., places[2], places[1], places[0]]
    return result


def build(case: Case) -> Check:
    """Make a volume with values in [0, 1], and the grid: element i of n has the coordinate (2i + 1) / n - 1.

    With `align_corners` that is 2i / (n - 1) - 1. A position is computed in float32 with some 6 roundings.
    """
    n = case["length"]
    volume = torch.rand((case["batch"], 2, n, n, n), device=case["device"])
    at = positions(n, n, n, volume.device)
    grid = torch.stack(
        [2 * p / (n - 1) - 1 if case["align_corners"] else (2 * p + 1) / n - 1 for p in at], -1
    )
    return Check(
        sampled,
        (
            volume,
            grid.float().expand(case["batch"], *grid.shape).contiguous(),
            case["mode"],
            case["align_corners"],
        ),
        references={"float64": in_float64},
        tolerance=0.0 if case["mode"] == "nearest" else steps(torch.float32, 12, largest=n),
        options={"dynamic": case["dynamic"]},
    )


scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "mode": "bilinear",
        "align_corners": False,
        "batch": 2,
        "length": 16,
        "dynamic": False,
    },
    cases={
        "bilinear": {},
        "nearest": {"mode": "nearest"},
        "bilinear_align_corners": {"align_corners": True},
        "cuda_bilinear": {"device": "cuda", "length": 96},
    },
    choices={"mode": ("bilinear", "nearest")},
)

if __name__ == "__main__":
    scenario.main()
