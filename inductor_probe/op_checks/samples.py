"""Operators and samples of PyTorch's test database (`op_db`), and how one would write a sample down."""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
import types
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from msgspec import Struct
from torch.utils import _pytree as pytree

from inductor_probe.harness.varied import varied
from inductor_probe.model.op_check import SAMPLE_KINDS

DTYPES = ("float32", "uint8", "float16", "bfloat16", "float64", "int64", "int32", "int8", "bool", "complex64")
"""What samples are asked for, the usual ones first."""
_SHOWN = 64
"""Elements of a tensor that a program writes as numbers; of longer ones it holds the bytes."""
_PLACES = (
    "torch", "torch.nn.functional", "torch.Tensor", "torch.linalg", "torch.fft", "torch.special",
    "torch.ops.aten",
)  # fmt: skip


@functools.cache
def operators() -> Mapping[str, Any]:
    """Return the operators of the database by name: an `OpInfo` each.

    The database imports a test library that plain installations of torch lack, of which it needs one class.
    """
    if importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]  # a module made by hand
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal import common_methods_invocations as database  # noqa: PLC0415 - takes seconds

    # Random operators set and restore the generator's state around themselves, which dynamo does not trace.
    database.wrapper_set_seed = lambda function, *args, **kwargs: function(*args, **kwargs)
    return {operator.formatted_name: operator for operator in database.op_db}


class Sample(Struct, frozen=True):
    """Arguments of an operator: `args` has the first of them, too."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> list[torch.Tensor]:
        """Return its tensors, in the order of the arguments."""
        return [
            leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)
        ]

    @property
    def elements(self) -> int:
        """How many numbers its tensors have."""
        return sum(tensor.numel() for tensor in self.tensors())

    def mapped(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
        """Return the sample with other tensors."""
        return Sample(*pytree.tree_map_only(torch.Tensor, change, (self.args, self.kwargs)))

    def shown(self) -> str:
        """Return its arguments as one would write them, tensors by dtype, size and, if need be, stride."""
        words = [_shown(arg) for arg in self.args]
        return ", ".join([*words, *(f"{name}={_shown(value)}" for name, value in self.kwargs.items())])


def samples(operator: Any, dtype: str, form: str, *, grad: bool, device: str) -> Iterator[Sample]:
    """Yield the samples of an operator in a form, in the order of the database.

    Of the form `channels_last`, only samples with a tensor of four or five dimensions that is not so already.
    Of the form `varied`, the first with tensors in other ways: see `harness/varied.py`.
    The database draws random numbers: the same ones each time.
    """
    torch.manual_seed(0)
    for sample_input in operator.sample_inputs(device, getattr(torch, dtype), requires_grad=grad):
        chosen = sample_input.noncontiguous() if form == "noncontiguous" else sample_input
        sample = Sample((chosen.input, *chosen.args), dict(chosen.kwargs))
        if form == "varied":
            if any(tensor.dim() and tensor.numel() > 1 for tensor in sample.tensors()):
                yield from (Sample(*other) for _, *other in varied(sample.args, sample.kwargs))
            continue
        if form == "channels_last":
            before = [tensor.stride() for tensor in sample.tensors()]
            sample = sample.mapped(_channels_last)
            if before == [tensor.stride() for tensor in sample.tensors()]:
                continue
        yield sample


_IS: Mapping[str, Callable[[torch.Tensor], bool]] = {
    "empty": lambda tensor: not tensor.numel(),
    "of one element": lambda tensor: tensor.numel() == 1,
    "with rows of 16 and more": lambda tensor: tensor.dim() > 0 and tensor.shape[-1] >= 16,
    "non-contiguous": lambda tensor: not tensor.is_contiguous(),
    "offset in memory": lambda tensor: tensor.storage_offset() > 0,
}


def kinds_of(sample: Sample) -> list[str]:
    """Return of which kinds a sample is, by any of its tensors."""
    tensors = [tensor for tensor in sample.tensors() if tensor.layout == torch.strided]
    return [kind for kind in SAMPLE_KINDS if any(map(_IS[kind], tensors))]


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        return tensor
    return (
        tensor.detach().contiguous(memory_format=formats[tensor.dim()]).requires_grad_(tensor.requires_grad)
    )


def _shown(value: Any) -> str:
    """Return a value as one would write it: `f32[1, 3, 8, 8]`."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype)[len("torch.") :]
        strided = "" if value.is_contiguous() else f" with stride {list(value.stride())}"
        return f"{kind}{list(value.shape)}{strided}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


def source_of(value: Any) -> str | None:
    """Return an expression of Python that makes a value again; None of what cannot be written.

    `tensor_of` is in the programs that `script` writes.
    """
    if isinstance(value, torch.Tensor):
        return _tensor_source(value)
    if isinstance(value, (list, tuple)):
        parts = [source_of(part) for part in value]
        if None in parts or type(value) not in (list, tuple):
            return None
        inside = ", ".join(part for part in parts if part is not None)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return repr(value)
    if isinstance(value, torch.device):
        return repr(str(value))
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    plain = value is None or isinstance(value, (bool, int, float, complex, str, slice, type(Ellipsis)))
    return repr(value) if plain else None


def _tensor_source(tensor: torch.Tensor) -> str | None:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return None
    size, stride, dtype = tuple(tensor.shape), tensor.stride(), repr(tensor.dtype)
    grad = ", grad=True" if tensor.requires_grad else ""
    flat = tensor.detach().cpu().contiguous().flatten()
    if flat.numel() <= _SHOWN and not flat.is_complex():
        numbers = ", ".join(source_of(number) or "" for number in flat.tolist())
        data = f"[{numbers}]"
    else:
        import base64  # noqa: PLC0415 - only here
        import zlib  # noqa: PLC0415

        raw = bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""
        data = repr(base64.b85encode(zlib.compress(raw)).decode())
    return f"tensor_of({data}, {dtype}, {size}, {stride}{grad})"


def place_of(operator: Any) -> str | None:
    """Return the expression that is the operator's function: `torch.flip`; None where there is none."""
    function = operator.op
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"torch.ops.{function}"
    name = getattr(function, "__name__", "")
    for place in _PLACES:
        module: Any = functools.reduce(getattr, place.split(".")[1:], torch)
        if name and getattr(module, name, None) is function:
            return f"{place}.{name}"
    return None
