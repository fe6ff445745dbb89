"""Inputs: seeded, laid out as they were, fresh for every run."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

KINDS = ("random", "zeros", "sequential", "real")
RAMP = 997  # sequential values start again there: half precision holds whole numbers to 2048


class InputsError(Exception):
    """There are no inputs of that kind or size; the message is for the user."""


def bind(sizes: Mapping[str, int] | None, **recorded: int) -> tuple[int, ...]:
    """Return the values of the size symbols: those in `sizes`, the others as recorded."""
    unknown = [name for name in sizes or {} if name not in recorded]
    if unknown:
        known = f"there is {', '.join(recorded)}" if recorded else "all sizes of this graph are fixed"
        raise InputsError(f"no size {unknown[0]}: {known}")
    return tuple({**recorded, **(sizes or {})}.values())


class Inputs:
    """Makes the inputs of a graph, one after the other.

    `kind` is one of `KINDS`. Random ones are normal floats, and integers and booleans within their bounds,
    and the same for the same seed. Real ones are read from the files that the dump keeps beside this one.
    """

    def __init__(self, seed: int, kind: str = "random", sizes: Mapping[str, int] | None = None) -> None:
        if kind not in KINDS:
            raise InputsError(f"no inputs of kind {kind!r}: there is {', '.join(KINDS)}")
        if kind == "real" and sizes:
            raise InputsError("real inputs have their recorded sizes: leave out the other sizes, or `real`")
        self.kind = kind
        self.generator = torch.Generator().manual_seed(seed)

    def tensor(
        self,
        name: str,
        size: tuple[int, ...],
        stride: tuple[int, ...],
        dtype: torch.dtype,
        device: str,
        *,
        low: int | None = None,
        high: int | None = None,
        offset: int = 0,
        form: str = "any",
        file: str | None = None,
    ) -> torch.Tensor:
        """Return a tensor of that layout: `low` to `high` in the order `form`, or out of `file`."""
        extent = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 if all(size) else 0
        if self.kind == "real":
            data = _saved_bytes(name, file, (offset + extent) * dtype.itemsize if extent else 0)
            flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
            empty = torch.empty(0, dtype=dtype, device=device)
            return empty.set_(flat.to(device).untyped_storage(), offset, size, stride)
        values = self._values(offset + extent, dtype, low, high)
        view = values.as_strided(size, stride, offset)
        if form != "any" and view.numel() and view.dim():
            _arrange(view, form, high or 0)
        return values.to(device, dtype).as_strided(size, stride, offset)

    def _values(self, count: int, dtype: torch.dtype, low: int | None, high: int | None) -> torch.Tensor:
        """Return `count` values from `low` to `high`, in a wide type."""
        inexact = dtype.is_floating_point or dtype.is_complex
        wide = torch.complex128 if dtype.is_complex else torch.float64 if inexact else torch.int64
        if dtype == torch.bool:
            low, high = 0, 1
        if self.kind == "random" and inexact and low is None:
            wide = torch.float32 if wide == torch.float64 and dtype != torch.float64 else wide
            return torch.randn(count, dtype=wide, generator=self.generator)
        low, high = _bounds(low, high, dtype)
        if self.kind == "random" and inexact:
            return low + (high - low) * torch.rand(count, dtype=wide, generator=self.generator)
        if self.kind == "random":
            return torch.randint(low, high + 1, (count,), generator=self.generator)
        first = min(max(low, 0), high)
        if self.kind == "zeros":
            return torch.full((count,), first, dtype=wide)
        return (first + torch.arange(count) % (min(high - first, RAMP - 1) + 1)).to(wide)


def _bounds(low: int | None, high: int | None, dtype: torch.dtype) -> tuple[int, int]:
    """Return bounds that both exist and fit `dtype`."""
    low = (0 if high is None or high >= 0 else high - RAMP) if low is None else low
    high = max(low, 0) + RAMP if high is None else high
    if not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool):
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        low, high = max(low, least), min(high, most, 2**63 - 2)
    return low, max(low, high)


def _arrange(view: torch.Tensor, form: str, high: int) -> None:
    """Put values into an order: sorted, sorted from zero, parts of `high`, or a positive definite matrix.

    `true` makes all but the first `high` of those that are not zero zero.
    """
    if form == "positive definite":
        view.copy_(view @ view.mH + view.shape[-1] * torch.eye(view.shape[-1], dtype=view.dtype))
        return
    if form == "true":
        view.mul_(((view != 0).flatten().cumsum(0) <= high).view(view.shape))
        return
    view.copy_(view.sort(-1).values)
    if form == "offsets":
        view[..., 0] = 0
    elif form == "parts":
        view[..., -1] = high
        view.copy_(view.diff(dim=-1, prepend=torch.zeros_like(view[..., :1])))


def _saved_bytes(name: str, file: str | None, least: int) -> bytearray:
    """Return the bytes of a real input's storage, at least `least`. Nothing is unpickled.

    `file` is relative to this file: bytes as they are, or the archive that torch itself writes around them.
    """
    path = Path(__file__).parent / file if file else None
    if path is None or not path.is_file():
        where = f"{path} is not there" if path else "the dump holds none"
        raise InputsError(f"no real input {name}: {where}; `probe dump --save-inputs` keeps them")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            member = next((member for member in archive.namelist() if member.endswith("/data/0")), None)
            data = archive.read(member) if member else b""
    else:
        data = path.read_bytes()
    if len(data) < least:
        raise InputsError(f"no real input {name}: {path} has {len(data)} bytes and is cut off")
    return bytearray(data)


def clone(values: Any) -> Any:
    """Copy all tensors in `values`, keeping strides, offsets, and memory that they share."""
    storages: dict[Any, Any] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.is_mkldnn:  # one that a library packed has no memory
            return value
        storage = value.untyped_storage()
        memory = (storage.device, storage.data_ptr())
        if memory not in storages:
            storages[memory] = storage.clone()
        fresh = torch.empty(0, dtype=value.dtype, device=value.device)
        return fresh.set_(storages[memory], value.storage_offset(), value.size(), value.stride())

    return tree_map(copy, values)


def tensors_of(values: Any) -> list[Any]:
    """Return the tensors in `values` that have memory: those that a library packed do not."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and not leaf.is_mkldnn]


def changed(before: list[Any], after: list[Any]) -> list[int]:
    """Return the positions of tensors whose bits differ."""
    return [
        index
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if isinstance(old, torch.Tensor) and not torch.equal(_bits(old), _bits(new))
    ]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)
