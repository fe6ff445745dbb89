"""What a machine reaches, and how near each kernel comes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.model.remark import Remark

What: TypeAlias = Literal["copy", "matmul"]


@dataclass(frozen=True, slots=True)
class PeakRate:
    """The best rate that was measured.

    Attributes:
        what: `copy` (bytes read plus written a second) or `matmul` (floating-point operations a second).
        place: of a copy: `memory` (more than the caches hold), `cache` or `last cache`; of a product its
            dtype.
        size: bytes that the copy reads plus writes, or rows of the square matrices.
        rate: of the fastest call of `calls`.
    """

    what: What
    place: str
    size: int
    rate: float
    calls: int


@dataclass(frozen=True, slots=True)
class Roofline:
    """What a machine reaches: its roofline.

    Attributes:
        device: its name, `cpu` for processors.
        cache: bytes of the cache that the copy within a cache was made for: a core's second level, or the L2
            of a GPU. `last_cache`: of the last level.
    """

    torch: str
    device: str
    threads: int
    cache: int
    last_cache: int
    peaks: tuple[PeakRate, ...]
    remarks: tuple[Remark, ...] = ()

    def peak(self, what: str, place: str) -> PeakRate | None:
        """Return a measured rate, None if there is none."""
        return next((each for each in self.peaks if (each.what, each.place) == (what, place)), None)


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What a kernel has to do in one call of the graph, over all of its launches.

    Attributes:
        name: of the kernel or library function.
        moved: bytes read plus written; None where not known as a number.
        flops: counted by the operators that it computes; None where none of them registers a count.
        dtype: of the product behind `flops`, None where not known.
        indirect: its indices are loaded, so that it may reach less or more than was counted.
    """

    name: str
    moved: int | None
    flops: int | None = None
    dtype: str | None = None
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """A kernel against the roofline.

    Attributes:
        seconds: a call of the graph, over all of its launches, without launch costs.
        rate: bytes a second; `place` and `share`: the copy that it is compared to, and the part of that rate.
        flop_rate, flop_share: the same for floating-point operations a second.
        remarks: why a share is not to be believed.
    """

    work: KernelWork
    seconds: float
    rate: float | None
    place: str | None
    share: float | None
    flop_rate: float | None
    flop_share: float | None
    remarks: tuple[Remark, ...]
