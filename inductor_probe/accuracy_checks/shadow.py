"""Runs each operation as it is, and once more in float64 beside it.

What a program computes in float32 has a second value, computed in float64 from the second values of its
operands: the reference. Casts that the program makes still round: of `x - x.half().float()` the reference is
what eager computes, not 0. Decisions (`x > 0`, `argmax`) are those of the values as they are, so that the
reference follows the same branch.

With `noise` every result is moved by up to a rounding of its dtype, and decisions follow what is moved:
values that differ between such runs are decided by rounding (Monte Carlo arithmetic; Parker, 1997). An
operation that adds up n numbers has its operands moved by sqrt(n) roundings, as far as sums in another order
drift apart (Higham, The Accuracy of Floating Point Summation, 1993).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}
PURGE = 64  # operations after which the second values of freed memory are freed
LONGEST = 1 << 16  # more numbers that are added up do not move a sum further
_RUNNING = ("running_mean", "running_var")
"""Operands that a batch norm writes, though not all of its schemas say so."""
_BY_ONE = ("upsample",)
"""Eager interpolates 8-bit pixels in fixed point, a decomposition in floats: each may be off by one."""
_IN_PLACE_SUMS = ("scatter", "index_add", "index_put", "index_reduce", "embedding_dense_backward")
"""These add up in the dtype of their result; all others add up half precision in float32."""
_NOT_COMPUTED = ("empty", "new_empty", "set_", "resize_")
_CASTS = ("_to_copy", "to", "convert_element_type", "type_as")


@dataclass
class _Memory:
    """The second values of a piece of memory; `alive` says whether that is still there."""

    alive: StorageWeakRef
    dtype: torch.dtype
    flat: torch.Tensor


class Shadow(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Keeps second values of all tensors that are computed while it is active.

    Args:
        noise: seed of the roundings by which results are moved; None moves nothing.

    Attributes:
        refused: operations that do not work in float64: their results count as exact.
    """

    supports_higher_order_operators = True

    def __init__(self, noise: int | None = None) -> None:
        super().__init__()
        self._memories: dict[int, _Memory] = {}
        self._operations = 0
        self._noise = None if noise is None else torch.Generator().manual_seed(noise)
        self.refused: dict[str, str] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the second value of a tensor, of its size: what it is itself where it has none."""
        second = self._second(tensor)
        return second if second is not None else widened(tensor)

    def move(self, tensor: torch.Tensor) -> None:
        """Move what a tensor holds by up to a rounding, where results are moved."""
        if self._noise is not None and self._wide(tensor.dtype) is not None:
            self._keep(tensor, self._moved(widened(tensor), tensor.dtype, 1.0))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self._operations += 1
        if self._operations % PURGE == 0:
            dead = [key for key, memory in self._memories.items() if memory.alive.expired()]
            for key in dead:
                del self._memories[key]
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if not any(self._wide(leaf.dtype) is not None for leaf in leaves) or is_opaque(func):
            return func(*args, **kwargs)
        for written in written_operands(func, args, kwargs):
            self._begin(written)
        wide_args, wide_kwargs = self._operands(func, args, kwargs, leaves)
        memory = {leaf.untyped_storage()._cdata for leaf in leaves if _has_memory(leaf)}
        result = func(*args, **kwargs)
        try:
            second = func(*wide_args, **wide_kwargs)
        except Exception as error:  # any operation may refuse float64 in its own way
            self.refused.setdefault(str(func), f"{type(error).__name__}: {error}".partition("\n")[0])
            return result
        self._note(func, result, second, leaves, memory)
        return result

    def _note(
        self, func: Any, result: Any, second: Any, leaves: list[torch.Tensor], memory: set[int]
    ) -> None:
        """Keep the second values of what an operation gave."""
        is_view = _is_view(func)
        for value, wide in zip(tree_leaves(result), tree_leaves(second), strict=False):
            if not (
                isinstance(value, torch.Tensor) and isinstance(wide, torch.Tensor) and _has_memory(value)
            ):
                continue
            if self._wide(value.dtype) is None or wide.shape != value.shape:
                continue
            if value.untyped_storage()._cdata in memory:
                if not is_view and self._noise is not None and (place := self._second(value)) is not None:
                    place.copy_(self._moved(place, value.dtype, 1.0))
                continue
            kept = wide
            if _is_cast(func) and _narrows(leaves[0].dtype, value.dtype):
                kept = wide.to(value.dtype)
            kept = kept.to(self._wide(value.dtype))
            if (
                self._noise is not None
                and value.dtype not in WIDE
                and _name(func).lstrip("_").startswith(_BY_ONE)
            ):
                kept = self._by_one(kept)
            self._keep(value, kept if is_view else self._moved(kept, value.dtype, 1.0))

    def _operands(self, func: Any, args: Any, kwargs: Any, leaves: list[torch.Tensor]) -> Any:
        """Return the second values of operands; dtypes among them are wide."""
        times = 0.0
        is_accumulated = not _name(func).lstrip("_").startswith(_IN_PLACE_SUMS)
        if self._noise is not None and not (
            _is_view(func) or torch.Tag.pointwise in func.tags or _is_cast(func)
        ):
            times = min(max((size for leaf in leaves for size in leaf.shape), default=1), LONGEST) ** 0.5
        written = {id(one) for one in written_operands(func, args, kwargs)}

        def operand(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if self._wide(value.dtype) is None:
                    return value
                second = self.of(value)
                if times and id(value) not in written:
                    narrow = value.dtype in (torch.float16, torch.bfloat16)
                    summed_as = torch.float32 if narrow and is_accumulated else value.dtype
                    return self._moved(second, summed_as, times)
                return second
            if isinstance(value, torch.dtype):
                return WIDE.get(value, value)
            return value

        return tree_map(operand, args), tree_map(operand, kwargs)

    def _moved(self, value: torch.Tensor, dtype: torch.dtype, times: float) -> torch.Tensor:
        if self._noise is None or dtype not in WIDE or not value.numel():
            return value
        amount = 2 * torch.rand(value.shape, generator=self._noise, dtype=torch.float64) - 1
        return value * (1 + amount.to(value.device) * (times * torch.finfo(dtype).eps))

    def _by_one(self, value: torch.Tensor) -> torch.Tensor:
        """Move integers up by one, or down, in turns of the seeds; within their dtype."""
        info = torch.iinfo(value.dtype)
        amount = 1 if self._noise is not None and self._noise.initial_seed() % 2 else -1
        return (value.to(torch.int64) + amount).clamp(info.min, info.max).to(value.dtype)

    def _wide(self, dtype: torch.dtype) -> torch.dtype | None:
        """Return the dtype of second values; None where a value has none: integers without noise."""
        return WIDE.get(dtype, None if self._noise is None else dtype)

    def _second(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if not _has_memory(tensor):
            return None
        memory = self._memories.get(tensor.untyped_storage()._cdata)
        if memory is None or memory.dtype != tensor.dtype or memory.alive.expired():
            return None
        return memory.flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def _begin(self, tensor: torch.Tensor) -> None:
        """Give memory that is about to be written second values: those that it has."""
        wide = self._wide(tensor.dtype)
        if wide is None or not _has_memory(tensor) or self._second(tensor) is not None:
            return
        storage = tensor.untyped_storage()
        plain = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
        self._memories[storage._cdata] = _Memory(
            StorageWeakRef(storage), tensor.dtype, plain.to(wide, copy=True)
        )

    def _keep(self, tensor: torch.Tensor, second: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        length = storage.nbytes() // max(tensor.element_size(), 1)
        if second.stride() == tensor.stride() and not second.storage_offset() and second.numel() == length:
            flat = second.as_strided((length,), (1,))
        else:
            flat = torch.zeros(length, dtype=second.dtype, device=second.device)
            flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()).copy_(second)
        self._memories[storage._cdata] = _Memory(StorageWeakRef(storage), tensor.dtype, flat)


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in the widest type of its kind."""
    tensor = tensor.to_dense() if tensor.is_mkldnn else tensor
    return tensor.to(WIDE.get(tensor.dtype, tensor.dtype))


def _narrows(operand: torch.dtype, result: torch.dtype) -> bool:
    """Whether a cast between floats rounds: also one between types of one size."""
    return operand != result and bool(result.itemsize <= operand.itemsize)


def _has_memory(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided


def _name(func: Any) -> str:
    return str(getattr(func, "_schema", func)).partition("(")[0].rpartition("::")[2].partition(".")[0]


def _is_cast(func: Any) -> bool:
    return _name(func) in _CASTS


def _is_view(func: Any) -> bool:
    return bool(getattr(func, "is_view", False)) or _name(func) in (
        "_unsafe_view",
        "_reshape_alias",
        "detach",
    )


def is_opaque(func: Any) -> bool:
    """Whether a result is no function of the operands' values: random numbers, memory not yet written."""
    if not isinstance(func, torch._ops.OpOverload):
        return True
    return torch.Tag.nondeterministic_seeded in func.tags or _name(func).startswith(_NOT_COMPUTED)


def written_operands(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Return the operands that an operation writes."""
    written = []
    for place, argument in enumerate(func._schema.arguments):
        undeclared = argument.name in _RUNNING and "batch_norm" in _name(func)
        if undeclared or (argument.alias_info is not None and argument.alias_info.is_write):
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            written += [one for one in tree_flatten(value)[0] if isinstance(one, torch.Tensor)]
    return written
