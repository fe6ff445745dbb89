"""Raw pointers: wrappers of torch before 2.3 pass `c_void_p(buf0.data_ptr())` to their C++ kernels."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Memory(TorchDispatchMode):  # type: ignore[misc]
    """Notes what memory tensors take while it is active, so that a raw pointer can be told to be into it."""

    def __init__(self, values: Any) -> None:
        super().__init__()
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.note(values)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.note(result)
        return result

    def note(self, values: Any) -> None:
        """Note the memory of all tensors in `values`; it is kept, so that nothing else gets it."""
        for leaf in tree_leaves(values):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                storage = leaf.untyped_storage()
                self.storages[storage.data_ptr()] = storage

    def pointed(self, argument: Any) -> Any:
        """Return the bytes that a raw pointer points to, to the end of their storage; all else as it is."""
        if isinstance(argument, ctypes.c_void_p) and argument.value:
            for start, storage in self.storages.items():
                offset, size = argument.value - start, storage.nbytes()
                if 0 <= offset < size:
                    return torch.empty(0, dtype=torch.uint8).set_(storage, offset, (size - offset,), (1,))
        return argument


def is_pointer(argument: Any) -> bool:
    """Tell whether an argument is a raw pointer."""
    return isinstance(argument, ctypes.c_void_p)


def pointer_to(tensor: torch.Tensor) -> ctypes.c_void_p:
    """Return the raw pointer to a tensor."""
    return ctypes.c_void_p(tensor.data_ptr())
