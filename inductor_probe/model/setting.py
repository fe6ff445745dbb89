"""A setting of torch that would change what was decided: its value in a dump, and the one to try."""

from __future__ import annotations

from msgspec import Struct

CONFIG = "torch._inductor.config"


class Setting(Struct, frozen=True):
    """A setting of torch that may change a decision.

    Attributes:
        name: `torch._inductor.config.combo_kernels`.
        offered: the value that may change it; None where another number may.
        value: the present one: `default` where the dump's runnable does not set it, None without a runnable.
    """

    name: str
    offered: str | None
    value: str | None
