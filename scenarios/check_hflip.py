"""Mirror an image left to right: the smallest kernel whose layout matters.

The output has the input's strides, so a channels-last image should be read and written without a stride, and
a sliced one should be read in place.
"""

from __future__ import annotations

import torch
from images import DTYPES, LAYOUTS, image

from inductor_probe.scenario import Case, Check, Scenario


def hflip(image: torch.Tensor) -> torch.Tensor:
    """Return `image` with its columns in reverse order."""
    return image.flip(-1)


def by_index(image: torch.Tensor) -> torch.Tensor:
    """Return the same by gathering columns `last`, `last - 1`, ... 0."""
    last = image.shape[-1] - 1
    return image[..., last - torch.arange(last + 1, device=image.device)]


def build(case: Case) -> Check:
    """Make the image of a case; a flip moves values, so nothing may differ by anything."""
    options = {"dynamic": case["dynamic"]}
    return Check(hflip, (image(case),), references={"by index": by_index}, options=options)


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
)

if __name__ == "__main__":
    scenario.main()
