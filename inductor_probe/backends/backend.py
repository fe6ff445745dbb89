"""What a backend's kernels look like in `output_code.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from inductor_probe.model.code import KernelArg, Role


@dataclass(frozen=True, slots=True)
class Backend:
    """One code generator of inductor.

    Attributes:
        name: `cpp` or `triton`.
        makers: methods of `async_compile` that define its kernels; the value is the position of the text
            among the arguments.
        launcher: attribute that a launch calls on the kernel (`run`), None when the kernel itself is called.
        parameters: reads the kernel's parameters off its text; empty when the text has no known signature.
        facts: reads facts worth showing off its text, in display order.
    """

    name: str
    makers: dict[str, int]
    launcher: str | None
    parameters: Callable[[str], tuple[KernelArg, ...]]
    facts: Callable[[str], tuple[tuple[str, str], ...]]


def signature_parameters(pattern: re.Pattern[str], source: str) -> tuple[str, ...]:
    """Return the texts between the commas of the group `params` of a signature; none when there is none."""
    match = pattern.search(source)
    texts = match["params"].split(",") if match else []
    return tuple(" ".join(text.split()) for text in texts if text.strip())


def role_of(name: str) -> Role:
    """Tell an argument's role from the name inductor gives it; both backends use the same names."""
    for prefix, role in _ROLES:
        if name.startswith(prefix):
            return role
    return "size"


_ROLES: tuple[tuple[str, Role], ...] = (
    ("in_out_ptr", "inout"),
    ("in_ptr", "in"),
    ("out_ptr", "out"),
    ("arg_", "in"),  # inputs of Triton templates: arg_A, arg_B
    ("ws_ptr", "workspace"),
    ("workspace", "workspace"),
)
