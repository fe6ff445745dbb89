"""The hint of a reduction, and its parts; torch/_inductor/ir.py, `Reduction.num_splits`.

A Triton kernel has a hint of its own, made of those of its reductions: that is turned, too, for a kernel that
holds the subject. Both are the answer of that function about what is lowered then. A subject is the buffer of
the reduction, or its FX node. Reductions that return positions (`argmax`) are not split, as torch has no way
to join the parts; nor are those of Welford's algorithm in C++, which torch never splits:
`CppVecKernel.reduction` asserts that it gets one value, and a part has three; without vectors,
`welford_combine` of `cpp_prefix.h` takes a part for empty whose `index` is 0, as it is of each that is made
of `{mean, m2, weight}`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from inductor_probe.capture.flips.turns import Flips, Turn, Turns, next_names
from inductor_probe.capture.recorders.base import Call, sees
from inductor_probe.capture.recorders.decision_log import hint_of, names_of, virtual_graph
from inductor_probe.model.decision import Outcome

_IR = "torch._inductor.ir"
_INDEX_TYPES = ("argm", "scan", "dot", "welford_combine")
_WELFORD = "welford"
_TYPE = 6
"""Position of the type of reduction among the arguments of `num_splits`; the first one is the device."""


class Reductions(Flips):
    """Turns hints and parts; the layers of a reduction that was split are deeper than the reduction."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns)
        self._depth = 0

    @sees(_IR, "Reduction.create", "WelfordReduction.create")
    def created(self, _: Call, *__: Any, **___: Any) -> Iterator[None]:
        """Count how deep reductions are made within each other."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @sees(_IR, "Reduction.num_splits")
    def counted(self, call: Call, *args: Any, **kwargs: Any) -> None:
        """Answer with the hint and the number of parts that are asked for."""
        turns = self.turns.of("reduction-hint", "split")
        if not turns or self._depth != 1:
            return
        graph = virtual_graph()
        node = graph.current_node
        kind = str(args[_TYPE] if len(args) > _TYPE else kwargs.get("reduction_type"))
        elements = args[_TYPE + 1] if len(args) > _TYPE + 1 else kwargs.get("reduction_numel")
        device = (args[0] if args else kwargs["device"]).type
        for turn in turns:
            if node is not None and turn.means(node, *next_names(graph)):
                turn.value = turn.value or (node.name if turn.flip.subjects else None)
                if turn.flip.kind == "reduction-hint":
                    call.result = self._hint(turn, call.place, call.result, node.name)
                else:
                    reduction = kind, hint_of(elements, 0), device
                    call.result = self._split(turn, call.place, call.result, node.name, reduction)

    @sees("torch._inductor.codegen.simd_kernel_features", "SIMDKernelFeatures.get_reduction_hint")
    def chosen(self, call: Call, kernel: Any, *_: Any, **__: Any) -> None:
        """Let a Triton kernel have the hint: torch looks at all of its nodes once more."""
        names = names_of(kernel.reduction_nodes())
        for turn in self.turns.of("reduction-hint"):
            wanted: Outcome = turn.flip.value  # type: ignore[assignment]  # one of ReductionHint's names
            if names and turn.is_about(names) and call.result.name != wanted:
                every = names_of(kernel.scheduler_nodes())
                turn.turned(call.place, every, call.result.name, wanted)
                self.log.turn("reduction", every, frozenset((wanted,)), turn.flip)
                call.result = type(call.result)[wanted]

    def _hint(self, turn: Turn, place: Any, answer: Any, node: str) -> Any:
        hint, parts = answer
        wanted: Outcome = turn.flip.value  # type: ignore[assignment]  # one of ReductionHint's names
        if hint.name == wanted:
            turn.is_so = True
            return answer
        turn.turned(place, (node,), hint.name, wanted)
        self.log.turn("reduction", (node,), frozenset((wanted,)), turn.flip)
        return type(hint)[wanted], parts

    def _split(self, turn: Turn, place: Any, answer: Any, node: str, reduction: tuple[str, int, str]) -> Any:
        (hint, parts), (kind, elements, device) = answer, reduction
        number = int(turn.flip.value or 1)
        if kind.startswith(_INDEX_TYPES):
            turn.refuse("reduction-not-split", type=kind)
            return answer
        if kind.startswith(_WELFORD) and device == "cpu" and number > 1:
            turn.refuse("welford-parts-in-cpp", parts=number)
            return answer
        # Reduction.create makes no reduction of so few, and says that a part of a reduction is one.
        least = max(2, int(sys.modules["torch._inductor.config"].unroll_reductions_threshold))
        if number > 1 and 0 < elements <= (least - 1) * number:
            turn.refuse("too-many-parts", parts=number, elements=elements, threshold=least)
            return answer
        if parts == number or (number == 1 and parts in (0, 1)):
            turn.is_so = True
            return answer
        before: Outcome = "not-split" if parts in (0, 1) else "split"
        after: Outcome = "not-split" if number == 1 else "split"
        turn.turned(place, (node,), before, after)
        self.log.turn("reduction", (node,), frozenset((after,)), turn.flip)
        return hint, number
