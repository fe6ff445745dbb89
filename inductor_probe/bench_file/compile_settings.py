"""How the C++ of a dump has to be compiled: vectors as wide as it was written for, and its floating point."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from inductor_probe.model.code import CppFacts, KernelDetails, OutputCode
from inductor_probe.reader.fx import parse_runnable

_CPP = "torch._inductor.config.cpp."
# Settings that are not in the kernels' text and change what the compiler makes of it. Others stay as they are
# here: some name programs of the machine that the dump comes from.
_SETTINGS = ("simdlen", "enable_unsafe_math_opt_flag", "enable_floating_point_contract_flag")
_FLOAT_BITS = 32

# Before torch 2.7 kernels included a header by its place in the cache of the machine that made the dump.
_HEADER = re.compile(r'#include "[^"\n]*/[a-z0-9]{50,54}\.h"')
_MOVED = {
    "torch._inductor.codecache import AsyncCompile": "torch._inductor.async_compile import AsyncCompile",
    "at::native::div_floor_integer": "c10::div_floor_integer",
}


def compile_settings(code: OutputCode, runnable: str | None) -> str:
    """Return statements for above the kernels; empty when inductor's own choice does.

    Inductor compiles for the widest vectors of the machine it runs on. Code for narrower ones then writes
    past the ends of its buffers.
    """
    settings = dict(parse_runnable(runnable or "", Path()).settings)
    chosen = {name: value for name in _SETTINGS if _plain(value := settings.get(_CPP + name))}
    bits = vector_bits(kernel.details for kernel in code.kernels)
    if bits is not None:
        chosen.setdefault("simdlen", str(bits))
    if not chosen:
        return ""
    lines = ["import torch._inductor.config", "from torch._inductor.cpu_vec_isa import pick_vec_isa", ""]
    lines += [f"{_CPP}{name} = {value}" for name, value in chosen.items()]
    if bits is not None:
        lines += [
            "if not pick_vec_isa():",
            f'    sys.exit("this machine lacks the vectors of {bits} bits that the C++ here is written for")',
        ]
    return "\n".join(lines)


def in_todays_places(output_code: str) -> str:
    """Return the text of `output_code.py` with what it includes and imports where torch has it now.

    Nothing changes in a file of torch 2.7 or later.
    """
    for before, now in _MOVED.items():
        output_code = output_code.replace(before, now)
    return _HEADER.sub("#include <torch/csrc/inductor/cpp_prefix.h>", output_code)


def vector_bits(kernels: Iterable[KernelDetails | None]) -> int | None:
    """Return the vector width that C++ kernels are written for, in bits; None if it is unknown.

    A loop steps over as many elements as a vector has floats, whatever it loads. Some releases go further
    where all are 16-bit floats, so the shortest step counts.
    """
    widths = [
        loop.step * _FLOAT_BITS
        for kernel in kernels
        if isinstance(kernel, CppFacts)
        for nest in kernel.nests
        if nest.has_vectors
        for loop in nest.loops
        if isinstance(loop.step, int) and loop.step > 1 and not loop.within
    ]
    bits = min(widths, default=0)
    return bits if bits in (128, 256, 512) else None


def _plain(value: str | None) -> bool:
    """Tell whether a value is a number or a truth as Python writes them: it becomes part of a program."""
    try:
        return value is not None and isinstance(ast.literal_eval(value), int)
    except (ValueError, SyntaxError):
        return False
