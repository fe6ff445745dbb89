"""Library calls of a GPU that this machine's CPU has no kernel for: what comes back from them here.

Kernels are checked, and the library is not: its results have to be the same in the call and in the graph, no
more. Fused attention is computed by its formula; any other operator gives numbers that are drawn by its name
and the sizes of its results. So kernels before and behind such a call can be judged.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from zlib import crc32

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from inductor_probe.harness import attention
from inductor_probe.harness.interpreter.errors import NotInterpretedError
from inductor_probe.harness.random_numbers import bound_arguments

STEPS = 16
"""Numbers drawn are multiples of 1/8 from -1 to 1, which each type has: a graph in float64 gets the same."""


class LibraryCalls(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Answers calls of operators without a kernel for the CPU.

    Attributes:
        by_formula: operators that were computed otherwise. drawn: those whose results are drawn numbers.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.by_formula, self.drawn = set[str](), set[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _lacks_kernel(func):
            return func(*args, **kwargs)
        results = _Results(func)
        formula: Any = attention.OPERATORS.get(str(func))
        if formula is None:
            self.drawn.add(str(func))
            return tree_map(partial(_drawn, str(func)), results(*args, **kwargs))
        if bound_arguments(func, args, kwargs)["dropout_p"]:
            raise NotInterpretedError(f"{func} drops numbers that are drawn on a GPU alone")
        self.by_formula.add(str(func))
        wide = formula.func(results, *tree_map(_wide, args), **tree_map(_wide, kwargs))
        return tuple(
            memory.copy_(value) if torch.is_tensor(memory) and value is not None else memory
            for memory, value in zip(results(*args, **kwargs), wide, strict=True)
        )


def _lacks_kernel(func: Any) -> bool:
    """Tell whether c10's dispatcher has none for the CPU, of the operator or of what it is composed of."""
    if not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable:
        return False
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    return not has(func.name(), "CPU") and has(func.name(), "Meta")


class _Results:
    """An operator that gives zeros of its results' sizes, strides and types."""

    def __init__(self, func: Any) -> None:
        self._func, self._schema = func, func._schema

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(_on_meta, (args, kwargs))
        return tree_map(_zeros, self._func(*args, **kwargs))


def _on_meta(value: Any) -> Any:
    if not torch.is_tensor(value):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _zeros(value: Any) -> Any:
    if not torch.is_tensor(value):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).zero_()


def _wide(value: Any) -> Any:
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value


def _drawn(operator: str, value: Any) -> Any:
    if not torch.is_tensor(value) or not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed(crc32(f"{operator} {tuple(value.shape)}".encode()))
    numbers = torch.randint(-STEPS // 2, STEPS // 2 + 1, value.shape, generator=generator)
    return value.copy_(numbers / (STEPS // 2))
