"""Programs whose inner loop has less steps than a vector has lanes: channels-last images of few channels."""

import itertools
import sys

import torch

torch._dynamo.config.recompile_limit = 100


@torch.compile(dynamic=False)
def hflip(image: torch.Tensor) -> torch.Tensor:
    """Return `image` with its columns in reverse order: a load and a store."""
    return image.flip(-1)


@torch.compile(dynamic=False)
def scaled(image: torch.Tensor, scale: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Scale each channel: three loads, a product, a sum and a store."""
    return image * scale + offset


@torch.compile(dynamic=False)
def normalised(image: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    """Return what a network is given of an image: two divisions."""
    return (image / 255 - mean) / deviation


numbers = [int(argument) for argument in sys.argv[1:]] or [3]
for dtype, channels in itertools.product((torch.uint8, torch.float32), numbers):
    image = torch.zeros(1, channels, 224, 224, dtype=dtype).contiguous(memory_format=torch.channels_last)
    of_channels = torch.zeros(1, channels, 1, 1), torch.ones(1, channels, 1, 1)
    hflip(image)
    scaled(image, *of_channels)
    normalised(image, *of_channels)
