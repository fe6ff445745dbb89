"""What differs between inductor's backends on the text side: one constant each."""

from __future__ import annotations

from inductor_probe.backends.backend import Backend
from inductor_probe.backends.cpp import CPP
from inductor_probe.backends.triton import TRITON

BACKENDS: tuple[Backend, ...] = (CPP, TRITON)


def backend_of(maker: str) -> Backend | None:
    """Return the backend whose kernels `async_compile.<maker>(...)` defines."""
    return next((backend for backend in BACKENDS if maker in backend.makers), None)
