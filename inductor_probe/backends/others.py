"""Kernels of backends that are shown, but whose text is not read further."""

from __future__ import annotations

import ast

from inductor_probe.backends.backend import Backend, KernelText
from inductor_probe.model.code import PointerUse

_MAKERS = (
    "halide", "metal", "cutlass", "cuda", "rocm", "xpu", "cutedsl", "pallas", "nv_universal_gemm",
    "multi_kernel", "size_hint_multi_kernel",
)  # fmt: skip


def _read(source: str) -> KernelText:
    return KernelText((), None, (("lines", str(source.count("\n"))),) if source else ())


def _no_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    return ()


OTHERS = tuple(Backend(maker, {maker: 0}, "run", _read, _no_uses) for maker in _MAKERS)


def source_text(call: ast.Call) -> str:
    """Return the longest text among the arguments of a maker: a kernel's source is longer than its name."""
    texts = [
        argument.value
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return max(texts, key=len, default="")
