"""Pairs of nodes that are kept apart, or fused where that is legal; torch/_inductor/scheduler.py.

- `no-fuse`: `Scheduler.can_fuse` says no to each two nodes that hold one of the subjects each.
- `fuse`: it is asked once more, without what only looks at speed: the methods of `InductorChoices`, whose
  documentation calls them heuristics, and the limit of nodes of C++. The pair is offered first in each round,
  also where the two use no common buffer and torch would not have tried. Dependencies, cycles, loop ranges
  and what a backend can generate stay torch's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from inductor_probe.capture.flips.turns import Flips, Turn, Turns
from inductor_probe.capture.recorders.base import Call, sees
from inductor_probe.capture.recorders.fusion_causes import leaf_names
from inductor_probe.model.decision import Decision, Outcome

_SCHEDULER = "torch._inductor.scheduler"
_LIMIT = {"cpp.max_horizontal_fusion_size": 1 << 30}
_FUSED: frozenset[Outcome] = frozenset(("fused",))
_APART: frozenset[Outcome] = frozenset(("refused", "postponed"))
_PAIR = 2


class Fusion(Flips):
    """Turns answers about pairs; `_is_forcing`: one is asked about just now, without heuristics."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns)
        self._is_forcing = False

    @sees(_SCHEDULER, "Scheduler.can_fuse")
    def asked(
        self, call: Call, scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any
    ) -> Iterator[None]:
        """Turn the answer."""
        turn = self._about(first, second)
        if turn is None:
            return
        names = (*leaf_names(first), *leaf_names(second))
        wants_fusion = turn.flip.kind == "fuse"
        if not wants_fusion and first.get_device() is not None and first.get_device().type != "cpu":
            call.answer(True)  # for a GPU asking may change the order of loops
        yield
        if bool(call.result) is wants_fusion:
            return
        if wants_fusion:
            self._is_forcing = True
            try:
                with sys.modules["torch._inductor.config"].patch(_LIMIT):
                    call.result = call.ask(scheduler, first, second, *args, **kwargs)
            finally:
                self._is_forcing = False
            if not call.result:
                return
            turn.turned(call.place, names, "refused", "fused")
        else:
            call.result = False
            turn.turned(call.place, names, "fused", "refused")
        # A pair that may be fused can be refused later: as a cycle, or since another one was fused first.
        self.log.turn("fusion", names, _FUSED if wants_fusion else _APART, turn.flip)

    @sees("torch._inductor.choices", "InductorChoices.can_fuse", "InductorChoices.can_fuse_vertical",
        "InductorChoices.can_fuse_horizontal")  # fmt: skip
    def weighed(self, call: Call, *_: Any, **__: Any) -> Iterator[None]:
        """Let what only looks at speed say yes to a pair that is to be fused."""
        if self._is_forcing:
            call.answer(True)
        yield

    @sees(_SCHEDULER, "Scheduler.get_possible_fusions")
    def paired(self, call: Call, scheduler: Any, nodes: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        """Let pairs that are to be fused be tried, and first."""
        possible, reorder = call.result, args[0] if args else kwargs.get("is_reorder_round", False)
        for turn in self.turns.of("fuse"):
            pair = [node for node in nodes if any(held & {*leaf_names(node)} for held in turn.nodes())]
            if len(pair) != _PAIR or any(map(scheduler.unfusable_node, pair)):
                continue
            offered = next((one for one in possible if {*one} == {*pair}), None)
            if offered is not None:
                possible.remove(offered)
            elif scheduler.can_fuse(*pair, reorder):
                offered = pair[0], pair[1]
            if offered is not None:
                possible.insert(0, offered)

    @sees(_SCHEDULER, "Scheduler.fuse_nodes")
    def ended(self, call: Call, *_: Any, **__: Any) -> None:
        """See what came of the pairs when all rounds have ended."""
        for turn in self.turns.of("fuse", "no-fuse"):
            self.log.safely(self._look, turn, call.result)

    def _look(self, turn: Turn, nodes: Sequence[Any]) -> None:
        known = turn.nodes()
        if not all(known):
            return  # there is none of that name
        groups = [{*leaf_names(node)} for node in nodes]
        is_one = any(all(held & group for held in known) for group in groups)
        if is_one is (turn.flip.kind == "fuse"):
            turn.is_so = not turn.times
            return
        if known[0] & known[1]:
            return  # both names mean one node
        turn.times = 0
        turn.refuse("not-fusable" if not is_one else "same-node")
        turn.cause = functools.partial(_cause, turn)

    def _about(self, first: Any, second: Any) -> Turn | None:
        turns = self.turns.of("fuse", "no-fuse")
        if not turns:
            return None
        groups = {*leaf_names(first)}, {*leaf_names(second)}
        for turn in turns:
            held = turn.nodes()
            if any(held[0] & one and held[1] & other for one, other in (groups, groups[::-1])):
                return turn
        return None


def _cause(turn: Turn, decisions: Sequence[Decision]) -> Decision | None:
    """Return what kept a pair apart in the end, as it was recorded."""
    for decision in reversed(decisions):
        if decision.kind != "fusion" or decision.outcome == "fused":
            continue
        of_pair = len(decision.subjects) == _PAIR and not decision.speculative
        groups = [{*group} for group in decision.subjects]
        if of_pair and all(any(held & group for group in groups) for held in turn.nodes()):
            return decision
        if len(groups) == 1 and any(held & groups[0] for held in turn.nodes()):
            return decision
    return None
