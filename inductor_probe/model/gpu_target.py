"""A GPU that inductor can generate code for on a machine that has none: its figures, each with its source."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

ProductType: TypeAlias = Literal[
    "float64", "tf32", "float16", "bfloat16", "float8", "int8", "float64_simt", "float32_simt", "comparison"
]
"""How a matrix product is computed: by tensor cores from operands of a dtype (`tf32`: float32 rounded to 19
bits; sums are float32, for `int8` int32), or without them (`simt`). `comparison`: no product, but a sort."""


class GpuTarget(Struct, frozen=True):
    """A GPU, as its driver and its maker's documents describe it.

    Attributes:
        name: as `--target` takes it. device: as the driver calls it; torch looks up peak rates by it.
        capability: compute capability, `9.0`.
        multiprocessors: how many.
        threads_per_multiprocessor, blocks_per_multiprocessor: resident at most.
        registers_per_multiprocessor: of 32 bits. shared_bytes_per_multiprocessor: shared memory.
            shared_bytes_per_block: of that, what one block may ask for.
        clock_mhz: the highest that the driver reports.
        memory_bytes, memory_clock_mhz, bus_bits: of the device's memory. l2_bytes: of the L2 cache.
        memory_gb_per_s: the memory's bandwidth, in 10^9 bytes a second.
        tflops: peak rates of matrix products without sparsity, in 10^12 operations a second; a type that is
            not there is not computed by the GPU's tensor cores.
        tensor_clock_mhz: the clock for which the rates of tensor cores are given; None for `clock_mhz`.
        sources: for each group of figures the document that they are from, and their names.
    """

    name: str
    device: str
    capability: str
    multiprocessors: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    registers_per_multiprocessor: int
    shared_bytes_per_multiprocessor: int
    shared_bytes_per_block: int
    clock_mhz: int
    memory_bytes: int
    memory_clock_mhz: int
    bus_bits: int
    l2_bytes: int
    memory_gb_per_s: float
    tflops: tuple[tuple[ProductType, float], ...]
    tensor_clock_mhz: int | None = None
    sources: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The capability as two numbers: `(9, 0)`."""
        major, _, minor = self.capability.partition(".")
        return int(major), int(minor)

    @property
    def architecture(self) -> int:
        """The capability as one number: 90."""
        major, minor = self.compute_capability
        return major * 10 + minor

    @property
    def memory_rate(self) -> float:
        """Bytes a second that the memory cannot exceed: of its bandwidth and its clock the larger.

        Both edges of the clock carry data.
        """
        return max(self.memory_gb_per_s * 1e9, 2e6 * self.memory_clock_mhz * self.bus_bits / 8)

    def product_rate(self, kind: ProductType) -> float | None:
        """Return the operations a second that products of this kind cannot exceed at the highest clock.

        Of comparisons a lane does one where it does a multiplication and an addition.
        """
        if kind == "comparison":
            plain = self.product_rate("float32_simt")
            return plain / 2 if plain else None
        rate = dict(self.tflops).get(kind)
        if rate is None:
            return None
        given_at = self.tensor_clock_mhz if self.tensor_clock_mhz and not kind.endswith("_simt") else None
        return rate * 1e12 * (max(1.0, self.clock_mhz / given_at) if given_at else 1.0)


PRODUCT_TYPES: tuple[ProductType, ...] = tuple(kind for kind in get_args(ProductType) if kind != "comparison")
"""Whose rates a target's file gives."""
FIGURES = {
    name: (float if name == "memory_gb_per_s" else int)
    for name in GpuTarget.__struct_fields__
    if name not in ("name", "device", "capability", "tflops", "sources")
}
"""The figures of a target beside its rates, with their type."""
OPTIONAL_FIGURES = ("tensor_clock_mhz",)
