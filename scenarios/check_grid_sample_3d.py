"""Read a volume at given positions: `grid_sample` in 3-D, which inductor calls as an operator of ATEN.

The volume is turned by the angle of the triangle with sides 3, 4 and 5 about one axis, and moved by 1/4 along
it: element (x, y, z) of the output reads the position (0.8 x - 0.6 y, 0.6 x + 0.8 y, z) from the centre, plus
shifts so that no position is as near to one element as to the next.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import BY_BATCH, BY_HISTORY, dynamic
from rounding import steps
from training import train_first

from inductor_probe.scenario import Case, Check, Scenario, combined

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

    With `align_corners` that is 2i / (n - 1) - 1. A position is computed in float32 with some 6 roundings; in
    a shorter dtype it would be off by whole elements. With `backward` the volume has a gradient, which is of
    some 8 outputs.
    """
    training = case["backward"]
    tolerance = 0.0 if case["mode"] == "nearest" else steps(torch.float32, 12, largest=case["length"])
    if training:
        tolerance = 8 * (tolerance or steps(torch.float32, 1))
    return Check(
        sampled,
        inputs_of(case, case["batch"]),
        references={
            "float64": partial(train_first, in_float64, dtype=torch.float64) if training else in_float64
        },
        tolerance=tolerance,
        options={"dynamic": dynamic(case)},
        step=train_first if training else None,
        before=[inputs_of(case, case["before"])] if case["before"] else [],
    )


def inputs_of(case: Case, batch: int) -> tuple[torch.Tensor | str | bool, ...]:
    """Return volumes, the grid, and the rest; with `backward` the gradient from above behind that."""
    n = case["length"]
    volume = torch.rand((batch, 2, n, n, n), device=case["device"])
    if case["layout"] == "channels_last":
        volume = volume.contiguous(memory_format=torch.channels_last_3d)
    at = positions(n, n, n, volume.device)
    grid = torch.stack(
        [2 * p / (n - 1) - 1 if case["align_corners"] else (2 * p + 1) / n - 1 for p in at], -1
    )
    grids = grid.float().expand(batch, *grid.shape).contiguous()
    above = [torch.rand_like(volume)] if case["backward"] else []
    return (volume, grids, case["mode"], case["align_corners"], *above)


BY_MODE = {"bilinear": {}, "nearest": {"mode": "nearest"}}
BY_CORNERS = {"half_pixel": {}, "align_corners": {"align_corners": True}}
BY_LAYOUT = {"channels_first": {}, "channels_last_3d": {"layout": "channels_last"}}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "mode": "bilinear",
        "align_corners": False,
        "batch": 2,
        "length": 16,
        "dynamic": False,
        "layout": "channels_first",
        "before": 0,
        "backward": False,
    },
    cases={
        "bilinear": {},
        "nearest": {"mode": "nearest"},
        "bilinear_align_corners": {"align_corners": True},
        "cuda_bilinear": {"device": "cuda", "length": 96},
    },
    choices={"mode": ("bilinear", "nearest"), "layout": ("channels_first", "channels_last")},
    matrices={
        "quick": combined(BY_MODE, BY_CORNERS),
        "batches": combined(BY_MODE, BY_CORNERS, BY_LAYOUT, BY_BATCH),
        "shapes": combined(BY_MODE, BY_HISTORY),
        "backward": combined({"backward": {"backward": True}}, BY_MODE, BY_CORNERS, BY_LAYOUT),
        "large": combined(BY_MODE, {"96-large": {"length": 96}}),
    },
)

if __name__ == "__main__":
    scenario.main()
