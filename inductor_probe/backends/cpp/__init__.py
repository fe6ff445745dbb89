"""C++ kernels: how they are defined and launched, and what their text tells."""

from __future__ import annotations

from inductor_probe.backends.backend import Backend
from inductor_probe.backends.cpp.accesses import pointer_uses
from inductor_probe.backends.cpp.facts import read

CPP = Backend("cpp", {"cpp": 0, "cpp_pybinding": 1}, None, read, pointer_uses)
