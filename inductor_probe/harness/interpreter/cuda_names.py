"""What a wrapper, its inputs and the graph ask of CUDA, on a machine without: the same, of CPU tensors."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

CUDA = re.compile(r"cuda(?::\d+)?")
GUARDS: Any = torch._C._dynamo.guards


class CudaAsCpu(TorchFunctionMode):  # type: ignore[misc] # mypy does not follow torch
    """Gives each function of torch that is called with a CUDA device the CPU instead."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(on_cpu, (args, kwargs or {}))
        return func(*args, **kwargs)


def on_cpu(value: Any) -> Any:
    """Return the CPU for a device of CUDA, or the name of one."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and CUDA.fullmatch(value) else value


def stand_in(relaid: set[str]) -> None:
    """Set what `output_code.py` imports and calls; this is for a process that does nothing else.

    `relaid` gets the names of operators whose results a CPU lays out otherwise: see `size_and_stride`.
    """
    torch._C._cuda_getCurrentRawStream = lambda index: 0
    GUARDS._empty_strided_cuda = GUARDS._empty_strided_cpu
    GUARDS.assert_size_stride = size_and_stride(GUARDS.assert_size_stride, relaid)
    for name in ("_DeviceGuard", "device", "stream"):
        setattr(torch.cuda, name, lambda *_: nullcontext())
    for name in ("set_device", "synchronize"):
        setattr(torch.cuda, name, lambda *_: None)


def on_simulated() -> None:
    """Set what generated wrappers call of CUDA where a device is simulated (`capture/targets`)."""
    torch._C._cuda_getCurrentRawStream = lambda index: 0
    GUARDS._empty_strided_cuda = lambda size, stride, dtype: torch.empty_strided(
        size, stride, dtype=dtype, device="cuda"
    )
    GUARDS.assert_size_stride = size_and_stride(GUARDS.assert_size_stride, set())


def size_and_stride(check: Callable[..., None], relaid: set[str]) -> Callable[..., None]:
    """Return `assert_size_stride` for results of operators that have other strides on the CPU.

    A convolution on a GPU gives channels_last, for instance, and the kernels behind it rely on that. The
    result of an operator, which the wrapper names to it, gets the strides that are asked for.
    """

    def checked(tensor: Any, size: Any, stride: Any, name: str | None = None) -> None:
        if (
            name is not None
            and tuple(tensor.shape) == tuple(size)
            and tuple(tensor.stride()) != tuple(stride)
        ):
            laid_out = torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device).copy_(
                tensor
            )
            tensor.set_(laid_out.untyped_storage(), 0, size, stride)
            relaid.add(name)
        check(tensor, size, stride, *(() if name is None else (name,)))

    return checked
