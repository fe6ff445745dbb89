"""Where generated C++ leaves the rounding to half precision out, and goes on with the value of float32.

torch/_inductor/codegen/cpp.py, `CppOverrides.to_dtype`: once a float32 value was cast to float16 or bfloat16,
`cache_dtype_convert` puts the value itself where a cast back to float32 is looked for. For example
`x - x.half().float()` becomes `tmp0 - tmp0`: eager rounds, and the difference is what rounding took. So does
a fused node that reads what another one stores as bfloat16: it reads what was computed before. Not so with
`emulate_precision_casts`, where this torch looks at it there.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "casts"

_SETTING = "emulate_precision_casts"
_CASTS = ("CppOverrides.to_dtype", "CppVecOverrides.to_dtype")


class _Rounded(NamedTuple):
    """A value that was cast: what it was before, to which dtype, and by which node."""

    before: Any
    dtype: str
    node: str


class _Recorder:
    def __init__(self, log: DecisionLog, *, by_setting: bool) -> None:
        self._log = log
        self._setting: dict[str, Operand] = {"setting": _SETTING} if by_setting else {}
        self._rounded: WeakKeyDictionary[Any, dict[str, _Rounded]] = WeakKeyDictionary()  # by kernel

    def rounded(
        self, _: TorchFrame, __: object, kernel: Any, before: Any, ___: Any, value: Any, dtype: Any
    ) -> None:
        """See that a cast back of a value will be what it was before."""
        name = str(dtype).removeprefix("torch.")
        self._rounded.setdefault(kernel, {})[str(value)] = _Rounded(before, name, _node(kernel))

    def cast(self, place: TorchFrame, result: Any, value: Any, *_: Any, **__: Any) -> None:
        """Record that a cast back gave what was there before the value was rounded."""
        kernel = sys.modules["torch._inductor.virtualized"].V.kernel
        known, node = self._rounded.get(kernel, {}).get(str(value)), _node(kernel)
        if known is not None and result is known.before and node:
            self._log.record(
                KIND, ((node,),), "rounding-left-out", "cast-back", place,
                operands={"dtype": known.dtype, "rounds": known.node, **self._setting},
                key=(node, known.dtype),
            )  # fmt: skip


def _node(kernel: Any) -> str:
    """Return the node whose code a kernel is given."""
    node = getattr(kernel, "current_node", None)
    return str(node.get_name()) if node is not None else ""


def _hook(cpp: Any, log: DecisionLog) -> None:
    cast: Any = inspect.unwrap(cpp.CppOverrides.to_dtype)
    recorder = _Recorder(log, by_setting=_SETTING in cast.__code__.co_names)
    wrap(cpp, "CppKernel.cache_dtype_convert", log.observed(recorder.rounded))
    for name in _CASTS:
        wrap(cpp, name, log.observed(recorder.cast))


HOOKS = {"torch._inductor.codegen.cpp": _hook}
