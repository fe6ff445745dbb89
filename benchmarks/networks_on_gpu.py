"""Compile networks of `findings_networks.py` on a GPU, real or simulated, and run them once.

probe dump benchmarks/networks_on_gpu.py --target h200 -- resnet50_training gpt_block_training
"""

from __future__ import annotations

import sys

import torch  # noqa: TID253 - a torch program
from findings_networks import attempts

if __name__ == "__main__":
    torch.set_default_device("cuda")
    for name in sys.argv[1:]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        for attempt in attempts(name, "cuda", torch.compile):
            attempt()
        print(name, flush=True)
