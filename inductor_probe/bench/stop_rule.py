"""The stop rule of an experiment: in how many fresh processes sides are timed, and for how long in each.

Three processes give a verdict; more are asked while those before differ so much that the interval is wide,
up to nine, and never because of where it lies: a chance would be followed until it looks like a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from inductor_probe.harness.budget import MORE_PROCESSES, PROCESSES, share_of
from inductor_probe.model.comparison import Comparison

_WITH_MORE = 1.15
"""Times the budget: what more processes than three may take in all."""


class StopRule(Struct, frozen=True):
    """When enough was measured.

    Attributes:
        budget: seconds of timing in all processes. margin: what differs by less is the same time.
        processes: how many were asked for; None: three, and more while they differ, `most` at most.
        verdict_is_enough: a verdict ends it, however wide its interval, where a process costs more than
            it measures.
    """

    budget: float
    margin: float
    processes: int | None = None
    most: int = MORE_PROCESSES
    verdict_is_enough: bool = False

    @property
    def fewest(self) -> int:
        """How many processes there are, unless one fails."""
        return self.processes or PROCESSES

    def share(self, number: int) -> float:
        """Return how many seconds process `number`, the first is 0, times its sides."""
        return share_of(self.budget, number, self.processes)

    def enough(self, count: int, comparisons: Iterable[Comparison], spent: float = 0.0) -> bool:
        """Tell whether no process is needed after `count`.

        Args:
            comparisons: what those measured says by now. spent: seconds, with one more like the last.
        """
        if count >= (self.processes or self.most):
            return True
        if count < self.fewest:
            return False
        return spent > _WITH_MORE * self.budget or not any(map(self._is_open, comparisons))

    def _is_open(self, comparison: Comparison) -> bool:
        decided = self.verdict_is_enough and comparison.verdict in ("FASTER", "SLOWER", "SAME")
        return not decided and wants_more(comparison, self.margin)


def wants_more(comparison: Comparison, margin: float) -> bool:
    """Tell whether more processes should be asked: they differ so much that the interval is wide.

    Wide is half of the margin to each side, or a quarter of a ratio that is far from it.
    """
    if comparison.verdict == "INVALID":
        return False
    half = (math.log(comparison.high) - math.log(comparison.low)) / 2
    return half > max(math.log1p(margin) / 2, abs(math.log(comparison.ratio)) / 4)
