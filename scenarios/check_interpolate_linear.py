"""Linear resampling of a signal (1-D) and of a volume (3-D): 2, or 2 x 2 x 2, inputs make each output.

Per axis, as in `check_interpolate_bilinear.py`: with the centre at c, element k weighs max(0, 1 - |k - c|),
and the edge element stands in for those beyond the edge.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from images import BY_BATCH, BY_DTYPE, BY_HISTORY, BY_LAYOUT, LAYOUTS, dynamic, some
from interpolation import corner_centres, dense_weights, half_pixel_centres
from rounding import steps
from training import train, train_in_float64

from inductor_probe.scenario import Case, Check, Scenario, combined

MODES = {1: "linear", 3: "trilinear"}
WEIGHTS = 1 << 26
"""How many weights of an axis there are at once: 512 MiB in float64."""


def linear(x: torch.Tensor, size: int, align_corners: bool) -> torch.Tensor:
    """Return what torch makes of it; every axis gets `size` elements."""
    axes = x.dim() - 2
    return F.interpolate(x, size=[size] * axes, mode=MODES[axes], align_corners=align_corners)


def in_float64(x: torch.Tensor, size: int, align_corners: bool) -> torch.Tensor:
    """Return the definition itself: dense weights of every input, in float64, axis by axis.

    Those of a long signal fill no memory: a part of the outputs is computed at a time.
    """
    centres = corner_centres if align_corners else half_pixel_centres
    result = x.double()
    for axis in range(2, x.dim()):
        n, lines = x.shape[axis], result.movedim(axis, -1)
        parts = [
            lines @ dense_weights(part, lambda distance: 1 - distance, 1, n).to(x.device).T
            for part in centres(n, size).split(max(1, WEIGHTS // n))
        ]
        result = torch.cat(parts, -1).movedim(-1, axis)
    return result


def values(case: Case, length: int) -> torch.Tensor:
    """Return a signal or a volume with values in [0, 1], of `length` along each axis.

    `sliced` is inside of a longer one, `strided` every second element of it; a signal has no `channels_last`.
    """
    axes = 3 if case["mode"] == "trilinear" else 1
    last = {"sliced": length + 20, "strided": 2 * length}.get(case["layout"], length)
    shape = (case["batch"], case["channels"], *[length] * (axes - 1), last)
    x = torch.rand(shape, device=case["device"]).to(getattr(torch, case["dtype"]))
    if case["layout"] == "channels_last" and axes == 3:
        return x.contiguous(memory_format=torch.channels_last_3d)
    return {"sliced": x[..., 9:-11], "strided": x[..., ::2]}.get(case["layout"], x)


def build(case: Case) -> Check:
    """Make the inputs of a case; the centres are computed in float32.

    An element is part of up to twice as many outputs an axis as there are to one: terms of its gradient.
    """
    n, axes, training = case["length"], 3 if case["mode"] == "trilinear" else 1, case["backward"]
    dtype = getattr(torch, case["dtype"])
    tolerance = steps(torch.float32, 3 * axes, largest=n) + (steps(dtype, 2) if dtype.itemsize < 4 else 0)

    def inputs(case: Case) -> tuple[torch.Tensor | int | bool, ...]:
        arguments = (values(case, n), case["out_length"], case["align_corners"])
        return (*arguments, values(case, case["out_length"])) if training else arguments

    return Check(
        linear,
        inputs(case),
        references={"float64": partial(train_in_float64, in_float64) if training else in_float64},
        tolerance=tolerance * (2 * max(case["out_length"] / n, 1)) ** axes if training else tolerance,
        options={"dynamic": dynamic(case)},
        step=train if training else None,
        before=[inputs(case.with_knob("batch", str(case["before"])))] if case["before"] else [],
    )


VOLUME = {"mode": "trilinear", "length": 24, "out_length": 40}
BY_MODE = {"linear": {"mode": "linear"}, "trilinear": VOLUME}
BY_CORNERS = {"half_pixel": {}, "align_corners": {"align_corners": True}}
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
        "dtype": "float32",
        "before": 0,
        "backward": False,
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
    choices={"mode": tuple(MODES.values()), "layout": LAYOUTS, "dtype": ("float32", "bfloat16")},
    matrices={
        "quick": combined(BY_MODE, BY_CORNERS),
        "batches": combined(
            BY_MODE,
            some(BY_DTYPE, "float32", "bfloat16"),
            some(BY_LAYOUT, *LAYOUTS[::2], LAYOUTS[3]),
            BY_BATCH,
        ),
        "volumes": combined(
            {"channels_last_3d": {**VOLUME, "layout": "channels_last"}},
            some(BY_DTYPE, "float32", "bfloat16"),
            BY_CORNERS,
            BY_BATCH,
        ),
        "shapes": combined(BY_MODE, BY_HISTORY),
        "backward": combined({"backward": {"backward": True}}, BY_MODE, BY_CORNERS),
    },
)

if __name__ == "__main__":
    scenario.main()
