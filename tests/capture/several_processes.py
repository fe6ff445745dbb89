"""A script whose processes compile: two ranks of gloo, a fork of one that had compiled, a subprocess.

    python several_processes.py [RANK PORT]

Rank 0 computes with one more operator than rank 1, after a collective that both have.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import torch
import torch._inductor.config
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.multiprocessing

# A fork has lost the thread through which torch talks to its compile workers, and would wait for ever.
torch._inductor.config.compile_threads = 1


def in_rank(rank: int, port: int) -> None:
    """Compile a collective, and behind it something that the ranks do not share."""
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)

    def both(x: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(torch.relu(x), "sum", dist.group.WORLD) + 1

    def apart(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if rank else x.cos()

    torch.compile(both)(torch.ones(16, 32))
    torch.compile(apart)(torch.ones(64))
    dist.destroy_process_group()


def in_fork() -> None:
    """Compile in a fork of a process that has compiled before, and end it as it likes."""
    torch.compile(lambda x: x * 3)(torch.ones(5))


def main() -> None:
    """Start every kind of process one after the other."""
    torch.compile(lambda x: x + 2)(torch.ones(4))
    fork = torch.multiprocessing.get_context("fork").Process(target=in_fork)
    fork.start()
    fork.join()
    child = "import torch; torch.compile(lambda x: x - 1)(torch.ones(3)); raise SystemExit(3)"
    assert subprocess.run([sys.executable, "-c", child], check=False).returncode == 3
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(in_rank, (port,), nprocs=2)
    assert "sitecustomize" not in " ".join(sys.path)
    print("pid", os.getpid(), fork.pid)


if __name__ == "__main__":
    main()
