"""How the elements of a Triton kernel are divided into tiles: in one dimension, two or three, and why.

torch/_inductor/codegen/simd.py, `SIMDScheduling.get_tiling_and_scores`: with the analysis of coalesced
accesses, `compute_tiling_strategy` scores a tiling for each loop along which something is contiguous, and
takes the best one that fits all nodes. Without it (`triton.coalesce_tiling_analysis`), `candidate_tilings`
divides behind the loop with stride 1 of each access. For example `x.t().contiguous()` of 2048 x 2048 reads
along one loop and writes along the other: tiles of y=2048, x=2048 let both be contiguous, and x=4194304 one.

Fusion asks for tilings as well (`select_tiling`); only what a kernel is generated with is recorded. Both
functions are watched. Candidates and scores are locals of theirs, read from the frame while torch asks which
of them fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.branches import CallPath, calls
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_branch,
    decides,
    inductor_caller,
    inner_path,
    place_of,
    size_of,
    test_at,
    tests_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame, TorchTest

KIND: DecisionKind = "tiling"

_OUTCOMES: tuple[Outcome, ...] = ("one-d-tiles", "two-d-tiles", "three-d-tiles", "four-d-tiles")
_MOST_CANDIDATES = 8
_BY_STRATEGY = "SIMDScheduling.compute_tiling_strategy"
_BY_STRIDES = ("SIMDScheduling.select_tiling_with_memory", "SIMDScheduling.get_tiling_and_scores")
"""The function that chooses; the first of these since torch 2.14, which the second calls."""
_TILES_REDUCTIONS, _FEWEST, _THIRD = (
    "config.triton.tile_reductions", "get_max_tiles(?) <= ?", "get_max_tiles(?) >= ?"
)  # fmt: skip
_MOST = "tiling_len > get_max_tiles(?)"

Cause = tuple[CauseCode, dict[str, Operand], tuple[TorchTest, ...]]


@dataclass
class _Seen:
    """What was asked while a tiling is chosen: candidates with their scores, and which of them were tried.

    `preferred` are tilings of as many dimensions as there are, where torch asked for them.
    """

    candidates: list[tuple[Any, Any]] = field(default_factory=list)
    preferred: list[str] = field(default_factory=list)
    tried: list[tuple[Any, bool]] = field(default_factory=list)


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._open: list[_Seen] = []

    def around_choice(self, choose: Callable[..., Any]) -> Callable[..., Any]:
        """Return `get_tiling_and_scores` so that its answer is recorded where a kernel is generated."""
        place = place_of(choose)

        def choose_and_record(cls: Any, node_schedule: Any, *args: Any, **kwargs: Any) -> Any:
            caller = inductor_caller().f_code
            self._open.append(_Seen())
            try:
                with calls() as made:
                    result = choose(cls, node_schedule, *args, **kwargs)
            finally:
                seen = self._open.pop()
            if caller.co_filename.endswith("simd.py") and caller.co_name != "select_tiling":
                self._log.safely(self._record, place, made, seen, result[0], node_schedule)
            return result

        return choose_and_record

    def tried(self, _: TorchFrame, fits: bool, *args: Any, **kwargs: Any) -> None:
        """Remember a candidate that was tried, and all of them from the frame that tries."""
        if not self._open:
            return
        seen, frame = self._open[-1], inductor_caller()
        seen.tried.append((args[-1] if args else kwargs["tiling"], bool(fits)))
        if frame.f_code.co_name == "compute_tiling_strategy":
            seen.candidates = [(one.tiling, one.score) for one, *_ in frame.f_locals["tilings"]]
        elif frame.f_back is not None:
            counted = frame.f_back.f_locals["candidate_tiles"]
            seen.candidates = [(one.tiling, score) for one, score in counted.most_common()]

    def preferred(self, _: TorchFrame, tilings: Sequence[Any], *__: Any, **___: Any) -> None:
        """Remember tilings of as many dimensions as there are, which come before all others."""
        if self._open:
            self._open[-1].preferred += map(_text, tilings)

    def _record(
        self, place: TorchFrame, made: Sequence[CallPath], seen: _Seen, tiling: Any, schedule: Sequence[Any]
    ) -> None:
        nodes = [node for node in schedule if hasattr(node, "get_name")]
        names = tuple(node.get_name() for node in nodes)
        outcome = _OUTCOMES[len(_loops(tiling)) - 1]
        chosen = next(filter(None, (inner_path(made, name) for name in _BY_STRIDES)), None)
        strategy = inner_path(made, _BY_STRATEGY)
        choose = _by_score if strategy is not None else _by_strides
        cause, more, tests = choose(strategy or chosen, seen, tiling, nodes)
        operands: dict[str, Operand] = {"tiling": _text(tiling), **more}
        self._log.record(KIND, (names,), outcome, cause, place, operands=operands, key=names, tests=tests)


def _by_score(path: CallPath | None, seen: _Seen, tiling: Any, nodes: Sequence[Any]) -> Cause:
    """Return what decided in `compute_tiling_strategy`: it takes the best that fits and is not too many."""
    candidates = _distinct(seen.candidates)
    operands = _candidates(candidates)
    skipped = [(_text(one), fits) for one, fits in seen.tried[:-1] if _text(one) != _text(tiling)]
    most = path.tested(_MOST) if path is not None else None
    if most is not None and any(fits for _, fits in skipped):
        return "tile-limit", operands | {"limit": most.values[1]}, ()
    if skipped:
        return "loops-do-not-divide", operands | _undivided(skipped[0][0], nodes), ()
    cause = cause_of_branch(path, KIND, behind="coalescing")
    if cause == "coalescing" and len(candidates) < 2:
        cause = "one-candidate"
    return cause, operands, tests_of(path)


def _by_strides(path: CallPath | None, seen: _Seen, tiling: Any, nodes: Sequence[Any]) -> Cause:
    """Return what decided in `get_tiling_and_scores`: by the branch that it returned in, or by candidates."""
    cause, tests = cause_of_branch(path, KIND, behind="one-candidate"), tests_of(path)
    if decides(path, _TILES_REDUCTIONS):
        config = sys.modules["torch._inductor.config"].triton
        return "reductions-not-tiled", {"prefer_nd_tiling": bool(config.prefer_nd_tiling)}, tests
    if path is not None and decides(path, _FEWEST) and (fewest := path.tested(_FEWEST)) is not None:
        return "tile-limit", {"limit": fewest.values[0]}, tests
    if path is None or cause in ("matrix-product", "unlisted-test"):
        return cause, {}, tests
    candidates, chosen = _distinct(seen.candidates), _text(tiling)
    operands = _candidates(candidates)
    if chosen in seen.preferred and len(_loops(tiling)) > 1:
        return "n-d-tiles-preferred", operands, tests
    if len(candidates) < 2:
        return "one-candidate", operands, tests
    if next(iter(candidates)) == chosen:
        return "strides", operands, tests
    tried = [_text(one) for one, fits in seen.tried if not fits]
    if tried:
        return "loops-do-not-divide", operands | _undivided(tried[0], nodes), tests
    third = path.tested(_THIRD)  # of two of them one of three dimensions was made
    return "unlisted-test", operands, (test_at(path, third),) if third is not None else ()


def _candidates(candidates: Mapping[str, Any]) -> dict[str, Operand]:
    texts = tuple(f"{text} (score {size_of(score)})" for text, score in candidates.items())
    return {"candidates": texts[:_MOST_CANDIDATES]}


def _undivided(better: str, nodes: Iterable[Any]) -> dict[str, Operand]:
    """Return the tiling that does not fit, and the loops of the nodes, one of which it does not divide."""
    rows = []
    for node in nodes:
        sizes = " x ".join(str(size) for group in node.get_ranges() for size in group)
        rows.append(f"{node.get_name()} {sizes}")
    return {"better": better, "nodes": tuple(rows)}


def _distinct(candidates: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return each tiling once, the best score first."""
    scores: dict[str, Any] = {}
    for tiling, score in sorted(candidates, key=lambda one: -int(one[1])):
        scores.setdefault(_text(tiling), score)
    return scores


def _loops(tiling: Any) -> dict[str, Any]:
    """Return the tiles of a kernel that has no reduction without the one of its reduction."""
    return {name: size for name, size in tiling.items() if name[0] != "r" or size != 1}


def _text(tiling: Any) -> str:
    return ", ".join(f"{name}={size_of(size)}" for name, size in _loops(tiling).items())


def _hook(simd: Any, log: DecisionLog) -> None:
    recorder = _Recorder(log)
    for place in (_BY_STRATEGY, *_BY_STRIDES):
        if hasattr(simd.SIMDScheduling, place.rpartition(".")[2]):
            log.watch(simd, place)
    wrap(simd, _BY_STRIDES[-1], recorder.around_choice)
    wrap(simd, "SIMDScheduling.tiling_is_compatible", log.observed(recorder.tried))
    wrap(simd, "SIMDScheduling.get_nd_tilings", log.observed(recorder.preferred))


HOOKS = {"torch._inductor.codegen.simd": _hook}
