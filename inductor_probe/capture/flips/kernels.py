"""Triton kernels: whether one tile holds a reduction, and int32 or int64 indices; torch/_inductor/choices.py
and codegen/simd_kernel_features.py.

int32 is refused where torch's own check says that an index does not fit.
"""

from __future__ import annotations

import sys
from typing import Any

from inductor_probe.capture.flips.turns import Flips
from inductor_probe.capture.recorders.base import Call, sees
from inductor_probe.capture.recorders.decision_log import inductor_caller, names_of
from inductor_probe.model.decision import Outcome

_LOOPS: frozenset[Outcome] = frozenset(("persistent", "looped"))
_TYPES: frozenset[Outcome] = frozenset(("int32", "int64"))


class Persistence(Flips):
    """Turns whether one tile holds a reduction."""

    @sees("torch._inductor.choices", "InductorChoices.should_use_persistent_reduction")
    def asked(self, call: Call, features: Any, *_: Any, **__: Any) -> None:
        """Turn the answer."""
        for turn in self.turns.of("persistent", "looped"):
            names = names_of(features.scheduler_nodes())
            if not turn.is_about(names):
                continue
            wanted: Outcome = "persistent" if turn.flip.kind == "persistent" else "looped"
            if bool(call.result) is (wanted == "persistent"):
                turn.is_so = True
                continue
            turn.turned(call.place, names, "persistent" if call.result else "looped", wanted)
            self.log.turn("reduction", names, _LOOPS, turn.flip)
            call.result = wanted == "persistent"

    @sees("torch._inductor.codegen.triton", "TritonKernel.has_persistent_RBLOCK")
    def tile_known(self, call: Call, elements: Any) -> None:
        """See that no tile is known for as many elements."""
        for turn in self.turns.of("persistent") if not call.result else ():
            features = inductor_caller().f_locals.get("kernel_features")
            if features is not None and turn.is_about(names_of(features.scheduler_nodes())):
                turn.refuse("tile-not-known", elements=str(elements))


class IndexTypes(Flips):
    """Turns int32 indices to int64, or the other way round where they fit."""

    @sees("torch._inductor.codegen.simd_kernel_features", "SIMDKernelFeatures.select_index_dtype")
    def selected(self, call: Call, kernel: Any) -> None:
        """Turn the answer."""
        for turn in self.turns.of("index-dtype"):
            names = names_of(kernel.scheduler_nodes())
            if not turn.is_about(names):
                continue
            before: Outcome = "int32" if str(call.result) == "torch.int32" else "int64"
            wanted: Outcome = "int64" if turn.flip.value == "int64" else "int32"
            if before == wanted:
                turn.is_so = turn.is_so or not turn.times
            elif wanted == "int32":
                turn.refuse("indices-exceed-int32", elements=str(kernel.numel * kernel.reduction_numel))
            else:
                call.result = sys.modules["torch"].int64
                turn.turned(call.place, names, before, wanted)
                self.log.turn("index-width", names, _TYPES, turn.flip)
