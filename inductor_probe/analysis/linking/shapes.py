"""Whether an FX node's value can be what a buffer holds, by number of elements and type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from inductor_probe.model.code import OutputCode
from inductor_probe.model.fx import FX_NAMES, FxNode
from inductor_probe.model.ir import Dim, SchedulerNode, as_dim

_TYPE = re.compile(r"(?P<dtype>[a-z]+\d+\w*)\[(?P<dims>[^\]]*)\]")
_DTYPES = {name: dtype for dtype, name in FX_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions and dtype, None where they are not known.

    `numel` is the number of elements, None when it is symbolic or not known: see `shape`.
    """

    dims: tuple[Dim, ...] | None = None
    dtype: str | None = None
    numel: int | None = None

    @property
    def floating(self) -> bool:
        """Whether it is of floating point."""
        return self.dtype is not None and self.dtype.startswith(("float", "bfloat"))


def shape(dims: tuple[Dim, ...] | None, dtype: str | None) -> Shape:
    """Return a shape with its number of elements counted."""
    total: int | None = None if dims is None else 1
    for dim in dims or ():
        total = total * dim if isinstance(dim, int) and total is not None else None
    return Shape(dims, dtype, total)


def fx_shape(node: FxNode) -> Shape:
    """Read `f32[512, 1000]`."""
    return _shape_of_type(node.type or "")


@lru_cache(maxsize=4096)
def _shape_of_type(text: str) -> Shape:
    match = _TYPE.match(text)
    if match is None:
        return Shape()
    sizes = tuple(as_dim(text) for part in match["dims"].split(",") if (text := part.strip()))
    return shape(sizes, _DTYPES.get(match["dtype"]))


def buffer_shapes(leaves: Iterable[SchedulerNode], code: OutputCode | None) -> dict[str, Shape]:
    """Return the shape of each buffer that `leaves` write: as printed, or as the wrapper allocates it."""
    shapes = {
        allocation.name: shape(allocation.layout.size, allocation.layout.dtype)
        for allocation in (code.allocations if code else ())
        if allocation.layout is not None
    }
    for leaf in leaves:
        for buffer in leaf.outputs:
            if buffer.layout is not None and buffer.layout.size is not None:
                shapes[buffer.name] = shape(buffer.layout.size, buffer.layout.dtype)
            elif buffer.name not in shapes and leaf.sizes:
                shapes[buffer.name] = shape(leaf.sizes[0], None)
    return shapes


def may_hold(buffer: Shape, value: Shape) -> bool:
    """Whether a buffer of this shape can hold the value, seen through any view."""
    if value.dims is None:
        return False
    if buffer.dtype and value.dtype and buffer.dtype != value.dtype:
        return False
    if buffer.dims is None:
        return True
    if buffer.numel is not None and value.numel is not None:
        return buffer.numel == value.numel
    return _long(buffer) == _long(value)


def _long(shape: Shape) -> Counter[str]:
    """Return the dimensions that are longer than 1, in any order."""
    return Counter(str(dim) for dim in shape.dims or () if dim != 1)
