"""Inputs: seeded, laid out as they were, fresh for every run."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map

KINDS = ("random", "zeros", "sequential", "real")
RAMP = 997  # sequential values start again there: half precision holds whole numbers to 2048


class InputsError(Exception):
    """Inputs that were asked for cannot be had; the message is for the user."""


def bind(sizes: Mapping[str, int] | None, **recorded: int) -> tuple[int, ...]:
    """Return the values of the size symbols: those in `sizes`, the others as recorded."""
    unknown = [name for name in sizes or {} if name not in recorded]
    if unknown:
        there = f"there is {', '.join(recorded)}" if recorded else "all sizes of this graph are fixed"
        raise InputsError(f"no size {unknown[0]}: {there}")
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
            raise InputsError("real inputs have the sizes that they have: leave other sizes or `real` out")
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
        offset: int = 0,
        file: str | None = None,
        **bounds: Any,
    ) -> torch.Tensor:
        """Return a tensor of that layout: of values within `bounds`, or out of `file`."""
        if self.kind == "real":
            return read_tensor(name, file, size, stride, dtype=dtype, device=device, offset=offset)
        return make_tensor(
            size, stride, dtype, device, self.generator, kind=self.kind, offset=offset, **bounds
        )


def make_tensor(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    generator: torch.Generator,
    *,
    kind: str = "random",
    low: int | None = None,
    high: int | None = None,
    offset: int = 0,
    form: str = "any",
) -> torch.Tensor:
    """Return a tensor of that layout with values from `low` to `high`."""
    extent = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 if all(size) else 0
    data = make_values(offset + extent, dtype, generator, kind=kind, low=low, high=high)
    view = data.as_strided(size, stride, offset)
    if form != "any" and view.numel() and view.dim():
        arrange(view, form, high or 0)
    return data.to(device, dtype).as_strided(size, stride, offset)


def arrange(view: torch.Tensor, form: str, high: int) -> None:
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


def make_values(
    count: int,
    dtype: torch.dtype,
    generator: torch.Generator,
    *,
    kind: str,
    low: int | None,
    high: int | None,
) -> torch.Tensor:
    """Return `count` values of a kind from `low` to `high`, in a wide type."""
    inexact = dtype.is_floating_point or dtype.is_complex
    wide = torch.complex128 if dtype.is_complex else torch.float64 if inexact else torch.int64
    if dtype == torch.bool:
        low, high = 0, 1
    if kind == "random" and inexact and low is None:
        wide = torch.float32 if wide == torch.float64 and dtype != torch.float64 else wide
        return torch.randn(count, dtype=wide, generator=generator)
    low, high = narrowed(low, high, dtype)
    if kind == "random" and inexact:
        return low + (high - low) * torch.rand(count, dtype=wide, generator=generator)
    if kind == "random":
        return torch.randint(low, high + 1, (count,), generator=generator)
    first = min(max(low, 0), high)
    if kind == "zeros":
        return torch.full((count,), first, dtype=wide)
    return (first + torch.arange(count) % (min(high - first, RAMP - 1) + 1)).to(wide)


def narrowed(low: int | None, high: int | None, dtype: torch.dtype) -> tuple[int, int]:
    """Return bounds that both exist and fit `dtype`."""
    low = (0 if high is None or high >= 0 else high - RAMP) if low is None else low
    high = max(low, 0) + RAMP if high is None else high
    if not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool):
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        low, high = max(low, least), min(high, most, 2**63 - 2)
    return low, max(low, high)


def read_tensor(
    name: str,
    file: str | None,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *,
    dtype: torch.dtype,
    device: str,
    offset: int,
) -> torch.Tensor:
    """Return a real input from the raw bytes of its storage. Nothing is unpickled.

    `file` is relative to this file: bytes as they are, or the archive that torch itself writes around them.
    """
    path = Path(__file__).parent / file if file else None
    if path is None or not path.is_file():
        where = f"{path} is not there" if path else "the dump holds none"
        raise InputsError(f"no real input {name}: {where}; `probe dump --save-inputs` keeps them")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            member = next((each for each in archive.namelist() if each.endswith("/data/0")), None)
            data = archive.read(member) if member else b""
    else:
        data = path.read_bytes()
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 if all(size) else 0
    if len(data) < last * dtype.itemsize:
        raise InputsError(f"no real input {name}: {path} has {len(data)} bytes and is cut off")
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    empty = torch.empty(0, dtype=dtype, device=device)
    return empty.set_(flat.to(device).untyped_storage(), offset, size, stride)


def clone(values: Any) -> Any:
    """Copy all tensors in `values`, keeping strides, offsets, and memory that they share."""
    storages: dict[Any, Any] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        memory = (storage.device, storage.data_ptr())
        if memory not in storages:
            storages[memory] = storage.clone()
        fresh = torch.empty(0, dtype=value.dtype, device=value.device)
        return fresh.set_(storages[memory], value.storage_offset(), value.size(), value.stride())

    return tree_map(copy, values)


def changed(before: list[Any], after: list[Any]) -> list[int]:
    """Return the positions of tensors whose bits differ."""
    return [
        at
        for at, (old, new) in enumerate(zip(before, after, strict=True))
        if isinstance(old, torch.Tensor) and not torch.equal(_bits(old), _bits(new))
    ]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)
