"""Triton kernels: how they are defined and launched, and what their text tells."""

from __future__ import annotations

from inductor_probe.backends.backend import Backend
from inductor_probe.backends.triton.accesses import pointer_uses
from inductor_probe.backends.triton.facts import read

TRITON = Backend("triton", {"triton": 1}, "run", read, pointer_uses)
