"""Triton kernels: whether one tile holds a reduction, and int32 or int64 indices; torch/_inductor/choices.py
and codegen/simd_kernel_features.py.

int32 is refused where torch's own check says that an index does not fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from inductor_probe.capture.flips.turns import Turns
from inductor_probe.capture.recorders.decision_log import inductor_caller, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import Outcome

_LOOPS: frozenset[Outcome] = frozenset(("persistent", "looped"))
_TYPES: frozenset[Outcome] = frozenset(("int32", "int64"))


def _names(features: Any) -> tuple[str, ...]:
    return tuple(node.get_name() for node in features.scheduler_nodes())


def _hook_persistent(choices: Any, turns: Turns) -> None:
    def around(ask: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(ask)

        def ask_or_turn(features: Any, *args: Any, **kwargs: Any) -> Any:
            answer = ask(features, *args, **kwargs)
            for turn in turns.of("persistent", "looped"):
                names = _names(features)
                if not turn.is_about(names):
                    continue
                wanted: Outcome = "persistent" if turn.flip.kind == "persistent" else "looped"
                if bool(answer) is (wanted == "persistent"):
                    turn.is_so = True
                    continue
                turn.turned(place, names, "persistent" if answer else "looped", wanted)
                turns.log.turn("reduction", names, _LOOPS, turn.flip)
                answer = wanted == "persistent"
            return answer

        return ask_or_turn

    wrap(choices, "InductorChoices.should_use_persistent_reduction", around)


def _hook_tile(triton: Any, turns: Turns) -> None:
    def around(ask: Callable[..., Any]) -> Callable[..., Any]:
        def ask_and_see(elements: Any) -> Any:
            answer = ask(elements)
            if not answer:
                for turn in turns.of("persistent"):
                    features = inductor_caller().f_locals.get("kernel_features")
                    if features is not None and turn.is_about(_names(features)):
                        turn.refuse("tile-not-known", elements=str(elements))
            return answer

        return ask_and_see

    wrap(triton, "TritonKernel.has_persistent_RBLOCK", around)


def _hook_index(features: Any, turns: Turns) -> None:
    def around(select: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(select)

        def select_or_turn(kernel: Any) -> Any:
            answer = select(kernel)
            for turn in turns.of("index-dtype"):
                names = _names(kernel)
                if not turn.is_about(names):
                    continue
                before: Outcome = "int32" if str(answer) == "torch.int32" else "int64"
                wanted: Outcome = "int64" if turn.flip.value == "int64" else "int32"
                if before == wanted:
                    turn.is_so = turn.is_so or not turn.times
                elif wanted == "int32":
                    turn.refuse("indices-exceed-int32", elements=str(kernel.numel * kernel.reduction_numel))
                else:
                    answer = sys.modules["torch"].int64
                    turn.turned(place, names, before, wanted)
                    turns.log.turn("index-width", names, _TYPES, turn.flip)
            return answer

        return select_or_turn

    wrap(features, "SIMDKernelFeatures.select_index_dtype", around)


PERSISTENT = {"torch._inductor.choices": _hook_persistent, "torch._inductor.codegen.triton": _hook_tile}
INDEX = {"torch._inductor.codegen.simd_kernel_features": _hook_index}
