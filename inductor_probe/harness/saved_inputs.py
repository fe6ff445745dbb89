"""Inputs of other kinds than random: real ones, zeros, a sequence."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.inputs import Inputs, span

KINDS = ("random", "zeros", "sequential", "real")
RAMP = 997  # sequential values start again there: half precision holds whole numbers to 2048


class InputsError(Exception):
    """There are no inputs of that kind or size; the message is for the user."""


class KindsOfInputs(Inputs):
    """Makes the inputs of a graph of a kind in `KINDS`.

    Real ones are read from the files that the dump keeps in `folder`, where the bench file is.
    """

    def __init__(self, seed: int, kind: str = "random", folder: Path = Path()) -> None:
        super().__init__(seed)
        if kind not in KINDS:
            raise InputsError(f"no inputs of kind {kind!r}: there is {', '.join(KINDS)}")
        self.kind, self.folder = kind, folder

    def tensor(
        self, name: str, size: Any, stride: Any, dtype: torch.dtype, device: str, **how: Any
    ) -> torch.Tensor:
        """Return a tensor of that layout: see `Inputs`."""
        if self.kind != "real":
            if self.kind != "random":
                how = {key: value for key, value in how.items() if key not in ("mean", "deviation")}
            return super().tensor(name, size, stride, dtype, device, **how)
        file, extent, offset = how.get("file"), span(size, stride), how.get("offset", 0)
        path = self.folder / file if file else None
        data = saved_bytes(name, path, (offset + extent) * dtype.itemsize if extent else 0)
        flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        empty = torch.empty(0, dtype=dtype, device=device)
        return empty.set_(flat.to(device).untyped_storage(), offset, size, stride)

    def values(self, count: int, dtype: torch.dtype, low: int | None, high: int) -> torch.Tensor:
        """Return `count` values from `low` to `high`, in a wide type."""
        if self.kind == "random":
            return super().values(count, dtype, low, high)
        inexact = dtype.is_floating_point or dtype.is_complex
        wide = torch.complex128 if dtype.is_complex else torch.float64 if inexact else torch.int64
        low, high = (0, 1) if dtype == torch.bool else (0, RAMP) if low is None else (low, high)
        first = min(max(low, 0), high)
        period = 1 if self.kind == "zeros" else min(high - first + 1, RAMP)
        return (first + torch.arange(count) % period).to(wide)


def choose_inputs(bench: Bench, kind: str, sizes: dict[str, int]) -> None:
    """Have a graph make inputs of that kind and of those sizes.

    Raises:
        InputsError: there is no such kind or size, or real inputs are to have another size.
    """
    known = bench.namespace.get("SIZES", {})
    unknown = [name for name in sizes if name not in known]
    if unknown:
        there = f"there is {', '.join(known)}" if known else "all sizes of this graph are fixed"
        raise InputsError(f"no size {unknown[0]}: {there}")
    if kind == "real" and sizes:
        raise InputsError("real inputs have their recorded sizes: leave out the other sizes, or `real`")
    folder = Path(bench.namespace.get("__file__", "")).parent
    bench.sizes, bench.maker = dict(sizes), lambda seed: KindsOfInputs(seed, kind, folder)


def saved_bytes(name: str, path: Path | None, least: int) -> bytearray:
    """Return the bytes of a real input's storage, at least `least`. Nothing is unpickled.

    `path` is of bytes as they are, or of the archive that torch itself writes around them; None: of nothing.
    """
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
