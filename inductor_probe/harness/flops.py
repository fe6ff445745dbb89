"""Flops: those that torch counts for a graph, operator by operator."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.remarks import Remark, remark


class Flops(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Counts the floating-point operations of each operator that registers a count, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[tuple[str, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            self.counted.append((str(func._overloadpacket), int(count(*args, **(kwargs or {}), out_val=out))))
        return out


def flops_of(bench: Bench, inputs: list[Any], remarks: list[Remark]) -> list[tuple[str, int]] | None:
    """Run the graph eagerly and count."""
    if bench.aten_graph is None:
        return None
    try:
        with Flops() as mode:
            bench.aten_graph()(*clone(inputs))
    except Exception as error:  # an operation of another torch version, or a formula that does not fit
        remarks.append(remark("flops-not-counted", error=first_line(error)))
        return None
    return list(mode.counted)


def first_line(error: Exception) -> str:
    """Say an error in a line."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
