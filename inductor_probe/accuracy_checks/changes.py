"""Changes of a compile that may make something right, and how they are made in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import torch

from inductor_probe.accuracy_checks.faults import Fault, operator_called
from inductor_probe.capture.recorders.rewrites import pattern_name
from inductor_probe.capture.torch_settings import value_of

OF_LOOPS = (
    "loop_ordering_after_fusion=False",
    "split_reductions=False",
    "constant_and_index_propagation=False",
    "inplace_buffers=False",
    "allow_buffer_reuse=False",
    "layout_optimization=False",
)
"""Settings of inductor that change how loops are made and ordered, and which memory they use."""
OF_SCHEDULER = (
    "max_fusion_size=1",
    "reorder_for_peak_memory=False",
    "loop_ordering_after_fusion=False",
    "inplace_buffers=False",
    "allow_buffer_reuse=False",
)
"""Those that change what is fused, in which order, in which memory: for code that is right alone."""


@dataclass
class Change:
    """A change, by its kind and name (see `model/accuracy.py`); `applied` makes it for a while."""

    kind: str
    name: str
    applied: Callable[[], AbstractContextManager[Any]]


def changes_for(fault: Fault) -> Iterator[Change]:
    """Yield what may make a fault right, the most likely first."""
    if fault.layer == "decomposition":
        yield Change("decomposition", fault.operator, partial(_without_decomposition, fault.operator))
    elif not fault.operator:
        yield from map(_setting, ("freezing=False", *OF_LOOPS, "max_fusion_size=1"))
    elif fault.layer == "pass":
        if fault.is_pattern:
            yield Change("pattern", fault.cause, partial(_without_pattern, fault.cause))
        elif fault.cause:
            yield _setting(f"disabled_passes={fault.cause}")
    elif fault.layer in ("lowering", "scheduling", "codegen", "compiler"):
        if fault.layer == "codegen" and fault.right_alone:
            yield from map(_setting, OF_SCHEDULER)
        if fault.operator.startswith("aten."):
            yield Change("fallback", fault.operator, partial(_fallback, fault.operator))
        if fault.layer in ("lowering", "scheduling"):
            yield from map(_setting, OF_LOOPS)


CASTS_KEPT = "emulate_precision_casts"
"""With it, code rounds where the graph casts to a narrower float, as eager does."""


SCALAR, UNFUSED = "inductor.cpp.simdlen=1", "inductor.max_fusion_size=1"
UNOPTIMISED = {"cpu": "inductor.aot_inductor.debug_compile=True", "cuda": "DISABLE_PTXAS_OPT=1"}
"""Without optimisation: `-O0` (torch/_inductor/cpp_builder.py), and ptxas so (triton/knobs.py)."""


def of_kernels(operator_name: str, device: str) -> Iterator[Change]:
    """Yield what may make the code of a kernel right, whatever else is wrong in the program."""
    if device == "cpu":
        yield _setting(SCALAR.removeprefix("inductor."))
        yield _setting(UNOPTIMISED["cpu"].removeprefix("inductor."))
    elif device in UNOPTIMISED and "TRITON_INTERPRET" not in os.environ:  # which compiles nothing
        name, _, value = UNOPTIMISED[device].partition("=")
        yield Change("variable", UNOPTIMISED[device], partial(_with_variable, name, value))
    yield _setting(UNFUSED.removeprefix("inductor."))
    if operator_name.startswith("aten."):
        yield Change("fallback", operator_name, partial(_fallback, operator_name))


@contextmanager
def _with_variable(name: str, value: str) -> Iterator[None]:
    with mock.patch.dict(os.environ, {name: value}):
        yield


def casts_kept() -> AbstractContextManager[Any]:
    """Compile so that each cast between floats rounds."""
    return _with_setting(CASTS_KEPT, True)


def _setting(text: str) -> Change:
    name, _, value = text.partition("=")
    return Change("setting", f"inductor.{text}", partial(_with_setting, name, value_of(value)))


@contextmanager
def _with_setting(name: str, value: Any) -> Iterator[None]:
    from torch._inductor import config  # noqa: PLC0415 - not before torch is set up

    if name not in config._config:
        raise LookupError(name)
    with config.patch({name: value}):
        yield


@contextmanager
def _without_pattern(name: str) -> Iterator[None]:
    """Leave what a pattern matches as it is."""
    from torch._inductor import pattern_matcher  # noqa: PLC0415 - not before torch is set up

    def without(apply: Callable[..., None]) -> Callable[..., None]:
        return lambda entry, *args: apply(entry, *args) if pattern_name(entry) != name else None

    with ExitStack() as stack:
        for kind in ("Graph", "Lowering", "Replacement"):
            entry = getattr(pattern_matcher, f"{kind}PatternEntry")
            stack.enter_context(mock.patch.object(entry, "apply", without(entry.apply)))
        yield


@contextmanager
def _without_decomposition(operator_name: str) -> Iterator[None]:
    compile_fx: Any = sys.modules["torch._inductor.compile_fx"]
    select = compile_fx.select_decomp_table

    def without() -> dict[Any, Any]:
        return {func: made for func, made in select().items() if _packet(func) != operator_name}

    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    kernels = [(one, dict(one.py_kernels)) for one in _overloads(operator_name)]
    try:
        for overload, _ in kernels:
            for key in keys:
                overload.py_kernels.pop(key, None)
            overload._dispatch_cache.clear()
        with mock.patch.object(compile_fx, "select_decomp_table", without), mock.patch.dict(os.environ):
            # With CI set, make_fallback (torch/_inductor/lowering.py) refuses what has a decomposition.
            os.environ.pop("CI", None)
            yield
    finally:
        for overload, had in kernels:
            overload.py_kernels.update(had)
            overload._dispatch_cache.clear()


@contextmanager
def _fallback(operator_name: str) -> Iterator[None]:
    """Call an operator as a function of the library, in place of its lowering."""
    from torch._inductor import lowering  # noqa: PLC0415 - not before torch is set up

    overloads = _overloads(operator_name)
    made = {
        one: lowering.fallback_handler(one, add_to_fallback_set=False)
        for one in overloads
        if one in lowering.lowerings
    }
    if not made:
        raise LookupError(operator_name)
    with mock.patch.dict(lowering.lowerings, made):
        yield


def _overloads(operator_name: str) -> list[Any]:
    packet = operator_called(operator_name)
    return [getattr(packet, name) for name in packet.overloads()]


def _packet(func: Any) -> str:
    return str(getattr(func, "overloadpacket", func))
