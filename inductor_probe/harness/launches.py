"""Launches: the calls of each kernel inside the wrapper, with the arguments it really gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from inductor_probe.harness.bench import Bench, Variant
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.pointers import Memory, is_pointer, pointer_to


@dataclass
class Launch:
    """The arguments of one call of a kernel; `method` is `run` for Triton, None for C++.

    At the positions in `pointers` it got raw pointers, and `args` has what they point to.
    """

    method: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    pointers: frozenset[int] = frozenset()

    def values(self) -> tuple[Any, ...]:
        """Return its arguments, positional ones and those with names."""
        return self.args, self.kwargs

    def replayable(self) -> bool:
        """Tell whether the arguments outlive the wrapper: pointers into unknown memory do not."""
        return not any(map(is_pointer, self.args))

    def fits(self, other: Launch) -> bool:
        """Tell whether `other` has arguments of the same form: sizes, strides, dtypes and numbers."""
        mine, theirs = tree_leaves(self.values()), tree_leaves(other.values())
        return [_form(leaf) for leaf in mine] == [_form(leaf) for leaf in theirs]

    def starter(self, kernel: Any) -> Callable[[Any], Callable[[], object]]:
        """Return what makes a function that launches `kernel` from its arguments: see `values`."""
        start = getattr(kernel, self.method) if self.method else kernel

        def bind(values: Any) -> Callable[[], object]:
            if self.pointers:  # whoever times this keeps the values
                args = enumerate(values[0])
                return partial(start, *(pointer_to(arg) if at in self.pointers else arg for at, arg in args))
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

    def __init__(self, kernel: Any, memory: Memory | None = None) -> None:
        self.kernel = kernel
        self.memory = memory
        self.launches: list[Launch] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what calling a C++ kernel does."""
        known = tuple(map(self.memory.pointed, args)) if self.memory else args
        pairs = enumerate(zip(args, known, strict=True))
        pointers = frozenset(at for at, (old, new) in pairs if is_pointer(old) and not is_pointer(new))
        known, kwargs_then = clone((known, kwargs))
        self.launches.append(Launch(None, known, kwargs_then, pointers))
        return self.kernel(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `run` of a Triton kernel does."""
        self.launches.append(Launch("run", *clone((args, kwargs))))
        return self.kernel.run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


def record(bench: Bench, entry: str, name: str, inputs: list[Any]) -> list[Launch]:
    """Run the wrapper `entry` on copies of `inputs` and return the launches of kernel `name` in order."""
    launches = _recorded(bench, entry, name, clone(inputs), None)
    if all(launch.replayable() for launch in launches):
        return launches
    values = clone(inputs)
    return _recorded(bench, entry, name, values, Memory(values))


def _recorded(bench: Bench, entry: str, name: str, values: list[Any], memory: Memory | None) -> list[Launch]:
    recorder = Recorder(bench.namespace[name], memory)
    bench.namespace[name] = recorder
    try:
        with memory or nullcontext():
            Variant(entry, entry).run(bench, values)
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
