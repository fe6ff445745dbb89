"""Empty kernels: what calling a C++ kernel costs that does nothing, passed the same arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config
from torch._inductor.async_compile import AsyncCompile

from inductor_probe.harness.launches import Launch


def signature(launch: Launch) -> str:
    """Return a letter for each argument: tensor, integer or float, or a raw pointer."""
    return "".join(
        ("P" if at in launch.pointers else "p")
        if isinstance(arg, torch.Tensor)
        else ("f" if isinstance(arg, float) else "i")
        for at, arg in enumerate(launch.args)
    )


def argument(letter: str) -> Any:
    """Return something to pass for a letter of a signature."""
    return {"p": torch.empty(1), "P": ctypes.c_void_p(), "i": 1, "f": 1.0}[letter]


def empty_kernel(letters: str) -> Callable[..., object]:
    """Compile a C++ kernel that does nothing, with inductor's own way of passing arguments."""
    types = [{"p": "void*", "P": "void*", "i": "int64_t", "f": "float"}[letter] for letter in letters]
    arguments = ", ".join(f"{each} a{at}" for at, each in enumerate(types))
    source = f'#include <cstdint>\nextern "C" void kernel({arguments}) {{}}\n'
    with torch._inductor.config.patch(compile_threads=1):  # here: its compile workers were stopped
        compiler = AsyncCompile()
        if "P" in letters:
            by_pointers: Callable[..., object] = compiler.cpp(source)
            return by_pointers
        kernel: Callable[..., object] = compiler.cpp_pybinding(types, source)
    return kernel
