"""Memory that a graph asks for and does not write to: what it holds is no result."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves


class Unwritten:
    """Sees the operations of a run, in order, and knows which memory nothing wrote to so far.

    That memory is kept, by its address, so that nothing else gets it.
    """

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}

    def holds(self, value: Any) -> bool:
        """Tell whether a value is such memory."""
        return isinstance(value, torch.Tensor) and address(value) in self.kept

    def see(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Take note of an operation that ran."""
        if str(func).startswith(("aten.empty", "aten.new_empty")):
            self.keep(result)
        elif self.kept:
            for value in written(func, args, kwargs):
                self.kept.pop(address(value), None)
            if is_view(func) and any(map(self.holds, args)):
                self.keep(result)  # in float64 it is a copy

    def keep(self, value: torch.Tensor) -> None:
        """Take it for memory that nothing wrote to, if it is memory."""
        if (place := address(value)) > 0:
            self.kept[place] = value


def written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Return the tensors among the arguments of an operation that it writes to, by its schema."""
    schema = getattr(func, "_schema", None)
    arguments = enumerate(schema.arguments if schema else ())
    values = [
        args[at] if at < len(args) else kwargs.get(argument.name)
        for at, argument in arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def is_view(func: Any) -> bool:
    """Tell whether an operation returns the memory of an argument, by its schema."""
    returns: Any = getattr(getattr(func, "_schema", None), "returns", ())
    return len(returns) == 1 and returns[0].alias_info is not None


def address(tensor: torch.Tensor) -> int:
    """Return where the memory of a tensor begins; 0 of one without: it is empty, sparse, or made of zeros."""
    has_memory = tensor.layout == torch.strided and not tensor._is_zerotensor()
    return int(tensor.untyped_storage().data_ptr()) if has_memory else 0
