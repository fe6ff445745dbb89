"""How long what a decision is about takes: the loop nests that its nodes run in, or else whole kernels.

A cause without times is ranked by bytes, and a loop nest that computes may move few: of two nests of one
kernel, one may have 1 % of the time and most of the bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from inductor_probe.model.call_parts import Side
from inductor_probe.model.profile import WORKS, NestTime, Profile

Piece = tuple[str, float]
"""What was timed (`cpp_fused_add_0`, `cpp_fused_add_0, loop nest 2`), and its seconds in a call."""


class Times(Struct, frozen=True):
    """Times of a call of a graph, in seconds.

    Attributes:
        kernels: of each kernel and library function, by name, over all launches.
        nests: of the loop nests of C++ kernels. call: of the whole call; None where it was not timed.
        libraries: of library functions that a GPU ran under names of their own, all of them together.
    """

    kernels: Mapping[str, float] = {}
    nests: tuple[NestTime, ...] = ()
    call: float | None = None
    libraries: float = 0.0

    def pieces(
        self, kernels: Sequence[str], nodes: Collection[str] = (), nest: tuple[str, int] | None = None
    ) -> tuple[Piece, ...]:
        """Return what was timed of some kernels: the loop nest, those that compute the nodes, or all of them.

        Args:
            nest: the kernel and the place of the loop nest in it, from 0, where that is known.
        """
        return tuple(piece for kernel in kernels for piece in self._of_kernel(kernel, nodes, nest))

    def _of_kernel(
        self, kernel: str, nodes: Collection[str], nest: tuple[str, int] | None
    ) -> Iterator[Piece]:
        timed = [one for one in self.nests if one.kernel == kernel and one.number is not None]
        mine = [one for one in timed if nest == (kernel, (one.number or 0) - 1)]
        mine = mine or [one for one in timed if not set(nodes).isdisjoint(one.nodes)] or timed
        if len(timed) > 1:
            yield from ((f"{kernel}, loop nest {one.number}", one.seconds) for one in mine)
        elif kernel in self.kernels:
            yield kernel, self.kernels[kernel]


def times_of(profile: Profile) -> Times:
    """Return the times of a profile: of a GPU's kernels those of the GPU, or of launching them.

    Where the GPU waits for the host in most of a call, a kernel that is faster gains nothing: what counts is
    how long the host launches it.
    """
    side: Side = "host" if profile.device == "cpu" else "device"
    parts = [part for part in profile.parts if part.side == side and part.kind in ("kernel", "library")]
    kernels = {part.name: max(part.seconds, 0.0) for part in parts}
    whole = profile.part("call", side)
    call = max(profile.call, whole.seconds if whole else 0.0)
    if side == "host":
        return Times(kernels, profile.nests, call)
    if sum(kernels.values()) < WORKS * call:
        launching: dict[str, float] = {}
        for line in profile.lines:
            if line.kind in ("launch", "library"):
                launching[line.target] = launching.get(line.target, 0.0) + max(line.seconds, 0.0)
        return Times(launching, (), call)
    others = sum(part.seconds for part in parts if part.kind == "library" and not part.nodes)
    return Times(kernels, (), call, others)
