"""A user's decomposition in the place of torch's own, for as long as this process lives.

Two tables of torch decide what an operator becomes before inductor lowers it, and the first hides the second:

1. `OpOverload.py_kernels`: what `py_impl(DispatchKey.CompositeImplicitAutograd)` and `Autograd` register in
   `torch/_decomp/decompositions.py`. AOTAutograd traces with Python's dispatcher, which asks here. So
   `aten.upsample_bilinear2d.vec` never arrives anywhere else.
2. `torch._inductor.decomposition.decompositions`, the table that inductor gives to AOTAutograd.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.harness.user_file import import_file
from inductor_probe.op_checks.graphs import OpRecorder, overloads_named, overloads_of

_HIDING = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA")


class Decomposition:
    """A function that stands for overloads of an operator; counts its calls."""

    def __init__(self, function: Callable[..., Any], overloads: Sequence[Any]) -> None:
        self.overloads, self.calls = tuple(overloads), 0
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decompose one call."""
        self.calls += 1
        return self._function(*args, **kwargs)

    def install(self) -> None:
        """Put it into both tables."""
        from torch._inductor import decomposition  # noqa: PLC0415 - inductor takes seconds to import

        for overload in self.overloads:
            decomposition.decompositions[overload] = self
            for name in _HIDING:
                key = getattr(torch._C.DispatchKey, name)
                if key in getattr(overload, "py_kernels", {}):
                    overload.py_kernels[key] = self
            getattr(overload, "_dispatch_cache", {}).clear()
        for table in vars(decomposition).values():  # that torch makes of it once
            if callable(getattr(table, "cache_clear", None)):
                table.cache_clear()


def load(place: str) -> Callable[..., Any]:
    """Return the function that `module:function` or `file.py:function` names; importing it runs its module.

    Raises:
        ProbeError: there is no such module, or no such function in it.
    """
    module_name, _, name = place.rpartition(":")
    is_file = module_name.endswith(".py")
    if is_file and not Path(module_name).is_file():
        raise ProbeError(f"--decomp {place}: there is no file {Path(module_name).absolute()}")
    try:
        if not is_file:
            sys.path.insert(0, str(Path.cwd()))
        module = import_file(Path(module_name)) if is_file else importlib.import_module(module_name)
    except Exception as error:  # whatever importing a user's module raises
        raise ProbeError(
            f"--decomp {place}: importing {module_name} raises {type(error).__name__}: {error}",
            "write MODULE:FUNCTION or FILE.py:FUNCTION",
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise ProbeError(
            f"--decomp {place}: {module_name} has no function {name}", near_names(name, functions)
        )
    return function  # type: ignore[no-any-return]  # callable, as was asked


def meant_by(function: Callable[..., Any], run: Callable[[], object]) -> list[Any]:
    """Return the overloads that a decomposition fits, of the operators that `run` calls.

    They are those whose parameters have the names of the function's, in its order; the first parameter may
    have another name (`self`, `input`). `upsample_bilinear2d(input, output_size, align_corners,
    scale_factors)` fits the overload `vec`, and neither `default` nor `out`.

    Raises:
        ProbeError: it fits none, or those of several operators.
    """
    with OpRecorder() as recorder, torch.no_grad():
        run()
    packets = dict.fromkeys(overloads_named(call.op)[0].overloadpacket for call in recorder.calls)
    names = list(inspect.signature(function).parameters)
    fitting: dict[Any, list[Any]] = {}
    for packet in packets:
        for overload in overloads_of(packet):
            parameters = [argument.name for argument in overload._schema.arguments]
            if len(parameters) == len(names) and parameters[1:] == names[1:]:
                fitting.setdefault(packet, []).append(overload)
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    overloads = [str(overload) for packet in packets for overload in overloads_of(packet)]
    raise ProbeError(
        f"which operator does {function.__name__}({', '.join(names)}) decompose? It fits "
        + ("several that are called: " if fitting else "none of those that are called: ")
        + ", ".join(str(packet) for packet in (fitting or packets)),
        f"name the overload, --decomp OVERLOAD=MODULE:FUNCTION, of {', '.join(overloads[:12])}",
    )
