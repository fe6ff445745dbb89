"""What differs between inductor's code generators in `output_code.py`: a `Backend` each.

The file that reads the text of a backend's kernels (`cpp.py`, `triton.py`) is imported with the first of
them: most dumps have kernels of one backend.
"""

from __future__ import annotations

import ast
from importlib import import_module
from typing import Any

from msgspec import Struct

from inductor_probe.model.code import KernelArg, KernelDetails, PointerUse, Role


class KernelText(Struct, frozen=True):
    """What the text of a kernel says: see `Kernel`. `args` is empty without a known signature."""

    args: tuple[KernelArg, ...]
    details: KernelDetails | None


class Backend(Struct, frozen=True):
    """One code generator of inductor.

    Attributes:
        name: as `Kernel.backend` has it: `cpp`, `triton`.
        makers: methods of `async_compile` that define its kernels (torch/_inductor/async_compile.py).
        module: the module of this package that reads its kernels, or their parameters alone (`signatures`);
            None when their text is only shown.
    """

    name: str
    makers: tuple[str, ...]
    module: str | None = None

    def read(self, source: str) -> KernelText:
        """Read a kernel's parameters and facts off its text. Any text is taken."""
        if self.module is None:
            return KernelText((), None)
        text: KernelText = self._reader().read(source)
        return text

    def pointer_uses(self, source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
        """Return the lines of a kernel that read or write through `pointers`, in order."""
        if self.module is None:
            return ()
        uses: tuple[PointerUse, ...] = self._reader().pointer_uses(source, pointers)
        return uses

    def _reader(self) -> Any:
        return import_module(f"{__name__}.{self.module}")


CPP = Backend("cpp", ("cpp", "cpp_pybinding"), "cpp")  # `cpp`: until torch 2.2
TRITON = Backend("triton", ("triton",), "triton")
METAL = Backend("metal", ("metal",), "signatures")
PALLAS = Backend("pallas", ("pallas",), "signatures")
_ONLY_SHOWN = (
    "halide", "cutlass", "cuda", "rocm", "xpu", "cutedsl", "nv_universal_gemm", "multi_kernel",
    "size_hint_multi_kernel",
)  # fmt: skip
BACKENDS = (CPP, TRITON, METAL, PALLAS, *(Backend(maker, (maker,)) for maker in _ONLY_SHOWN))


def backend_of(maker: str) -> Backend | None:
    """Return the backend whose kernels `async_compile.<maker>(...)` defines."""
    return next((backend for backend in BACKENDS if maker in backend.makers), None)


def backend_called(name: str) -> Backend | None:
    """Return the backend of that name, as `Kernel.backend` says it."""
    return next((backend for backend in BACKENDS if backend.name == name), None)


def source_text(call: ast.Call) -> str:
    """Return the longest text among the arguments of a maker: a kernel's source is longer than its name."""
    texts = [
        argument.value
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return max(texts, key=len, default="")


# torch/_inductor/codegen/common.py, KernelArgs: C++ and Triton kernels get the same names from it.
_ROLES: tuple[tuple[str, Role], ...] = (
    ("in_out_ptr", "inout"),
    ("in_ptr", "in"),
    ("out_ptr", "out"),
    ("arg_", "in"),  # inputs of Triton templates, arg_A: select_algorithm.py, TritonTemplateKernel.def_kernel
    ("ws_ptr", "workspace"),
    ("workspace", "workspace"),
)


def role_of(name: str) -> Role:
    """Return an argument's role by the name inductor gives it: `in_ptr0` is `in`, `ks0` is `size`."""
    return next((role for prefix, role in _ROLES if name.startswith(prefix)), "size")
