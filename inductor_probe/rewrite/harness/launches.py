"""Launches: the calls of each kernel inside the wrapper, with the arguments it really gets."""

from __future__ import annotations

import ctypes
import re
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

    def values(self) -> tuple[Any, ...]:
        """Return its arguments, positional ones and those with names."""
        return self.args, self.kwargs

    def replayable(self) -> bool:
        """Tell whether the arguments outlive the wrapper: raw pointers do not."""
        return not any(isinstance(arg, ctypes.c_void_p) for arg in self.args)

    def fits(self, other: Launch) -> bool:
        """Tell whether `other` has arguments of the same form: sizes, strides, dtypes and numbers."""
        mine, theirs = tree_leaves(self.values()), tree_leaves(other.values())
        return [_form(leaf) for leaf in mine] == [_form(leaf) for leaf in theirs]

    def starter(self, kernel: Any) -> Callable[[Any], Callable[[], object]]:
        """Return what makes a function that launches `kernel` from its arguments: see `values`."""
        start = getattr(kernel, self.method) if self.method else kernel

        def bind(values: Any) -> Callable[[], object]:
            tensors = (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))
            device = next((tensor.device.index for tensor in tensors if tensor.is_cuda), None)
            if "stream" not in self.kwargs or device is None:
                return partial(start, *values[0], **values[1])
            named = {name: value for name, value in values[1].items() if name != "stream"}

            def launch() -> object:  # on the stream of the moment: a CUDA graph captures on one of its own
                return start(*values[0], stream=torch._C._cuda_getCurrentRawStream(device), **named)

            return launch

        return bind

    def bind(self, kernel: Any) -> Callable[[], object]:
        """Return a function that launches `kernel` with these arguments."""
        return self.starter(kernel)(self.values())


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


def resources(bench: Bench) -> dict[str, dict[str, int]]:
    """Return `registers` and `spills` of a thread, `shared` bytes of a block, of Triton kernels that ran."""
    found = {}
    for name, kernel in bench.namespace.items():
        own = re.sub(r"_v\d+$", "", name) in bench.kernels
        launchers = getattr(kernel, "launchers", None) if own else None
        if isinstance(launchers, list) and len(launchers) == 1:  # all but one lost when it was autotuned
            names = {"registers": "n_regs", "spills": "n_spills", "shared": "shared"}
            values = {key: getattr(launchers[0], attribute, None) for key, attribute in names.items()}
            known = {key: value for key, value in values.items() if isinstance(value, int)}
            if len(known) == len(names):
                found[name] = known
    return found


def _form(leaf: Any) -> Any:
    return (leaf.size(), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf
