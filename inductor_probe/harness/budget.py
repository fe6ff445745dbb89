"""The budget: what it covers, how it is dealt out, and how it is kept. Nothing here needs torch.

`--budget` is how long measuring takes, within 20 %. It covers all that runs what is measured, or
copies its data: the profile of a call, recording what kernels are passed, rings of inputs, calibration,
warm-up, quads, overheads, the roofline. It does not cover what has to be done once whatever is measured
after it: importing, compiling (kernels, empty kernels), checking, setting up the clock of a GPU.

It is dealt out in three parts:

    0.75  comparisons; all of it where only one kernel is measured, which has no overheads and no roofline
    0.15  overheads, in one process
    0.1   the roofline, in a process of its own

Two fifths of all go to the call of the user's program where that can be run (`OWN`),

and the first part among processes: a quarter for each of the first three, less for each that comes after
them since those differ (`share_of`). Where calls are so long that a share is not enough for one of each
side, there are fewer processes (`processes_within`), fewer comparisons (`Budget.left` against what one takes
at least), and no overheads, whose part the comparisons have then. One thing is always measured: one call of
each side of the first comparison; of a profile three rounds of a call as it is and one with clocks. Where
that takes longer than its part of the budget, a remark says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

COMPARISONS, OVERHEADS, ROOFLINE = 0.75, 0.15, 0.1
OWN = 0.4  # of all: the call of the user's program against eager, in processes of its own
PROCESSES = 3  # fewer give no verdict
MORE_PROCESSES = 9  # where the first ones differ: Student's quantile falls from 4.3 to 2.8, a quarter trimmed
ALLOWED = 1.2  # of the budget may be used so that there are `PROCESSES`, or one more comparison
LONG_S = 0.05  # calls of which a quad takes 0.2 s: each of them is counted
OVERHEAD_CALLS = 60  # that a table of overheads takes at least
GUARD_EVERY = 6  # quads: in one of them the baseline is timed against itself
PART_S = 0.006  # that each launch adds to it, however short


class Budget:
    """The seconds that a process may measure, and how many of them it has used since it was made."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._paused = 0.0
        self._begin = time.perf_counter()

    @property
    def spent(self) -> float:
        """Return the seconds measured so far."""
        return time.perf_counter() - self._begin - self._paused

    @property
    def left(self) -> float:
        """Return the seconds that are left; negative where more was used than there was."""
        return self.seconds - self.spent

    def rounds(self, fewest: int) -> Iterator[int]:
        """Yield 0, 1, ...: `fewest` rounds, and more while at least half of one like the last is left."""
        number, last = 0, 0.0
        while number < fewest or self.left > last / 2:
            left = self.left
            yield number
            number, last = number + 1, left - self.left

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what is done meanwhile: it compiles, or sets up a clock."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._paused += time.perf_counter() - begin


def share_of(budget: float, number: int, processes: int | None = None) -> float:
    """Return the seconds of a budget that process `number` (the first is 0) has for its comparisons.

    The first three have a quarter each, the others 0.075: three take 0.75 of the budget, and all nine 1.2 of
    it. `processes`: a number that was asked for; they share it alike.
    """
    if processes is not None:
        return budget / processes
    return budget * (0.25 if number < PROCESSES else 0.075)


def processes_within(seconds: float, process_s: float, processes: int = PROCESSES) -> int | None:
    """Return how many processes `seconds` are enough for, at least one; None if for `processes` and more.

    `process_s` is what one takes at least. A call of 0.9 s is compared with a copy of it, after a call that
    records the arguments of its kernel: 2.7 s. 7 s are enough for three such processes (8.1 s), as a fifth
    more is allowed; 4.8 s are enough for two, and one is there always.
    """
    if ALLOWED * seconds >= processes * process_s:
        return None if seconds >= 2 * processes * process_s else processes
    return max(1, int(ALLOWED * seconds / process_s))


def overheads_fit(call_s: float, launches: int, seconds: float) -> bool:
    """Tell whether a table of overheads of a call with so many launches can be had in about `seconds`."""
    return OVERHEAD_CALLS * call_s + PART_S * launches <= max(2 * seconds, LONG_S)


def width(scores: list[float]) -> float:
    """Return the width of the 95 % interval of their median, from its order statistics; of few, infinity.

    The number below the median of n is binomial, so ranks n/2 +- 0.98 sqrt(n) hold it. Of 60 scores these are
    the 23rd and the 39th.
    """
    ranked, reach = sorted(scores), 0.98 * math.sqrt(len(scores))
    low, high = math.floor(len(ranked) / 2 - reach), math.ceil(len(ranked) / 2 + reach)
    return ranked[high] - ranked[low] if low >= 0 and high < len(ranked) else math.inf
