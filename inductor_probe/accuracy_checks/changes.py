"""Changes of a compile that may make something right, and how they are made in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any
from unittest import mock

import torch

from inductor_probe.accuracy_checks.faults import Fault

OF_LOOPS = (
    "loop_ordering_after_fusion=False",
    "split_reductions=False",
    "constant_and_index_propagation=False",
    "inplace_buffers=False",
    "allow_buffer_reuse=False",
    "layout_optimization=False",
)
"""Settings of inductor that change how loops are made and ordered, and which memory they use."""


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
        if fault.cause:
            yield _setting(f"disabled_passes={fault.cause}")
    elif fault.layer in ("lowering", "scheduling", "codegen", "compiler"):
        if fault.operator.startswith("aten."):
            yield Change("fallback", fault.operator, partial(_fallback, fault.operator))
        if fault.layer in ("lowering", "scheduling"):
            yield from map(_setting, OF_LOOPS)


CASTS_KEPT = "emulate_precision_casts"
"""With it, code rounds where the graph casts to a narrower float, as eager does."""


def casts_kept() -> AbstractContextManager[Any]:
    """Compile so that each cast between floats rounds."""
    return _with_setting(CASTS_KEPT, True)


def _setting(text: str) -> Change:
    name, _, value = text.partition("=")
    values = {"True": True, "False": False}
    return Change("setting", f"inductor.{text}", partial(_with_setting, name, values.get(value, value)))


@contextmanager
def _with_setting(name: str, value: Any) -> Iterator[None]:
    from torch._inductor import config  # noqa: PLC0415 - not before torch is set up

    with config.patch({name: value}):
        yield


@contextmanager
def _without_decomposition(operator_name: str) -> Iterator[None]:
    compile_fx: Any = sys.modules["torch._inductor.compile_fx"]
    select = compile_fx.select_decomp_table

    def without() -> dict[Any, Any]:
        return {func: made for func, made in select().items() if _packet(func) != operator_name}

    with mock.patch.object(compile_fx, "select_decomp_table", without):
        yield


@contextmanager
def _fallback(operator_name: str) -> Iterator[None]:
    """Call an operator as a function of the library, in place of its lowering."""
    from torch._inductor import lowering  # noqa: PLC0415 - not before torch is set up

    packet: Any = reduce(getattr, operator_name.split("."), torch.ops)
    overloads = [getattr(packet, name) for name in packet.overloads()]
    made = {
        one: lowering.fallback_handler(one, add_to_fallback_set=False)
        for one in overloads
        if one in lowering.lowerings
    }
    if not made:
        raise LookupError(operator_name)
    with mock.patch.dict(lowering.lowerings, made):
        yield


def _packet(func: Any) -> str:
    return str(getattr(func, "overloadpacket", func))
