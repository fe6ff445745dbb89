"""Calls of the wrapper that make or view a tensor: `empty_strided_cpu(...)`, `reinterpret_tensor(...)`."""

from __future__ import annotations

import ast
import re

from inductor_probe.model.ir import LARGEST_DIM, BufferLayout, Dim, dim_of
from inductor_probe.reader.values import dotted

_EMPTY_STRIDED = re.compile(r"empty_strided(_(?P<device>\w+))?")


def empty_layout(target: str, call: ast.Call) -> BufferLayout | None:
    """Return the layout of `empty`, `empty_strided` or `empty_strided_cuda`; None for any other call."""
    match = _EMPTY_STRIDED.fullmatch(target)
    if not (target == "empty" or match) or not call.args:
        return None
    size = dims(call.args[0]) or ()
    device, dtype = device_and_dtype(call)
    if target == "empty" or len(call.args) < 2:  # torch 2.2 writes contiguous buffers so
        return BufferLayout("Allocation", device, dtype, size, contiguous_stride(size))
    if match and match["device"]:
        device = device_named(match["device"])
        dtype = dotted(call.args[2]).removeprefix("torch.") if len(call.args) > 2 else dtype
    return BufferLayout("Allocation", device, dtype, size, dims(call.args[1]))


def device_named(suffix: str) -> str:
    """Return the device in the name of `empty_strided_cpu_pinned`, of which `suffix` is the end."""
    return suffix.removesuffix("_pinned").removesuffix("_p2p")


def view_layout(target: str, call: ast.Call, base: BufferLayout | None) -> BufferLayout | None:
    """Return the layout of a view of a buffer that lies as `base`.

    `reinterpret_tensor(buf, size, stride, offset)`, in elements; `alloc_from_pool(pool, offset, dtype, size,
    stride)`, whose offset is in bytes and so is not one of the layout.
    """
    device, dtype = (base.device, base.dtype) if base else (None, None)
    match target, call.args:
        case "reinterpret_tensor", [_, size, stride, *rest]:
            offset = dim(rest[0]) if rest else 0
            return BufferLayout("Allocation", device, dtype, dims(size), dims(stride), offset)
        case "alloc_from_pool", [_, _, kind, size, stride]:
            dtype = dotted(kind).removeprefix("torch.")
            return BufferLayout("Allocation", device, dtype, dims(size), dims(stride))
    return None


def contiguous_stride(size: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the row-major stride of `size`, in elements."""
    stride: list[Dim] = []
    step: Dim = 1
    for length in reversed(size):
        stride.append(step)
        if isinstance(length, int) and isinstance(step, int):
            product = step * max(length, 1)
            step = dim_of(product, str(product))
        else:
            factor = str(length) if str(length).isidentifier() else f"({length})"
            step = str(length) if step == 1 else f"{step}*{factor}"
    return tuple(reversed(stride))


def device_and_dtype(call: ast.Call) -> tuple[str | None, str | None]:
    """Return the keyword arguments `device` and `dtype` (without `torch.`), None where they are not given."""
    device = dtype = None
    for keyword in call.keywords:
        if keyword.arg == "device" and isinstance(keyword.value, ast.Constant):
            device = str(keyword.value.value)
        elif keyword.arg == "dtype":
            dtype = dotted(keyword.value).removeprefix("torch.")
    return device, dtype


def pointer(node: ast.expr) -> str:
    """Unwrap `c_void_p(buf0.data_ptr())` and `c_long(s0)`, which torch before 2.3 passes to C++ kernels."""
    match node:
        case ast.Call(func=ast.Name(id="c_void_p"), args=[ast.Call(func=ast.Attribute(value=inner))]):
            return text(inner)
        case ast.Call(func=ast.Name(id="c_long" | "c_int" | "c_float" | "c_double"), args=[inner]):
            return text(inner)
    return text(node)


def dim(node: ast.expr) -> Dim:
    """Read a size or stride: a number, or the text of a symbolic one."""
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= LARGEST_DIM:
        return node.value
    return ast.unparse(node)


def dims(node: ast.expr) -> tuple[Dim, ...] | None:
    """Read a tuple or list of sizes or strides; None for anything else."""
    return tuple(dim(element) for element in node.elts) if isinstance(node, ast.Tuple | ast.List) else None


def text(node: ast.expr) -> str:
    """Return the source of an expression (names, most of what a wrapper passes, without `ast.unparse`)."""
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)
