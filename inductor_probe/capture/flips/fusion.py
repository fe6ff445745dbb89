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
from collections.abc import Callable, Sequence
from typing import Any

from inductor_probe.capture.flips.turns import Turn, Turns
from inductor_probe.capture.recorders.decision_log import place_of
from inductor_probe.capture.recorders.fusion_causes import leaf_names
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import Decision, Outcome

_LIMIT = {"cpp.max_horizontal_fusion_size": 1 << 30}
_HEURISTICS = ("can_fuse", "can_fuse_vertical", "can_fuse_horizontal")
_FUSED: frozenset[Outcome] = frozenset(("fused",))
_APART: frozenset[Outcome] = frozenset(("refused", "postponed"))
_PAIR = 2


class _Fusion:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def around_question(self, can_fuse: Callable[..., Any]) -> Callable[..., Any]:
        """Return `can_fuse` with its answer turned."""
        place = place_of(can_fuse)

        def ask_or_turn(scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            turn = self._about(first, second)
            if turn is None:
                return can_fuse(scheduler, first, second, *args, **kwargs)
            names = (*leaf_names(first), *leaf_names(second))
            wants_fusion = turn.flip.kind == "fuse"
            if not wants_fusion and first.get_device() is not None and first.get_device().type != "cpu":
                answer = True  # for a GPU asking may change the order of loops
            else:
                answer = can_fuse(scheduler, first, second, *args, **kwargs)
            if bool(answer) is wants_fusion:
                return answer
            if wants_fusion:
                answer = self._forced(can_fuse, scheduler, first, second, *args, **kwargs)
                if not answer:
                    return answer
                turn.turned(place, names, "refused", "fused")
            else:
                answer = False
                turn.turned(place, names, "fused", "refused")
            # A pair that may be fused can be refused later: as a cycle, or since another one was fused first.
            self._turns.log.turn("fusion", names, _FUSED if wants_fusion else _APART, turn.flip)
            return answer

        return ask_or_turn

    def _forced(self, can_fuse: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._turns.is_forcing = True
        try:
            with sys.modules["torch._inductor.config"].patch(_LIMIT):
                return can_fuse(*args, **kwargs)
        finally:
            self._turns.is_forcing = False

    def around_heuristic(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """Return what only looks at speed so that it says yes to a pair that is to be fused."""
        return lambda *args, **kwargs: True if self._turns.is_forcing else ask(*args, **kwargs)

    def around_candidates(self, get_possible: Callable[..., Any]) -> Callable[..., Any]:
        """Return `get_possible_fusions` so that pairs that are to be fused are tried, and first."""

        def get_and_offer(scheduler: Any, nodes: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            possible = get_possible(scheduler, nodes, *args, **kwargs)
            reorder = args[0] if args else kwargs.get("is_reorder_round", False)
            for turn in self._turns.of("fuse"):
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
            return possible

        return get_and_offer

    def around_fusion(self, fuse_nodes: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fuse_nodes` so that it is known what came of the pairs when all rounds have ended."""

        def fuse_and_look(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            nodes = fuse_nodes(scheduler, *args, **kwargs)
            for turn in self._turns.of("fuse", "no-fuse"):
                self._turns.log.safely(self._look, turn, nodes)
            return nodes

        return fuse_and_look

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
        turns = self._turns.of("fuse", "no-fuse")
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


def _hook_scheduler(scheduler: Any, turns: Turns) -> None:
    fusion = _Fusion(turns)
    wrap(scheduler, "Scheduler.can_fuse", fusion.around_question)
    wrap(scheduler, "Scheduler.get_possible_fusions", fusion.around_candidates)
    wrap(scheduler, "Scheduler.fuse_nodes", fusion.around_fusion)


def _hook_choices(choices: Any, turns: Turns) -> None:
    fusion = _Fusion(turns)
    for name in _HEURISTICS:
        wrap(choices, f"InductorChoices.{name}", fusion.around_heuristic)


HOOKS = {"torch._inductor.scheduler": _hook_scheduler, "torch._inductor.choices": _hook_choices}
