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

from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog, node_in

_CPP = "torch._inductor.codegen.cpp"
_SETTING = "emulate_precision_casts"


class _Rounded(NamedTuple):
    """A value that was cast: what it was before, to which dtype, and by which node."""

    before: Any
    dtype: str
    node: str


class Casts(Recorder):
    """Remembers for each kernel the values that were rounded, by the name that they got."""

    KIND = "casts"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._rounded: WeakKeyDictionary[Any, dict[str, _Rounded]] = WeakKeyDictionary()

    @sees(_CPP, "CppKernel.cache_dtype_convert")
    def rounded(self, _: Call, kernel: Any, before: Any, __: Any, value: Any, dtype: Any) -> None:
        """See that a cast back of a value will be what it was before."""
        name = str(dtype).removeprefix("torch.")
        self._rounded.setdefault(kernel, {})[str(value)] = _Rounded(before, name, node_in(kernel))

    @sees(_CPP, "CppOverrides.to_dtype", "CppVecOverrides.to_dtype")
    def cast(self, call: Call, value: Any, *_: Any, **__: Any) -> None:
        """Record that a cast back gave what was there before the value was rounded."""
        kernel = sys.modules["torch._inductor.virtualized"].V.kernel
        known, node = self._rounded.get(kernel, {}).get(str(value)), node_in(kernel)
        if known is not None and call.result is known.before and node:
            operands: Operands = {"dtype": known.dtype, "rounds": known.node}
            cast: Any = inspect.unwrap(sys.modules[_CPP].CppOverrides.to_dtype)
            if _SETTING in cast.__code__.co_names:
                operands["setting"] = _SETTING
            key = node, known.dtype
            self.record("rounding-left-out", Cause("cast-back", operands), call.place, (node,), key=key)
