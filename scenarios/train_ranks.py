"""A step of training on several ranks, to be started by torchrun: weights on all ranks, in shards, or split.

    probe dump -- torchrun --standalone --nproc-per-node 2 scenarios/train_ranks.py tensor

With a GPU for each rank it computes there, through NCCL, else on the CPU through gloo; `--backend` says
otherwise. It is a plain script without cases: what ranks do together has no reference in one process.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

KINDS = ("data", "sharded", "tensor")


class Block(nn.Module):
    """Two products with an activation between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the block."""
        down: Tensor = self.down(torch.relu(self.up(x)))
        return down


def parallel(kind: str, model: nn.Sequential, device: str) -> nn.Module:
    """Spread a model over all ranks: a copy on each, shards of each weight, or parts of each product."""
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    if kind == "data":
        return nn.parallel.DistributedDataParallel(model)
    if kind == "sharded":
        for block in model:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def main() -> None:
    """Compile a step of training, and take it once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--backend", choices=("gloo", "nccl"))
    options = parser.parse_args()
    enough = torch.cuda.device_count() >= int(os.environ["WORLD_SIZE"])
    backend = options.backend or ("nccl" if enough else "gloo")
    device = "cuda" if backend == "nccl" else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend)
    torch.manual_seed(0)
    with torch.device(device):
        model = nn.Sequential(Block(options.width), Block(options.width))
        x = torch.randn(8, options.width)
    torch.compile(parallel(options.kind, model, device))(x).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
