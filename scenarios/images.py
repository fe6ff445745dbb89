"""The images that scenarios work on."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inductor_probe.scenario import Case, Knob

LAYOUTS = ("channels_first", "channels_last", "sliced", "strided")
DTYPES = ("uint8", "float32", "float64", "bfloat16")

Axis = Mapping[str, Mapping[str, Knob]]
"""Settings by the name that they have in the names of cases: see `inductor_probe.scenario.combined`."""
BY_BATCH: Axis = {f"batch{n}": {"batch": n} for n in (1, 2, 4, 8)}
BY_LAYOUT: Axis = {layout: {"layout": layout} for layout in LAYOUTS}
BY_DTYPE: Axis = {dtype: {"dtype": dtype} for dtype in ("uint8", "float32", "bfloat16")}
BY_HISTORY: Axis = {
    "static": {},
    "dynamic": {"dynamic": True},
    "1-then-4": {"before": 1, "batch": 4},
    "4-then-1": {"before": 4, "batch": 1},
}
"""How sizes are known: with `before`, a batch of that size is compiled for first, and torch makes of what
differs a symbol. Batch 1 is never one."""


def some(axis: Axis, *names: str) -> Axis:
    """Return the settings of these names."""
    return {name: axis[name] for name in names}


def dynamic(case: Case) -> bool | None:
    """Return `dynamic` of `torch.compile`: automatic where another batch comes before."""
    return None if case["before"] else bool(case["dynamic"])


def images_before(case: Case) -> list[torch.Tensor]:
    """Return the image that comes before that of a case: with `before`, a batch of that size."""
    return [image(case.with_knob("batch", str(case["before"])))] if case["before"] else []


def image(case: Case) -> torch.Tensor:
    """Return a random image of shape (batch, channels, height, width) in the case's layout, dtype and device.

    It has 3 channels where no knob says otherwise. Integers span 0 to 255, floats 0 to 1. `sliced` is a view
    into a larger channels-first image: rows are not adjacent in memory, and the first element is not at the
    start of its storage. `strided` has every second column of one that is twice as wide.
    """
    layout = case["layout"]
    above, below, left, right = (9, 12, 12, 10) if layout == "sliced" else (0, 0, 0, 0)
    width = 2 * case["width"] if layout == "strided" else left + case["width"] + right
    shape = (case["batch"], case.knobs.get("channels", 3), above + case["height"] + below, width)
    dtype = getattr(torch, case["dtype"])
    if dtype.is_floating_point:
        pixels = torch.rand(shape, dtype=dtype, device=case["device"])
    else:
        pixels = torch.randint(0, 256, shape, dtype=dtype, device=case["device"])
    if layout == "sliced":
        return pixels[:, :, above:-below, left:-right]
    if layout == "strided":
        return pixels[..., ::2]
    if layout == "channels_last":
        return pixels.contiguous(memory_format=torch.channels_last)
    return pixels
