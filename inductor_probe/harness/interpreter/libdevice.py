"""Functions of libdevice, by the names that they have in its bitcode: `__nv_expf`, `__nv_pow`.

triton/language/extra/cuda/libdevice.py chooses a name by the types of the arguments, and LLVM links its
machine code in: here torch or numpy compute it in the same precision, within a few units in the last place,
as libdevice does (CUDA C++ Programming Guide, mathematical functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch

from inductor_probe.harness.interpreter.errors import NotInterpretedError

Function: TypeAlias = Callable[..., Any]  # of arrays of numpy


def function_of(symbol: str) -> Function:
    """Return what computes a function of libdevice: `__nv_expf` and `__nv_exp` are one.

    Raises:
        NotInterpretedError: there is none for it here.
    """
    stem = symbol.removeprefix("__nv_")
    precise = stem.removeprefix("fast_")
    for name in (stem, stem[:-1], precise, precise[:-1]):  # the last letter: of float, or of double
        if name in FUNCTIONS:
            return FUNCTIONS[name]
    raise NotInterpretedError(f"libdevice has {symbol}, which is not known here")


def by_torch(name: str) -> Function:
    """Return a function of `torch` or `torch.special` for arrays."""

    def compute(*arrays: Any) -> Any:
        function = getattr(torch, name, None) or getattr(torch.special, name)
        tensors = [torch.from_numpy(np.array(array)) for array in np.broadcast_arrays(*arrays)]
        return function(*tensors).numpy()

    return compute


def in_double(function: Callable[..., float]) -> Function:
    """Return a function of Python's floats for arrays: what neither torch nor numpy has."""
    vectorised = np.vectorize(function, otypes=[np.float64])
    return lambda *arrays: vectorised(*arrays).astype(arrays[0].dtype)


def _round_half_away(value: Any) -> Any:
    whole = np.trunc(value)
    return np.where(np.abs(value - whole) >= 0.5, whole + np.copysign(1, value), whole).astype(value.dtype)


def _gamma(value: float) -> float:
    try:
        return math.gamma(value)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _ieee_remainder(x: float, y: float) -> float:
    return math.remainder(x, y) if math.isfinite(x) and y else math.nan


def _ilogb(value: Any) -> Any:
    exponent = np.frexp(value)[1].astype(np.int32) - 1
    special = np.where(np.isinf(value), 2**31 - 1, -(2**31)).astype(
        np.int32
    )  # CUDA's FP_ILOGB0 and FP_ILOGBNAN
    return np.where(np.isfinite(value) & (value != 0), exponent, special)


def _bits_of(kind: Any) -> Function:
    return lambda value: np.ascontiguousarray(value).view(kind)


def _high_product(first: Any, second: Any) -> Any:
    bits = 8 * first.dtype.itemsize
    products = (int(x) * int(y) >> bits for x, y in zip(first.flat, second.flat, strict=True))
    return np.fromiter(products, dtype=first.dtype, count=first.size).reshape(first.shape)


def _bit_count(count: Callable[[int, int], int]) -> Function:
    def compute(value: Any) -> Any:
        bits = 8 * value.dtype.itemsize
        numbers = (count(int(number) & (1 << bits) - 1, bits) for number in value.flat)
        return np.fromiter(numbers, dtype=np.int64, count=value.size).reshape(value.shape)

    return compute


def _reversed(number: int, bits: int) -> int:
    turned = int(f"{number:0{bits}b}"[::-1], 2)
    return turned - (1 << bits) if turned >> (bits - 1) else turned


FUNCTIONS: dict[str, Function] = {
    **{
        name: by_torch(name)
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
            "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv",
            "erfcx", "lgamma", "pow", "hypot", "nextafter", "copysign",
        )
    },
    **{name: by_torch(f"bessel_{name}") for name in ("j0", "j1", "y0", "y1")},
    "cyl_bessel_i0": by_torch("i0"),
    "cyl_bessel_i1": by_torch("i1"),
    "normcdf": by_torch("ndtr"),
    "normcdfinv": by_torch("ndtri"),
    "erfcinv": lambda value: by_torch("erfinv")(1 - value.astype(np.float64)).astype(value.dtype),
    "tgamma": in_double(_gamma),
    "remainder": in_double(_ieee_remainder),
    "exp10": lambda value: np.power(10.0, value.astype(np.float64)).astype(value.dtype),
    "sinpi": lambda value: np.sin(np.pi * (value.astype(np.float64) % 2)).astype(value.dtype),
    "cospi": lambda value: np.cos(np.pi * (value.astype(np.float64) % 2)).astype(value.dtype),
    "abs": np.abs, "fabs": np.abs, "llabs": np.abs,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rint": np.rint, "nearbyint": np.rint, "llrint": np.rint,
    "round": _round_half_away, "llround": _round_half_away,
    "sqrt": np.sqrt, "cbrt": np.cbrt,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "rcbrt": lambda value: 1 / np.cbrt(value),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "fmod": np.fmod,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), x + y, np.maximum(x - y, 0)),
    "fma": lambda x, y, z: (x.astype(np.float64) * y + z).astype(x.dtype),
    "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "ldexp": np.ldexp, "scalbn": np.ldexp,
    "ilogb": _ilogb,
    "logb": lambda value: np.where(value == 0, -np.inf, np.floor(np.log2(np.abs(value)))),
    "saturatef": lambda value: np.where(np.isnan(value), 0, np.clip(value, 0, 1)),
    "isnan": np.isnan, "isinf": np.isinf, "finite": np.isfinite, "isfinite": np.isfinite,
    "signbit": np.signbit,
    "fadd_rn": np.add, "fsub_rn": np.subtract, "fmul_rn": np.multiply, "fdiv_rn": np.divide,
    "dadd_rn": np.add, "dsub_rn": np.subtract, "dmul_rn": np.multiply, "ddiv_rn": np.divide,
    "fast_fdividef": np.divide,
    "fsqrt_rn": np.sqrt, "dsqrt_rn": np.sqrt,
    "frcp_rn": np.reciprocal, "drcp_rn": np.reciprocal,
    "frsqrt_rn": lambda value: 1 / np.sqrt(value),
    "double2float_rn": lambda value: value, "int2float_rn": lambda value: value,
    "int2double_rn": lambda value: value, "ll2float_rn": lambda value: value,
    "ll2double_rn": lambda value: value, "uint2double_rn": lambda value: value,
    "uint2float_rn": lambda value: value, "ull2float_rn": lambda value: value,
    "ull2double_rn": lambda value: value,
    "float2int_rn": np.rint, "float2int_rz": np.trunc, "float2int_rd": np.floor, "float2int_ru": np.ceil,
    "float2ll_rn": np.rint, "double2int_rn": np.rint, "double2ll_rn": np.rint,
    "float_as_int": _bits_of(np.int32), "float_as_uint": _bits_of(np.uint32),
    "int_as_float": _bits_of(np.float32), "uint_as_float": _bits_of(np.float32),
    "double_as_longlong": _bits_of(np.int64), "longlong_as_double": _bits_of(np.float64),
    "mulhi": _high_product, "umulhi": _high_product, "mul64hi": _high_product, "umul64hi": _high_product,
    "popc": _bit_count(lambda number, bits: number.bit_count()),
    "popcll": _bit_count(lambda number, bits: number.bit_count()),
    "clz": _bit_count(lambda number, bits: bits - number.bit_length()),
    "clzll": _bit_count(lambda number, bits: bits - number.bit_length()),
    "ffs": _bit_count(lambda number, bits: (number & -number).bit_length()),
    "ffsll": _bit_count(lambda number, bits: (number & -number).bit_length()),
    "brev": _bit_count(_reversed),
    "brevll": _bit_count(_reversed),
}  # fmt: skip
"""By what is left of a name without `__nv_` and the letter of its type. Other rounding than to the nearest is
not among them."""
