"""Tells torch's C++ part of a CUDA device, which autograd and the choice of convolutions ask about.

Two objects answer for CUDA there, and a build without CUDA has neither, one with CUDA and no GPU answers that
there is no device:

- the device guard (c10/core/impl/DeviceGuardImplInterface.h), without which autograd's engine ends the
  process: torch has one that does nothing, and puts it there itself where a guard says that it has no devices
  (`ensureCUDADeviceGuardSet`). Where no guard is registered, one that says so is, for that call;
- the hooks (ATen/detail/CUDAHooksInterface.h), whose defaults say that nothing was built, and nothing is
  there. The hooks object gets a table of virtual functions of its own, a copy in which a few answers differ.
  Their positions are counted in the headers that come with torch.

Both live for the rest of the process: torch keeps pointers to them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CUDA = 1
"""DeviceType::CUDA in c10/core/DeviceType.h: the place in the registry of guards."""
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
_GUARD_FUNCTIONS = 64
"""More than the interface of guards has virtual functions."""
_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_BEFORE_TABLE = 2
"""Words before the first virtual function: the offset to the top, and type information."""
_INTERFACES = ("AcceleratorHooksInterface", "CUDAHooksInterface")
_CUDNN_VERSION = 91002

_TRUE: Callable[[], int] = lambda: 1  # noqa: E731 - one of many small answers
_FIRST: Callable[[], int] = lambda: 0  # noqa: E731
ANSWERS: tuple[tuple[str, Any, Callable[[], int]], ...] = (
    # torch/csrc/autograd/input_buffer.cpp asks for the accelerator's current stream.
    ("isBuilt", ctypes.c_bool, _TRUE),
    ("isAvailable", ctypes.c_bool, _TRUE),
    ("hasPrimaryContext", ctypes.c_bool, _TRUE),
    ("deviceCount", ctypes.c_int8, _TRUE),
    ("getCurrentDevice", ctypes.c_int8, _FIRST),
    ("setCurrentDevice", None, _FIRST),
    ("exchangeDevice", ctypes.c_int8, _FIRST),
    ("maybeExchangeDevice", ctypes.c_int8, _FIRST),
    # ATen/native/Convolution.cpp, `ConvParams::use_cudnn`: with cuDNN, channels-last inputs stay so.
    ("compiledWithCuDNN", ctypes.c_bool, _TRUE),
    ("supportsDilatedConvolutionWithCuDNN", ctypes.c_bool, _TRUE),
    ("supportsDepthwiseConvolutionWithCuDNN", ctypes.c_bool, _TRUE),
    ("supportsBFloat16ConvolutionWithCuDNNv8", ctypes.c_bool, _TRUE),
    ("versionCuDNN", ctypes.c_long, lambda: _CUDNN_VERSION),
    ("batchnormMinEpsilonCuDNN", ctypes.c_double, _FIRST),  # ATen/native/Normalization.cpp
    ("versionRuntimeCuDNN", ctypes.c_long, lambda: _CUDNN_VERSION),
)
"""Virtual functions of the hooks, what they return, and the answer."""

_kept: list[Any] = []


def set_guard(torch: Any) -> None:
    """Register torch's guard that does nothing for CUDA.

    Raises:
        AttributeError, OSError: this torch has no such registry.
    """
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (_CUDA + 1)).in_dll(library, _GUARDS)
    if not guards[_CUDA]:
        no_devices = ctypes.CFUNCTYPE(ctypes.c_int64)(_FIRST)
        address = ctypes.cast(no_devices, ctypes.c_void_p).value
        table = (ctypes.c_void_p * _GUARD_FUNCTIONS)(*[address] * _GUARD_FUNCTIONS)
        guard = ctypes.c_void_p(ctypes.addressof(table))
        _kept.extend((no_devices, table, guard))
        guards[_CUDA] = ctypes.addressof(guard)
    torch._C._ensureCUDADeviceGuardSet()


def set_hooks(torch: Any) -> None:
    """Let torch's CUDA hooks answer as those of a machine with one GPU do.

    Raises:
        AttributeError, OSError, ValueError: this torch has no such hooks, or no headers of them.
    """
    folder = Path(torch.__file__).parent
    positions = virtual_functions(
        [(folder / f"include/ATen/detail/{name}.h").read_text(encoding="utf-8") for name in _INTERFACES]
    )
    hooks_of = getattr(ctypes.CDLL(str(folder / "lib" / "libtorch_cpu.so")), _HOOKS)
    hooks_of.restype = ctypes.c_void_p
    hooks = ctypes.c_void_p.from_address(hooks_of())
    words = ctypes.c_void_p * (len(positions) + _BEFORE_TABLE)
    before = ctypes.sizeof(ctypes.c_void_p) * _BEFORE_TABLE
    if hooks.value is None:
        raise ValueError("torch has no CUDA hooks")
    table = words(*words.from_address(hooks.value - before))
    for name, kind, answer in ANSWERS:
        function = ctypes.CFUNCTYPE(kind)(answer)
        table[positions.index(name) + _BEFORE_TABLE] = ctypes.cast(function, ctypes.c_void_p).value
        _kept.append(function)
    _kept.append(table)
    hooks.value = ctypes.addressof(table) + before


def virtual_functions(headers: list[str]) -> list[str]:
    """Return the virtual functions of a class in the order of its table, from its bases' headers and its own.

    A destructor has two entries (Itanium C++ ABI, 2.5.2); a function that overrides another has that one's.
    """
    names: list[str] = []
    for header in headers:
        text = re.sub(r"^#ifdef USE_ROCM$.*?^#endif", "", header, flags=re.DOTALL | re.MULTILINE)
        body = text[text.index("struct TORCH_API") :]
        for name in re.findall(r"^  virtual [^;{(]*?(~?\w+)\(", body[: body.index("\n};")], re.MULTILINE):
            names += [name] * (2 if name.startswith("~") else 1)
    return names
