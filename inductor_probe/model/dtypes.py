"""Short names of dtypes, as compilers write them: `f32`, `u8`."""

from __future__ import annotations

_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip


def short_dtype(dtype: str) -> str:
    """Return the short name of a dtype, or the name itself where there is none (`bool`, `float8_e5m2`)."""
    return _SHORT.get(dtype, dtype)
