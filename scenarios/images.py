"""The images that scenarios work on."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Case

LAYOUTS = ("channels_first", "channels_last", "sliced")
DTYPES = ("uint8", "float32", "float64")


def image(case: Case) -> torch.Tensor:
    """Return a random image of shape (batch, 3, height, width) in the case's layout, dtype and device.

    Integers span 0 to 255, floats 0 to 1. `sliced` is a view into a larger channels-first image: rows are not
    adjacent in memory, and the first element is not at the start of its storage.
    """
    layout = case["layout"]
    above, below, left, right = (9, 12, 12, 10) if layout == "sliced" else (0, 0, 0, 0)
    shape = (case["batch"], 3, above + case["height"] + below, left + case["width"] + right)
    dtype = getattr(torch, case["dtype"])
    if dtype.is_floating_point:
        pixels = torch.rand(shape, dtype=dtype, device=case["device"])
    else:
        pixels = torch.randint(0, 256, shape, dtype=dtype, device=case["device"])
    if layout == "sliced":
        return pixels[:, :, above:-below, left:-right]
    if layout == "channels_last":
        return pixels.contiguous(memory_format=torch.channels_last)
    return pixels
