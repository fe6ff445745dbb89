"""Pointers of an interpreted kernel: each argument has addresses of its own, and each access is checked.

Triton's interpreter reads and writes at the addresses that a kernel computes, whatever is there. Here a
tensor that is passed to a kernel begins at an address that no other tensor is near; what lies outside of its
storage is a `KernelFault`, also where another tensor of the process would lie there. Checked addresses become
real ones for triton's own loads, stores and atomics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from inductor_probe.harness.interpreter.errors import KernelFault, NotInterpretedError

REGION_BITS = 44  # of an address: below it is the offset, above it the number of the argument
MIDDLE = 1 << (REGION_BITS - 1)  # where a tensor begins, so that negative offsets stay in its region
ADDRESS_MASK = (1 << REGION_BITS) - 1


@dataclass(frozen=True)
class Region:
    """The memory of an argument: its storage has the bytes from `first` to `last`."""

    name: str
    address: int
    first: int
    last: int
    itemsize: int


class Memory:
    """What the arguments of a launch point to."""

    def __init__(self) -> None:
        self.regions: list[Region] = []

    def clear(self) -> None:
        """Forget the arguments of the launch before."""
        self.regions = []

    def place(self, name: str, tensor: torch.Tensor) -> int:
        """Return the address that a kernel is given for a tensor."""
        storage = tensor.untyped_storage()
        skipped = tensor.storage_offset() * tensor.itemsize
        # A tensor without elements has no address that anything may be read from.
        address = int(storage.data_ptr()) + skipped if storage.nbytes() else 0
        self.regions.append(Region(name, address, -skipped, storage.nbytes() - skipped, tensor.itemsize))
        return len(self.regions) * (1 << REGION_BITS) + MIDDLE

    def real(self, pointers: Any, mask: Any, itemsize: int, doing: str) -> Any:
        """Return the addresses of this process that `pointers` stand for where `mask` is set.

        Raises:
            KernelFault: one is outside of its tensor, or not a multiple of its own size away from where the
                GPU could access it. NotInterpretedError: one was made from a number.
        """
        pointers = np.asarray(pointers, dtype=np.uint64)
        mask = np.broadcast_to(np.asarray(mask, dtype=bool), pointers.shape)
        result = np.zeros(pointers.shape, dtype=np.uint64)
        if not mask.any():
            return result
        numbers = pointers >> np.uint64(REGION_BITS)
        used = numbers[mask]
        for number in [int(used[0])] if (used == used[0]).all() else np.unique(used).tolist():
            if not 1 <= number <= len(self.regions):
                raise NotInterpretedError(f"{doing} through a pointer that is made from a number")
            region = self.regions[number - 1]
            here = mask & (numbers == np.uint64(number))
            offsets = (pointers & np.uint64(ADDRESS_MASK)).astype(np.int64) - MIDDLE
            bad = here & ((offsets < region.first) | (offsets + itemsize > region.last))
            if bad.any():
                position = int(np.flatnonzero(bad)[0])
                element = int(offsets.flat[position]) // region.itemsize
                elements = region.last // region.itemsize
                raise KernelFault(
                    f"{doing} outside of {region.name}: element {element} of {elements}, "
                    f"by lane {position} of its block"
                )
            real = offsets + region.address
            if (bad := here & (real % itemsize != 0)).any():
                position = int(np.flatnonzero(bad)[0])
                raise KernelFault(f"{doing} at a misaligned address of {region.name}, by lane {position}")
            result = np.where(here, real.astype(np.uint64), result)
        return result


MEMORY = Memory()
