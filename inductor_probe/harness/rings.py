"""The ring: the same values at several places in memory, which both sides of a comparison take in turn."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.harness.inputs import clone
from inductor_probe.harness.remarks import Remark, remark

WARM_SLOTS = 8
GPU_SLOTS = 2  # each has CUDA graphs of its own
COLD_SLOTS = 4096  # making one takes tens of microseconds
COLD_SIZE = 1.5  # caches: what is taken once a round is evicted before the next
LINE, PAGE = 64, 4096
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class Ring:
    """Copies of `values`, a slot each. `cold`: each call takes the next slot; else each quad.

    Where buffers lie can change the time of a kernel twofold: so it is averaged, and the same for both sides.
    On a GPU the L2 is `flushed` before each call instead of walking through a large ring.
    """

    flushed = False

    def __init__(self, values: Any, slots: int, cold: bool, rng: random.Random) -> None:
        self.cold = cold
        self.slots = [placed(values, rng) for _ in range(slots)]
        self.original = clone(tensors_of(values))
        self.next = 0

    def take(self, number: int, calls: int) -> list[int]:
        """Return the slots of the next calls of quad `number`: one for each, or one for all."""
        if not self.cold:
            return [number % len(self.slots)]
        first, self.next = self.next, (self.next + calls) % len(self.slots)
        return [at % len(self.slots) for at in range(first, first + calls)]

    def restore(self, slots: list[int], changed: list[int]) -> None:
        """Give the tensors at `changed` in those slots their first values again."""
        for slot in set(slots) if changed else ():
            tensors = tensors_of(self.slots[slot])
            for at in changed:
                tensors[at].copy_(self.original[at])


def make_ring(values: Any, cold: bool, rng: random.Random, warn: Callable[[Remark], None]) -> Ring:
    """Make a ring as large as it should be, or as memory allows; a cold one that stays warm is said."""
    tensors = tensors_of(values)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    size = max(sum(storages.values()), 1)
    on_cuda = any(tensor.is_cuda for tensor in tensors)
    free = torch.cuda.mem_get_info()[0] if on_cuda else os.sysconf("SC_AVPHYS_PAGES") * PAGE
    cache = last_level_cache()
    large = cold and not on_cuda
    few = GPU_SLOTS if on_cuda else WARM_SLOTS
    wanted = min(math.ceil(COLD_SIZE * cache / size), COLD_SLOTS) if large else few
    slots = max(1, min(wanted, free // 4 // size))
    if large and slots * size <= cache:
        warn(remark("data-not-cold", ring_mib=slots * size >> 20, cache_mib=cache >> 20))
    ring = Ring(values, slots, large, rng)
    ring.flushed = cold and on_cuda
    return ring


def last_level_cache() -> int:
    """Return the size of the processor's in bytes; 64 MiB where the system does not tell."""
    sizes = [path.read_text().strip() for path in CACHES.glob("index*/size")]
    return max((int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] for size in sizes), default=64 << 20)


def placed(values: Any, rng: random.Random) -> Any:
    """Copy `values`; on a CPU each storage begins at another distance from a page's start."""
    homes: dict[int, Any] = {}

    def place(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.is_cuda or not value.untyped_storage().nbytes():
            return value
        storage = value.untyped_storage()
        if storage.data_ptr() not in homes:
            homes[storage.data_ptr()] = shifted(storage, rng.randrange(0, PAGE, LINE))
        fresh = torch.empty(0, dtype=value.dtype)
        home = homes[storage.data_ptr()]
        return fresh.set_(home, value.storage_offset(), value.size(), value.stride())

    return tree_map(place, clone(values))


def shifted(storage: Any, offset: int) -> Any:
    """Copy a storage to new memory, `offset` bytes behind where its first line could begin."""
    memory = bytearray(storage.nbytes() + LINE + offset)
    start = -torch.frombuffer(memory, dtype=torch.uint8).data_ptr() % LINE + offset
    home = torch.frombuffer(memory, dtype=torch.uint8, count=storage.nbytes(), offset=start)
    return home.untyped_storage().copy_(storage)


def tensors_of(values: Any) -> list[Any]:
    """Return the tensors in `values`."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
