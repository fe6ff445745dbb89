"""Launches: the calls of each kernel inside the wrapper, with the arguments it really gets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from inductor_probe.rewrite.harness.bench import Bench, Variant
from inductor_probe.rewrite.harness.inputs import clone


@dataclass
class Launch:
    """The arguments of one call of a kernel; `method` is `run` for Triton, None for C++."""

    method: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> list[Any]:
        """Return the tensors among the arguments."""
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]

    def replayable(self) -> bool:
        """Tell whether the arguments outlive the wrapper: raw pointers do not."""
        return not any(isinstance(arg, ctypes.c_void_p) for arg in self.args)

    def fits(self, other: Launch) -> bool:
        """Tell whether `other` has arguments of the same form: sizes, strides, dtypes and numbers."""
        mine, theirs = tree_leaves((self.args, self.kwargs)), tree_leaves((other.args, other.kwargs))
        return [_form(leaf) for leaf in mine] == [_form(leaf) for leaf in theirs]

    def bind(self, kernel: Any) -> Callable[[], object]:
        """Return a function that launches `kernel` with these arguments."""
        return partial(getattr(kernel, self.method) if self.method else kernel, *self.args, **self.kwargs)


class Recorder:
    """Stands in for a kernel: passes calls on and notes them, with copies of their arguments."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.launches: list[Launch] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what calling a C++ kernel does."""
        self.launches.append(Launch(None, *clone((args, kwargs))))
        return self.kernel(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `run` of a Triton kernel does."""
        self.launches.append(Launch("run", *clone((args, kwargs))))
        return self.kernel.run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


def record(bench: Bench, entry: str, name: str, inputs: list[Any]) -> list[Launch]:
    """Run the wrapper `entry` on copies of `inputs` and return the launches of kernel `name` in order."""
    recorder = Recorder(bench.namespace[name])
    bench.namespace[name] = recorder
    try:
        Variant(entry, entry).run(bench, clone(inputs))
    finally:
        bench.namespace[name] = recorder.kernel
    return recorder.launches


def _form(leaf: Any) -> Any:
    return (leaf.size(), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf
