"""Words for the least time that a kernel can take."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.model.gpu_target import ProductType
from inductor_probe.model.kernels import KernelBound, Unbounded
from inductor_probe.report.units import bytes_text, duration, rate_text

BOUNDS_OF = "at least: bounds by the rates of {gpu} with a cold L2 cache, no times"
_WHY_NOT: Mapping[Unbounded, str] = {
    "library": "what it must read and compute is not known",
    "symbolic": "a size is symbolic, and the dump does not say what it was",
    "no-node": "no scheduler node could be linked to it",
    "nothing-sure": "what it reaches depends on values alone",
}
_PRODUCTS: Mapping[ProductType, str] = {
    "tf32": "float32 as TF32", "float64_simt": "float64 without tensor cores",
    "float32_simt": "float32 without tensor cores", "float8": "8-bit floats",
}  # fmt: skip


def bound_text(bound: KernelBound | None) -> str:
    """Return `3.1 us memory`, for a column; `-` where there is none."""
    if bound is None or bound.seconds is None:
        return "-"
    of = "memory" if bound.limit == "memory" else "sort" if bound.product == "comparison" else "flops"
    return f"{duration(bound.seconds)} {of}"


def bound_sentence(bound: KernelBound) -> str:
    """Return what the bound rests on."""
    if bound.seconds is None:
        return f"no bound: {_WHY_NOT[bound.unbounded or 'nothing-sure']}"
    parts = []
    if bound.memory_seconds is not None and bound.moved is not None:
        rate = rate_text(bound.moved / bound.memory_seconds, "B/s")
        parts.append(
            f"{duration(bound.memory_seconds)} for {bytes_text(bound.moved)} that must move, at {rate}"
        )
    if bound.arithmetic_seconds is not None and bound.flops is not None and bound.product is not None:
        how = _PRODUCTS.get(bound.product, bound.product)
        per_second = bound.flops / bound.arithmetic_seconds
        if bound.product == "comparison":
            work = f"{bound.flops:,} comparisons of a sort, at {rate_text(per_second, '/s')}"
        else:
            work = f"{rate_text(bound.flops, 'FLOP')} of {how}, at {rate_text(per_second, 'FLOP/s')}"
        parts.append(f"{duration(bound.arithmetic_seconds)} for {work}")
    if bound.limit == "arithmetic":
        parts.reverse()
    return "; ".join(parts) + f" ({bound.gpu}, cold L2 cache): a bound, no time"
