"""Conversions to channels-last and back, of more and less channels and of small images, on two threads."""

import torch

torch.set_num_threads(2)
torch._dynamo.config.recompile_limit = 100


@torch.compile(dynamic=False)
def channels_last(features: torch.Tensor) -> torch.Tensor:
    """Return what is positive of `features`, channels-last."""
    return torch.relu(features).contiguous(memory_format=torch.channels_last)


@torch.compile(dynamic=False)
def transposed(table: torch.Tensor) -> torch.Tensor:
    """Return the exponentials of a table, its columns as rows."""
    return table.exp().t().contiguous()


for channels in (16, 32, 48, 64):
    channels_last(torch.zeros(1, channels, 256, 256))
for pixels in (8, 16, 32, 64):
    channels_last(torch.zeros(1, 16, pixels, pixels))
transposed(torch.zeros(16, 65536))
transposed(torch.zeros(65536, 16))
