"""Functions and inputs that programs of several kinds share."""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import torch

Tensors = tuple[torch.Tensor, ...]
_replaced: list[tuple[Any, str, Any]] = []
"""What a program replaced of torch: the owner, the name, and what was there."""


def replaced(owner: Any, name: str, value: Any) -> None:
    """Replace a function of torch until the next program begins: see `put_back`."""
    _replaced.append((owner, name, inspect.getattr_static(owner, name)))
    setattr(owner, name, value)


def put_back() -> None:
    """Undo what the program before replaced."""
    while _replaced:
        owner, name, value = _replaced.pop()
        setattr(owner, name, value)


def add_one(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation of one read and one write."""
    return values + 1


def add_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what reads one operand by rows, and one by columns."""
    return values + values.t()


def busy(values: torch.Tensor) -> torch.Tensor:
    """Return ten operations on a value, so that a single access is a small share of them."""
    for _ in range(5):
        values = torch.cos(torch.sin(values))
    return values


def numbers(dtype: torch.dtype, *size: int) -> Tensors:
    """Return a tensor of ones."""
    return (torch.ones(size, dtype=dtype),)


def floats(*size: int) -> Tensors:
    """Return a tensor of float32 ones."""
    return numbers(torch.float32, *size)


def floats_on_gpu(*size: int) -> Tensors:
    """Return the same on a GPU."""
    return (torch.ones(size, device="cuda"),)


def without_gradients(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call a function where no gradients are recorded."""
    with torch.no_grad():
        return function(*inputs)


def frozen(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call a function whose parameters become constants.

    It is called under the setting, which dynamo does not see if it is an option.
    """
    config: Any = importlib.import_module("torch._inductor.config")
    with torch.no_grad(), config.patch(freezing=True):
        return function(*inputs)


def on_gpu(make: Callable[[], Tensors]) -> Callable[[], Tensors]:
    """Return what makes the same inputs on a GPU."""
    return lambda: tuple(tensor.cuda() for tensor in make())


def timed_as(*times: float) -> Callable[[Callable[[], Tensors]], Callable[[], Tensors]]:
    """Return what has a benchmark of torch measure given times in turn, and then makes the inputs.

    What is faster may differ from GPU to GPU, and is not what is to be shown: no kernel is compiled or run.
    """

    def clocked(make: Callable[[], Tensors]) -> Callable[[], Tensors]:
        def set_clock() -> Tensors:
            clock = itertools.cycle(times)
            combined = importlib.import_module("torch._inductor.codegen.cuda_combined_scheduling")
            scheduler = importlib.import_module("torch._inductor.scheduler").Scheduler
            replaced(scheduler, "compile_kernel", lambda *_, **__: (None, None))
            for name in ("benchmark_codegened_module", "benchmark_fused_nodes"):
                replaced(combined.CUDACombinedScheduling, name, lambda *_: (next(clock), ""))
            return make()

        return set_clock

    return clocked
