"""Short names of dtypes, as FX graphs print them: `f32`, `u8`."""

from __future__ import annotations

FX_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
    "complex64": "c64", "complex128": "c128", "bool": "b8",
}  # fmt: skip


def fx_dtype(dtype: str) -> str:
    """Return the name that FX graphs print, or the name itself where there is none (`float8_e5m2`)."""
    return FX_NAMES.get(dtype, dtype)


def short_dtype(dtype: str) -> str:
    """Return the same for a cast in a formula, where `bool(x)` says more than `b8(x)`."""
    return dtype if dtype == "bool" else fx_dtype(dtype)
