"""C++ kernels at several places of memory, so that no time rests on where one copy of the code lies.

What a core has learned of a branch it keeps by the branch's address. Where a loop has a branch that
predictors learn or not, the kernel runs at two speeds, 12 % apart, and stays in one of them for a tenth of a
second, which is all the time that a process has:

    one copy of each      process medians of a kernel with 2 % more to do: 1.02, 1.14, 0.90, 1.02, 1.15
    copies in all slots   1.02 in nearly all processes: each quad finds another copy in another state

So each slot of a ring, which has its own copies of the arguments, has its own copy of the code as well.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain, cycle
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

COPIES = 8
Kernel = Callable[..., object]


def copies_of(kernel: Any, count: int = COPIES) -> Iterator[Any]:
    """Yield a kernel, then copies of its library's, `count` in all, over and over.

    What is no function of a library of its own (a Triton kernel, a Python function) is yielded itself.
    """
    module = getattr(kernel, "__self__", None)
    path = getattr(module, "__file__", None)
    if not (isinstance(kernel, BuiltinFunctionType) and isinstance(module, ModuleType) and path):
        return cycle([kernel])
    return cycle(chain([kernel], loaded(kernel.__name__, module.__name__, Path(path), count - 1)))


def loaded(function: str, module: str, path: Path, count: int) -> Iterator[Kernel]:
    """Load copies of a library one by one; yield the function of each.

    Each is a file of its own: a loader has one place in memory for one file. The init function finds torch's
    function by an address in the environment, which inductor has set when it loaded the original
    (torch/_inductor/codecache.py, CppPythonBindingsCodeCache._load_library_inner).
    """
    for number in range(count):
        with tempfile.TemporaryDirectory(prefix="copy-") as folder:
            copy = shutil.copyfile(path, Path(folder, f"{number}-{path.name}"))
            loader = ExtensionFileLoader(module, str(copy))
            spec = spec_from_file_location(module, copy, loader=loader)
            if spec is None:
                return
            fresh = module_from_spec(spec)
            loader.exec_module(fresh)
        yield getattr(fresh, function)
