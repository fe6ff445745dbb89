"""Mirror an image top to bottom: the smallest kernel whose layout matters.

The output has the input's strides, so a channels-last image should be read and written without a stride, and
a sliced one should be read in place.
"""

from __future__ import annotations

import torch
from images import (
    BY_BATCH,
    BY_DTYPE,
    BY_HISTORY,
    BY_LAYOUT,
    DTYPES,
    LAYOUTS,
    dynamic,
    image,
    images_before,
    some,
)

from inductor_probe.scenario import Case, Check, Scenario, combined


def vflip(image: torch.Tensor) -> torch.Tensor:
    """Return `image` with its rows in reverse order."""
    return image.flip(-2)


def by_index(image: torch.Tensor) -> torch.Tensor:
    """Return the same by gathering rows `last`, `last - 1`, ... 0."""
    last = image.shape[-2] - 1
    return image[..., last - torch.arange(last + 1, device=image.device), :]


def build(case: Case) -> Check:
    """Make the image of a case; a flip moves values, so nothing may differ by anything."""
    return Check(
        vflip,
        (image(case),),
        references={"by index": by_index},
        options={"dynamic": dynamic(case)},
        before=[(before,) for before in images_before(case)],
    )


BY_SIZE = {"345x456": {"height": 345, "width": 456}}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "uint8",
        "layout": "channels_first",
        "batch": 1,
        "height": 224,
        "width": 224,
        "dynamic": False,
        "before": 0,
    },
    cases={
        "channels_first": {},
        "channels_last": {"layout": "channels_last"},
        "sliced": {"layout": "sliced"},
        "cuda_channels_first": {"device": "cuda"},
        "cuda_channels_last": {"device": "cuda", "layout": "channels_last"},
        "cuda_sliced": {"device": "cuda", "layout": "sliced"},
    },
    choices={"layout": LAYOUTS, "dtype": DTYPES},
    matrices={
        "quick": combined(
            some(BY_DTYPE, "uint8", "float32"), some(BY_LAYOUT, "channels_first", "channels_last"), BY_SIZE
        ),
        "batches": combined(BY_DTYPE, BY_LAYOUT, BY_BATCH, BY_SIZE),
        "shapes": combined(BY_SIZE, BY_HISTORY),
    },
)

if __name__ == "__main__":
    scenario.main()
