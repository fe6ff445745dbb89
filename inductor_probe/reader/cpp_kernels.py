"""The kernels in the text of a C++ wrapper, and the functions that launch those of Triton."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from inductor_probe.backends import CPP, TRITON
from inductor_probe.backends.cpp import SIGNATURE
from inductor_probe.model.code import Kernel
from inductor_probe.model.span import Span

_PREFIX = "#include <torch/csrc/inductor/cpp_prefix.h>"
# DeferredTritonCallWrapper.generate; `noinline` where kernels are compiled as they are first launched.
_LAUNCHER = re.compile(
    r"static (?:inline|__attribute__\(\(noinline\)\)) void (?P<name>call_(?P<kernel>\w+))\("
)
_SOURCE = re.compile(r'static const char\* (?P<kernel>\w+)_source = R"TRITON\(')


def cpp_kernels(lines: Sequence[str], path: Path, first: int) -> dict[str, Kernel]:
    """Return the kernels behind the wrapper: from `extern "C" void cpp_fused_add_0(` to its last brace."""
    kernels: dict[str, Kernel] = {}
    starts = [number for number, line in enumerate(lines) if line.startswith('extern "C"')]
    for start in starts:
        near = range(start, min(start + 400, len(lines)))
        body = next((n for n in near if lines[n][-1:] in ("{", ";")), None)
        if body is None or not lines[body].startswith("{"):
            continue  # a declaration, or the C interface of AOTInductor
        end = next((n for n in range(body, len(lines)) if lines[n].startswith("}")), len(lines) - 1)
        begin = max((n for n in range(start) if lines[n].startswith((_PREFIX, "}"))), default=start)
        begin = begin if lines[begin].startswith(_PREFIX) else start
        source = "\n".join(lines[begin : end + 1]) + "\n"
        if match := SIGNATURE.search("\n".join(lines[start:body])):
            read = CPP.read(source)
            span = Span(path, first + begin, first + end)
            kernels[match["name"]] = Kernel(match["name"], CPP.name, source, read.args, span, read.details)
    return kernels


def quoted_triton_kernels(lines: Sequence[str], path: Path, first: int) -> dict[str, Kernel]:
    """Return the kernels that stand in comments of their launchers (AOTInductor), or in texts above them:
    `async_compile.triton('triton_poi_fused_add_0', '''`. A kernel of the user's has the launcher's name.
    """
    kernels: dict[str, Kernel] = {}
    named = None
    opening = re.compile(r"(?P<indent>\s*)async_compile\.triton\('(?P<name>\w+)', (?P<quotes>'''|\"\"\")")
    for number, line in enumerate(lines):
        if named_here := _LAUNCHER.match(line) or _SOURCE.fullmatch(line):
            named = named_here["kernel"]
        if not (match := opening.fullmatch(line)):
            continue
        indent, close = match["indent"], match["indent"] + match["quotes"]
        end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith(close)), None)
        if end is None:
            continue
        source = "\n".join(["", *(text.removeprefix(indent) for text in lines[number + 1 : end]), ""])
        read = TRITON.read(source)
        span = Span(path, first + number, first + end)
        name, named = named or match["name"], None
        kernels[name] = Kernel(name, TRITON.name, source, read.args, span, read.details)
    return kernels


def launchers(lines: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return for each `call_triton_poi_0` its kernel, and how many arguments are the kernel's.

    DeferredTritonCallWrapper.generate: those of the kernel come first, then `int32_t device_idx_`.
    """
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(lines):
        if match := _LAUNCHER.match(line):
            count = 0
            for param in lines[number + 1 : number + 500]:
                if param.lstrip().startswith(("int32_t device_idx_", ")")):
                    break
                count += 1
            found[match["name"]] = (match["kernel"], count)
    return found
