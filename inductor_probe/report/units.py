"""Numbers the way people read them."""

from __future__ import annotations

from inductor_probe.model.ir import Dim

_KIB = 1024


def bytes_text(size: Dim | None) -> str:
    """`4.04 MiB`; a symbolic size is shown as it is, an unknown one as `?`."""
    if size is None:
        return "?"
    if isinstance(size, str):
        return f"{size} B"
    if size < _KIB:
        return f"{size} B"
    value = float(size)
    unit = ""
    for prefix in "KMGT":
        value, unit = value / _KIB, f"{prefix}iB"
        if value < _KIB:
            break
    return f"{value:.3g} {unit}"


def dims_text(dims: tuple[Dim, ...] | None) -> str:
    """`[4, 3, 345, 256]`, `?` when not known."""
    return "?" if dims is None else f"[{', '.join(str(dim) for dim in dims)}]"


def shorten(name: str, room: int) -> str:
    """Cut the middle out of a long name: both ends of a kernel's name tell kernels apart."""
    if len(name) <= room:
        return name
    head = (room - 1) // 2
    return f"{name[:head]}…{name[len(name) - (room - 1 - head) :]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 node`, `2 nodes`, `12,345 lines`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def duration(seconds: float) -> str:
    """Say a time with four digits: `12.34 us`."""
    size, unit = next((each for each in ((1.0, "s"), (1e-3, "ms")) if seconds >= each[0]), (1e-6, "us"))
    number = seconds / size
    return f"{number:.{max(0, 4 - len(str(int(number))))}f} {unit}" if number == number else "-"  # noqa: PLR0124
