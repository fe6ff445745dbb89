"""GPUs that inductor can generate code for on a machine that has none: what torch asks of each.

A figure is what the CUDA driver reports of the device, since torch decides by that:

- capability, threads, registers and shared memory of a multiprocessor follow from the compute capability
  (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability");
- multiprocessors, clocks, bus width, memory and L2 cache are of the product: see NVIDIA's white papers on the
  Turing, Ampere, Ada and Hopper architectures. Twice the memory clock times the bus width is the bandwidth.

The figures were not copied from these documents one by one. What decides code was compared with a GPU for the
h200 only (`benchmarks/simulated_gpu.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from inductor_probe.errors import NotFoundError, near_names


@dataclass(frozen=True, slots=True)
class GpuTarget:
    """A GPU, as the driver describes it.

    Attributes:
        name: as `--target` takes it. device: as the driver calls it; torch looks up peak rates by it.
        capability: compute capability, `(9, 0)`.
        multiprocessors: how many. clock_khz: highest of them.
        memory_bytes, memory_clock_khz, bus_bits: of the device's memory. l2_bytes: of the L2 cache.
    """

    name: str
    device: str
    capability: tuple[int, int]
    multiprocessors: int
    clock_khz: int
    memory_bytes: int
    memory_clock_khz: int
    bus_bits: int
    l2_bytes: int

    @property
    def architecture(self) -> int:
        """The capability as one number: 90."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def multiprocessor(self) -> Multiprocessor:
        """What one multiprocessor has."""
        return _MULTIPROCESSORS[self.capability]


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What a multiprocessor of a compute capability has: see the module's docstring.

    Attributes:
        threads: resident at most. blocks: likewise. shared_bytes: of shared memory. shared_block_bytes: of
            those, what one block may ask for.
    """

    threads: int
    blocks: int
    shared_bytes: int
    shared_block_bytes: int


REGISTERS = 65536
"""32-bit registers of a multiprocessor, of every capability in the table."""
BLOCK_THREADS = 1024
WARP_THREADS = 32
SHARED_BLOCK_BYTES = 48 << 10
"""What a block has of shared memory without asking for more."""

_MULTIPROCESSORS = {
    (7, 5): Multiprocessor(1024, 16, 64 << 10, 64 << 10),
    (8, 0): Multiprocessor(2048, 32, 164 << 10, 163 << 10),
    (8, 9): Multiprocessor(1536, 24, 100 << 10, 99 << 10),
    (9, 0): Multiprocessor(2048, 32, 228 << 10, 227 << 10),
}


def multiprocessor_of(capability: tuple[int, int]) -> Multiprocessor | None:
    """Return what a multiprocessor of a compute capability has; None where that is not in the table."""
    return _MULTIPROCESSORS.get(capability)


TARGETS = (
    GpuTarget("h200", "NVIDIA H200", (9, 0), 132, 1_980_000, 141 * 10**9, 3_201_000, 6144, 60 << 20),
    GpuTarget("h100", "NVIDIA H100 80GB HBM3", (9, 0), 132, 1_980_000, 80 << 30, 2_619_000, 5120, 50 << 20),
    GpuTarget("a100", "NVIDIA A100-SXM4-80GB", (8, 0), 108, 1_410_000, 80 << 30, 1_593_000, 5120, 40 << 20),
    GpuTarget("l4", "NVIDIA L4", (8, 9), 58, 2_040_000, 24 << 30, 6_251_000, 192, 48 << 20),
    GpuTarget(
        "rtx4090", "NVIDIA GeForce RTX 4090", (8, 9), 128, 2_520_000, 24 << 30, 10_501_000, 384, 72 << 20
    ),
    GpuTarget("t4", "Tesla T4", (7, 5), 40, 1_590_000, 16 << 30, 5_001_000, 256, 4 << 20),
)


def find_gpu_target(name: str) -> GpuTarget:
    """Return the target of that name.

    Raises:
        NotFoundError: there is none.
    """
    targets = {target.name: target for target in TARGETS}
    if name.lower() not in targets:
        raise NotFoundError(f"no target {name!r}", near_names(name.lower(), targets))
    return targets[name.lower()]
