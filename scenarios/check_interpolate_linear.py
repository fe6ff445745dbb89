"""Linear resampling of a signal (1-D) and of a volume (3-D): 2, or 2 x 2 x 2, inputs make each output.

Per axis, as in `check_interpolate_bilinear.py`: with the centre at c, element k weighs max(0, 1 - |k - c|),
and the edge element stands in for those beyond the edge.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from interpolation import corner_centres, dense_weights, half_pixel_centres
from rounding import steps

from inductor_probe.scenario import Case, Check, Scenario

MODES = {1: "linear", 3: "trilinear"}


def linear(x: torch.Tensor, size: int, align_corners: bool) -> torch.Tensor:
    """Return what torch makes of it; every axis gets `size` elements."""
    axes = x.dim() - 2
    return F.interpolate(x, size=[size] * axes, mode=MODES[axes], align_corners=align_corners)


def in_float64(x: torch.Tensor, size: int, align_corners: bool) -> torch.Tensor:
    """Return the definition itself: dense weights of every input, in float64, axis by axis."""
    centres = corner_centres if align_corners else half_pixel_centres
    result = x.double()
    for axis in range(2, x.dim()):
        n = x.shape[axis]
        weights = dense_weights(centres(n, size), lambda distance: 1 - distance, 1, n).to(x.device)
        result = (result.movedim(axis, -1) @ weights.T).movedim(-1, axis)
    return result


def build(case: Case) -> Check:
    """Make a signal or a volume with values in [0, 1]; the centres are computed in float32."""
    n, axes = case["length"], 3 if case["mode"] == "trilinear" else 1
    x = torch.rand((case["batch"], case["channels"], *[n] * axes), device=case["device"])
    if case["layout"] == "channels_last" and axes == 3:
        x = x.contiguous(memory_format=torch.channels_last_3d)
    return Check(
        linear,
        (x, case["out_length"], case["align_corners"]),
        references={"float64": in_float64},
        tolerance=steps(torch.float32, 3 * axes, largest=n),
        options={"dynamic": case["dynamic"]},
    )


VOLUME = {"mode": "trilinear", "length": 24, "out_length": 40}
scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "mode": "linear",
        "layout": "channels_first",
        "batch": 4,
        "channels": 3,
        "length": 1000,
        "out_length": 600,
        "align_corners": False,
        "dynamic": False,
    },
    cases={
        "linear": {},
        "linear_align_corners": {"align_corners": True},
        "trilinear": {**VOLUME},
        "trilinear_channels_last": {**VOLUME, "layout": "channels_last"},
        "trilinear_align_corners": {**VOLUME, "align_corners": True},
        "cuda_linear": {"device": "cuda", "length": 100_000, "out_length": 60_000},
        "cuda_trilinear": {"device": "cuda", **VOLUME, "length": 96, "out_length": 160},
    },
    choices={"mode": tuple(MODES.values()), "layout": ("channels_first", "channels_last")},
)

if __name__ == "__main__":
    scenario.main()
