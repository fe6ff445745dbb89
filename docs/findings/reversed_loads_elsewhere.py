"""Other programs with a load that goes backwards: types, narrow rows, a flip among other operations."""

import torch


@torch.compile(dynamic=False)
def hflip(image: torch.Tensor) -> torch.Tensor:
    """Return `image` with its columns in reverse order."""
    return image.flip(-1)


@torch.compile(dynamic=False)
def both_ways(image: torch.Tensor) -> torch.Tensor:
    """Average an image and its mirror image."""
    return (image + image.flip(-1)) * 0.5


@torch.compile(dynamic=False)
def channels_last(image: torch.Tensor) -> torch.Tensor:
    """Flip the dimension that varies fastest in memory, which is not the last one."""
    return image.flip(1)


@torch.compile(dynamic=False)
def summed_from_the_end(signal: torch.Tensor) -> torch.Tensor:
    """Sum the exponentials of a signal, read from its end."""
    return signal.flip(-1).exp().sum(-1)


for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
    hflip(torch.zeros(1, 3, 224, 224, dtype=dtype))
hflip(torch.zeros(1, 3, 224, 20, dtype=torch.uint8))
hflip(torch.zeros(1, 3, 224, 7, dtype=torch.float32))
both_ways(torch.zeros(1, 3, 224, 224))
channels_last(torch.zeros(1, 32, 56, 56).contiguous(memory_format=torch.channels_last))
summed_from_the_end(torch.zeros(64, 1000))
