"""Other programs on a channels-last image, whose rows and columns are computed in the inner loop."""

import functools

import torch
from torch.nn import functional

torch._dynamo.config.recompile_limit = 100


@torch.compile(dynamic=False)
def resized(image: torch.Tensor, mode: str) -> torch.Tensor:
    """Return `image` with 256 rows and columns."""
    return functional.interpolate(image, size=(256, 256), mode=mode)


@torch.compile(dynamic=False)
def half_as_bright(image: torch.Tensor) -> torch.Tensor:
    """Resize, and compute with the values."""
    return functional.interpolate(image, size=(256, 256), mode="nearest") * 0.5 + 1


@torch.compile(dynamic=False)
def rolled(image: torch.Tensor) -> torch.Tensor:
    """Shift rows and columns around."""
    return image.roll((11, 7), (2, 3))


@torch.compile(dynamic=False)
def padded(image: torch.Tensor) -> torch.Tensor:
    """Repeat the border outwards by reflection."""
    return functional.pad(image, (3, 3, 3, 3), mode="reflect")


def image_of(dtype: torch.dtype, channels: int) -> torch.Tensor:
    """Return an image of some channels, channels-last."""
    return torch.zeros(1, channels, 345, 456, dtype=dtype).contiguous(memory_format=torch.channels_last)


for channels in (2, 3):
    for dtype in (torch.uint8, torch.float32):
        resized(image_of(dtype, channels), "nearest")
photo, image = image_of(torch.uint8, 3), image_of(torch.float32, 3)
for call in (functools.partial(resized, mode="nearest-exact"), half_as_bright, rolled, padded):
    call(photo)
    call(image)
resized(image, "bilinear")
