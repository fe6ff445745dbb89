"""Arguments of a plain function, on the command line: `x=u8[1,3,345,456]:channels_last`."""

from __future__ import annotations

import ast
import re
from math import prod
from typing import Any

from inductor_probe.errors import ProbeError, near_names

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "b8": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""As readable FX graphs abbreviate them (torch/fx/graph.py, dtype_abbrs) -> names in torch."""
FORMATS = ("contiguous", "channels_last", "sliced", "strided")
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<size>[\d, ]*)\](?::(?P<form>\w+))?")
_MARGIN = 8
_MOST = 1 << 40


def argument_of(text: str) -> dict[str, Any]:
    """Return an argument as the measuring process makes it.

    `x=u8[1,3,345,456]:channels_last` is a tensor: uint8, of that size, in that memory format. `sliced` is a
    view into a larger tensor, 8 elements from the edges of the last two dimensions; `strided` has every
    second element of the last one. `size=(256, 256)` is a Python value.

    Raises:
        ProbeError: it is neither; says what is wrong.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ProbeError(
            f"invalid argument --arg {text}", "write NAME=f32[1,3,224,224]:channels_last or NAME=VALUE"
        )
    match = _TENSOR.fullmatch(value.strip())
    if match is None:
        try:
            literal = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            raise ProbeError(
                f"invalid argument --arg {text}: {value!r} is neither a tensor nor a Python value",
                "a tensor is f32[1,3,224,224], with :channels_last, :sliced or :strided behind it",
            ) from None
        return {"name": name, "text": value, "value": literal}
    dtype = DTYPES.get(match["dtype"], match["dtype"])
    if dtype not in DTYPES.values():
        known = [*DTYPES, *DTYPES.values()]
        raise ProbeError(
            f"invalid argument --arg {text}: unknown dtype {match['dtype']!r}", near_names(dtype, known)
        )
    size = [int(part) for part in match["size"].replace(" ", "").split(",") if part]
    if prod(size) > _MOST:
        raise ProbeError(f"invalid argument --arg {text}: it has {prod(size):,} elements")
    stride, offset = layout(size, match["form"] or FORMATS[0], text)
    return {"name": name, "text": value, "dtype": dtype, "size": size, "stride": stride, "offset": offset}


def layout(size: list[int], form: str, text: str) -> tuple[list[int], int]:
    """Return strides and offset of a tensor in a memory format.

    Raises:
        ProbeError: there is no such format, or not for so few dimensions.
    """
    if form not in FORMATS:
        raise ProbeError(
            f"invalid argument --arg {text}: unknown memory format {form!r}", near_names(form, FORMATS)
        )
    least = {"channels_last": 4, "sliced": 2, "strided": 1}.get(form, 0)
    if len(size) < least or (form == "channels_last" and len(size) > 5):
        raise ProbeError(
            f"invalid argument --arg {text}: {form} is for tensors of {least} or more dimensions"
        )
    outer = list(size)
    if form == "sliced":
        outer[-2:] = [n + 2 * _MARGIN for n in outer[-2:]]
    if form == "strided":
        outer[-1] *= 2
    order = [0, *range(2, len(size)), 1] if form == "channels_last" else list(range(len(size)))
    stride, step = [0] * len(size), 1
    for dim in reversed(order):
        stride[dim] = step
        step *= max(outer[dim], 1)
    offset = _MARGIN * (stride[-1] + stride[-2]) if form == "sliced" else 0
    if form == "strided":
        stride[-1] = 2
    return stride, offset
