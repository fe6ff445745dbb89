"""What a graph's input is. Called in the child, between the user's operations: it leaves no trace in them."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from inductor_probe.model.manifest import INPUTS_DIR


def is_fake(value: Any) -> bool:
    """Tell whether `value` is a fake tensor: it has a shape but no data."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return fake is not None and isinstance(value, fake.FakeTensor)


def input_fact(name: str, value: Any, save_to: Path | None) -> dict[str, Any] | None:
    """Return what `InputFact` holds of `value`, or None for what is neither a tensor nor a whole number.

    Args:
        name: the placeholder's.
        value: what the graph was called with.
        save_to: the graph's folder, to keep the tensor's storage in; None to keep nothing.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    if isinstance(value, (int, torch.SymInt)):
        return {"name": name, "kind": "symint", "value": int(value)}
    if not isinstance(value, torch.Tensor):
        return None
    fact: dict[str, Any] = {
        "name": name,
        "kind": "tensor",
        "size": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": str(value.device),
    }
    if value.layout is not torch.strided:
        return fact
    fact |= {"stride": list(value.stride()), "offset": value.storage_offset()}
    # Modes of the user (a flop counter, a profiler of dispatches) must not see what is done here.
    with torch.no_grad(), _disable_current_modes():
        fact |= _extremes(value)
        if save_to is not None:
            fact["saved"] = _save_storage(value, save_to / INPUTS_DIR / f"{name}.bin")
    return fact


def _extremes(tensor: Any) -> dict[str, int]:
    """Return the least and greatest value of an integer or boolean tensor that has any."""
    import torch

    if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized or not tensor.numel():
        return {}
    if tensor.dtype in (torch.uint16, torch.uint32):  # torch has no aminmax for these
        tensor = tensor.to(torch.int64)
    elif tensor.dtype is torch.uint64:  # as signed numbers, shifted down by 2**63: the order stays
        low, high = torch.aminmax(tensor.view(torch.int64) ^ -(2**63))
        return {"minimum": int(low) + 2**63, "maximum": int(high) + 2**63}
    low, high = torch.aminmax(tensor)
    return {"minimum": int(low), "maximum": int(high)}


def _save_storage(tensor: Any, path: Path) -> str:
    """Write the bytes of the whole storage that `tensor` is a view of; return the file's name."""
    storage = tensor.untyped_storage().cpu()
    path.parent.mkdir(exist_ok=True)
    size = storage.nbytes()
    data = (ctypes.c_char * size).from_address(storage.data_ptr()) if size else b""
    path.write_bytes(data)
    return path.name
