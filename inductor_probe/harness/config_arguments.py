"""The arguments that configs of a kernel are run on: real ones, restored and poisoned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.launches import Launch


class ConfigArguments:
    """Arguments of a launch to run configs on; what calls change and read is restored before each."""

    def __init__(self, kernel: Any, launch: Launch) -> None:
        self.original = (launch.args, {k: v for k, v in launch.kwargs.items() if k != "stream"})
        self.stream = launch.kwargs.get("stream")
        names = [name for name in kernel.fn.arg_names if name not in kernel_constants(kernel)]
        kept = set(kernel.mutated_arg_names)
        tensors = tree_leaves(self.original)
        self.pure = [
            at
            for at, (name, value) in enumerate(zip(names, tensors, strict=False))
            if isinstance(value, torch.Tensor) and name.startswith("out_ptr") and name not in kept
        ]
        self.on_cuda = any(isinstance(value, torch.Tensor) and value.is_cuda for value in tensors)
        self.drifting: list[int] = []
        self.values = clone(self.original)

    def start(self, launcher: Callable[..., object], values: Any) -> Callable[[], object]:
        """Return a function that launches on `values`, on the current stream."""
        args, kwargs = values
        device = next(
            (value.device for value in tree_leaves(values) if isinstance(value, torch.Tensor)), None
        )
        if not self.on_cuda or device is None:
            return lambda: launcher(*args, stream=self.stream, **kwargs)
        current, index = torch._C._cuda_getCurrentRawStream, device.index
        return lambda: launcher(*args, stream=current(index), **kwargs)

    def outputs(self, launcher: Callable[..., object]) -> list[Any]:
        """Run once on a poisoned copy; return all tensors after it."""
        values = clone(self.original)
        leaves = tree_leaves(values)
        for at in self.pure:
            leaves[at].fill_(float("nan") if leaves[at].dtype.is_floating_point else 1)
        before = clone(leaves)
        self.start(launcher, values)()
        if self.on_cuda:
            torch.cuda.synchronize()
        self.drifting = [at for at in changed(before, leaves) if at not in self.pure]
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def restorer(self) -> Callable[[], None] | None:
        """Return what gives arguments that calls change their first values again; None without any."""
        source, target, drifting = tree_leaves(self.original), tree_leaves(self.values), self.drifting

        def restore() -> None:
            for at in drifting:
                target[at].copy_(source[at])

        return restore if drifting else None


def kernel_constants(kernel: Any) -> set[str]:
    """Return the parameters that are compiled in: block sizes."""
    signature = kernel.triton_meta.get("signature", {})
    return {name for name, kind in signature.items() if kind == "constexpr" and name.endswith("BLOCK")}
