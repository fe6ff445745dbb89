"""Triton kernels: how they are defined and launched, and what their text tells.

What reads the text is imported with the first kernel: the other backend's is of no use to most dumps.
"""

from __future__ import annotations

from inductor_probe.backends.backend import Backend, KernelText
from inductor_probe.model.code import PointerUse


def _read(source: str) -> KernelText:
    from inductor_probe.backends.triton.facts import read  # noqa: PLC0415

    return read(source)


def _pointer_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    from inductor_probe.backends.triton.accesses import pointer_uses  # noqa: PLC0415

    return pointer_uses(source, pointers)


TRITON = Backend("triton", {"triton": 1}, "run", _read, _pointer_uses)
