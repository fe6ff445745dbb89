"""Memory formats: what sizes and strides say of how a buffer lies."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise
from math import prod

from msgspec import Struct

from inductor_probe.analysis.index import prime_values, value_of
from inductor_probe.model.ir import PRINTED_STRIDE, BufferLayout, Dim
from inductor_probe.model.layouts import MemoryFormat

ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2, "uint32": 4, "int32": 4,
    "float32": 4, "complex32": 4, "uint64": 8, "int64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes of an element, by dtype."""

_NO_MEMORY = "NoneLayout"
"""Of a node that changes other buffers, or that only has an effect: torch/_inductor/ir.py."""


class Format(Struct, frozen=True):
    """A memory format, and the dimensions from slowest to fastest (None when it is not known)."""

    name: MemoryFormat
    dim_order: tuple[int, ...] | None


@lru_cache(maxsize=4096)  # many buffers lie alike
def memory_format(layout: BufferLayout | None) -> Format:
    """Name the memory format of a layout.

    `contiguous` and `channels_last` (4-D and 5-D) are torch's: a layout that is both at once, such as
    [2, 32, 1, 1], is `contiguous`, and so is one of no elements, whatever its strides
    (`c10::TensorImpl::compute_contiguous`). Dense in another order is `transposed` when two dimensions
    changed places and `other` otherwise; `padded` has gaps, `broadcast` a stride of 0, `none` no memory.
    Dimensions of size 1 count for nothing.
    """
    if layout is not None and layout.kind == _NO_MEMORY:  # its printed size is [0]
        return Format("none", None)
    parts = _numbers(layout)
    if parts is None:
        return Format("unknown", None)
    size, stride = parts
    rank = len(size)
    row_major = tuple(range(rank))
    if 0 in size:
        return Format("contiguous", row_major)
    if any(step == 0 and length > 1 for length, step in zip(size, stride, strict=True)):
        return Format("broadcast", None)
    if _is_dense(size, stride, row_major):
        return Format("contiguous", row_major)
    channels_last = (0, *range(2, rank), 1)
    if rank in (4, 5) and _is_dense(size, stride, channels_last):
        return Format("channels_last", channels_last)
    order = _dim_order(size, stride)
    if _is_dense(size, stride, order):
        moved = sum(place != dim for place, dim in enumerate(order))
        return Format("transposed" if moved == 2 else "other", order)
    # Every dimension steps over all of the faster ones: nothing overlaps, something is left out.
    real = [dim for dim in order if size[dim] != 1]
    gaps = all(stride[slow] >= size[fast] * stride[fast] for slow, fast in pairwise(real))
    return Format("padded" if gaps else "other", order)


def orders_differ(a: BufferLayout | None, b: BufferLayout | None) -> bool:
    """Whether two buffers of one rank hold a pair of dimensions in opposite orders.

    Only dimensions longer than 1 in both and not broadcast count: other strides say nothing. So a layout of
    [2, 32, 1, 1] is in the order of every 4-D layout that has dimension 0 outside of dimension 1:

        [2, 32, 1, 1] strides [32, 1, 1, 1], and [2, 32, 8, 8] strides [2048, 1, 256, 32]: no
        [2, 32, 8, 8] strides [2048, 64, 8, 1], and [2, 32, 8, 8] strides [2048, 1, 256, 32]: yes
    """
    parts = _numbers(a, b)
    if parts is None:
        return False
    size_a, stride_a, size_b, stride_b = parts
    if 0 in size_a or 0 in size_b:
        return False
    strides = [
        (step_a, step_b)
        for length_a, step_a, length_b, step_b in zip(size_a, stride_a, size_b, stride_b, strict=True)
        if length_a > 1 and length_b > 1 and step_a and step_b
    ]
    return any((a0 - a1) * (b0 - b1) < 0 for (a0, b0), (a1, b1) in combinations(strides, 2))


def _dim_order(size: list[int], stride: list[int]) -> tuple[int, ...]:
    """Slowest dimension first; a dimension of size 1 stays beside the one it stands before."""
    order = sorted((dim for dim in range(len(size)) if size[dim] != 1), key=lambda dim: -stride[dim])
    for dim in range(len(size)):
        if size[dim] == 1:
            order.insert(min(dim, len(order)), dim)
    return tuple(order)


def _is_dense(size: list[int], stride: list[int], order: tuple[int, ...]) -> bool:
    expected = 1
    for dim in reversed(order):
        if size[dim] != 1 and stride[dim] != expected:
            return False
        expected *= max(size[dim], 1)
    return True


def size_bytes(layout: BufferLayout | None) -> Dim | None:
    """Return the bytes from the first to the last element: `(1 + sum((size - 1) * stride)) * item`.

    Text when a size is symbolic, None when size, stride or dtype are not known. Of a constant that a library
    packed, whose strides are not those of its memory, the bytes that torch wrote down, or of its elements.
    """
    if packed := _packed_bytes(layout):
        return packed
    if layout is not None and layout.kind == _NO_MEMORY:
        return 0
    if layout is None or layout.size is None or layout.stride is None or layout.dtype not in ITEM_BYTES:
        return None
    item = ITEM_BYTES[layout.dtype]
    if 0 in layout.size:
        return 0
    extent = 1
    for length, step in zip(layout.size, layout.stride, strict=False):
        if not isinstance(length, int) or not isinstance(step, int):
            return f"{item}*" + "*".join(_factor(length) for length in layout.size if length != 1)
        extent += (length - 1) * step
    return extent * item


def element_bytes(layout: BufferLayout | None) -> Dim | None:
    """Return the bytes of the elements of a layout, gaps left out, and what was broadcast once."""
    size = size_bytes(layout)
    if not isinstance(size, int) or layout is None or layout.size is None or layout.stride is None:
        return size
    steps = zip(layout.size, layout.stride, strict=False)
    numbers = [length for length, step in steps if step and isinstance(length, int)]
    return min(size, prod(numbers) * ITEM_BYTES[layout.dtype or ""])


def _packed_bytes(layout: BufferLayout | None) -> int | None:
    """Return the bytes of a constant whose printed stride is not that of its memory; None of any other."""
    extras = dict(layout.extras) if layout is not None else {}
    if layout is None or PRINTED_STRIDE not in extras:
        return None
    if extras.get("data_size", "").isdecimal():
        return int(extras["data_size"])
    numbers = [length for length in layout.size or () if isinstance(length, int)]
    return prod(numbers) * ITEM_BYTES[layout.dtype] if layout.dtype in ITEM_BYTES else None


def _factor(dim: Dim) -> str:
    return f"({dim})" if isinstance(dim, str) and not dim.isidentifier() else str(dim)


def _numbers(*layouts: BufferLayout | None) -> list[list[int]] | None:
    """Return the size and the stride of each layout, symbols replaced by primes.

    None where one is not known, cannot be evaluated, or has another rank than the first.
    """
    parts: list[tuple[Dim, ...]] = []
    for layout in layouts:
        if layout is None or layout.size is None or layout.stride is None:
            return None
        parts += [layout.size, layout.stride]
    values = prime_values(dim for part in parts for dim in part if isinstance(dim, str))
    numbers = [[number for dim in part if (number := value_of(dim, values)) is not None] for part in parts]
    return numbers if {len(part) for part in (*parts, *numbers)} == {len(parts[0])} else None
