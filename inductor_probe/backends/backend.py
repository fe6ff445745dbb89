"""What a backend's kernels look like in `output_code.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inductor_probe.model.code import KernelArg, KernelDetails, Pairs, PointerUse, Role


@dataclass(frozen=True, slots=True)
class KernelText:
    """What the text of a kernel tells: see `Kernel`. `args` is empty without a known signature."""

    args: tuple[KernelArg, ...]
    details: KernelDetails | None
    facts: Pairs


@dataclass(frozen=True, slots=True)
class Backend:
    """One code generator of inductor.

    Attributes:
        name: `cpp` or `triton`.
        makers: methods of `async_compile` that define its kernels; the value is the position of the text
            among the arguments.
        launcher: attribute that a launch calls on the kernel (`run`), None when the kernel itself is called.
        read: reads a kernel's parameters and facts off its text. It takes any text.
        pointer_uses: the lines of a kernel that read or write through the pointers named, in order.
    """

    name: str
    makers: dict[str, int]
    launcher: str | None
    read: Callable[[str], KernelText]
    pointer_uses: Callable[[str, frozenset[str]], tuple[PointerUse, ...]]


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
