"""What a child that judges a script is asked for."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.flip import Flip
from inductor_probe.model.gpu_target import GpuTarget

Key: TypeAlias = tuple[str, str, int]
"""What tells graphs apart: compile id, kind, and which of those."""
RAISES = "INDUCTOR_PROBE_ACCURACY_RAISES"
"""A variable of the environment: what fails in judging ends the script, for tests of this package."""


class AccuracyOptions(Struct, frozen=True):
    """What is asked for.

    Attributes:
        folder: for files of the process; its parent removes it.
        settings: of torch. flips: decisions that are turned. target: the GPU that is simulated.
        seconds: of judging; later calls are judged now and then.
        vary: judge each callable with other inputs, too: random ones, sizes at the borders of vectors.
        follow: find out what is wrong. try_s: seconds for changes that may make it right.
    """

    folder: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    flips: tuple[Flip, ...] = ()
    target: GpuTarget | None = None
    seconds: float = 60.0
    vary: bool = False
    follow: bool = True
    try_s: float = 10.0

    def in_folder(
        self,
        folder: str,
        settings: tuple[tuple[str, str], ...],
        flips: tuple[Flip, ...],
        target: GpuTarget | None,
    ) -> AccuracyOptions:
        """Return the same with what a dump was made with."""
        return replace(self, folder=folder, settings=settings, flips=flips, target=target)
