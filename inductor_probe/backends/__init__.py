"""What differs between inductor's backends on the text side: one constant each."""

from __future__ import annotations

from inductor_probe.backends.backend import Backend
from inductor_probe.backends.cpp import CPP
from inductor_probe.backends.others import OTHERS, source_text
from inductor_probe.backends.triton import TRITON

__all__ = ["BACKENDS", "Backend", "backend_called", "backend_of", "source_text"]

BACKENDS: tuple[Backend, ...] = (CPP, TRITON, *OTHERS)


def backend_of(maker: str) -> Backend | None:
    """Return the backend whose kernels `async_compile.<maker>(...)` defines."""
    return next((backend for backend in BACKENDS if maker in backend.makers), None)


def backend_called(name: str) -> Backend | None:
    """Return the backend of that name, as `Kernel.backend` says it."""
    return next((backend for backend in BACKENDS if backend.name == name), None)
