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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_branch,
    decides,
    inductor_caller,
    inner_path,
    names_of,
    size_of,
    test_at,
    tests_of,
)
from inductor_probe.model.decision import Outcome

_SIMD = "torch._inductor.codegen.simd"
_OUTCOMES: tuple[Outcome, ...] = ("one-d-tiles", "two-d-tiles", "three-d-tiles", "four-d-tiles")
_MOST_CANDIDATES = 8
_BY_STRATEGY = "SIMDScheduling.compute_tiling_strategy"
_WITH_MEMORY, _CHOOSES = "SIMDScheduling.select_tiling_with_memory", "SIMDScheduling.get_tiling_and_scores"
"""The function that chooses; the first since torch 2.14, which the second calls."""
_TILES_REDUCTIONS, _FEWEST, _THIRD = (
    "config.triton.tile_reductions", "get_max_tiles(?) <= ?", "get_max_tiles(?) >= ?"
)  # fmt: skip
_MOST = "tiling_len > get_max_tiles(?)"


@dataclass
class _Seen:
    """What was asked while a tiling is chosen: candidates with their scores, and which of them were tried.

    `preferred` are tilings of as many dimensions as there are, where torch asked for them.
    """

    candidates: list[tuple[Any, Any]] = field(default_factory=list)
    preferred: list[str] = field(default_factory=list)
    tried: list[tuple[Any, bool]] = field(default_factory=list)


@watches(_SIMD, _BY_STRATEGY, _WITH_MEMORY, may_lack=True)
class Tiling(Recorder):
    """Records the tiling with which a kernel is generated."""

    KIND = "tiling"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._open: list[_Seen] = []

    @sees(_SIMD, _CHOOSES, watches=True)
    def chosen(
        self, call: Call, _: Any, node_schedule: Sequence[Any], *__: Any, **___: Any
    ) -> Iterator[None]:
        """Record what was chosen for a kernel; fusion asks as well."""
        caller = inductor_caller().f_code
        seen = _Seen()
        self._open.append(seen)
        try:
            yield
        finally:
            self._open.pop()
        if not caller.co_filename.endswith("simd.py") or caller.co_name == "select_tiling":
            return
        nodes, tiling = [node for node in node_schedule if hasattr(node, "get_name")], call.result[0]
        chosen = next(filter(None, (inner_path(call.made, name) for name in (_WITH_MEMORY, _CHOOSES))), None)
        strategy = inner_path(call.made, _BY_STRATEGY)
        choose = _by_score if strategy is not None else _by_strides
        why, names = choose(strategy or chosen, seen, tiling, nodes), names_of(nodes)
        cause = why.behind({"tiling": _text(tiling)})
        self.record(_OUTCOMES[len(_loops(tiling)) - 1], cause, call.place, names, key=names)

    @sees(_SIMD, "SIMDScheduling.tiling_is_compatible")
    def tried(self, call: Call, *args: Any, **kwargs: Any) -> None:
        """Remember a candidate that was tried, and all of them from the frame that tries."""
        if not self._open:
            return
        seen, frame = self._open[-1], inductor_caller()
        seen.tried.append((args[-1] if args else kwargs["tiling"], bool(call.result)))
        if frame.f_code.co_name == "compute_tiling_strategy":
            seen.candidates = [(one.tiling, one.score) for one, *_ in frame.f_locals["tilings"]]
        elif frame.f_back is not None:
            counted = frame.f_back.f_locals["candidate_tiles"]
            seen.candidates = [(one.tiling, score) for one, score in counted.most_common()]

    @sees(_SIMD, "SIMDScheduling.get_nd_tilings")
    def preferred(self, call: Call, *_: Any, **__: Any) -> None:
        """Remember tilings of as many dimensions as there are, which come before all others."""
        if self._open:
            self._open[-1].preferred += map(_text, call.result)


def _by_score(path: CallPath | None, seen: _Seen, tiling: Any, nodes: Sequence[Any]) -> Cause:
    """Return what decided in `compute_tiling_strategy`: it takes the best that fits and is not too many."""
    candidates = _distinct(seen.candidates)
    operands = _candidates(candidates)
    skipped = [(_text(one), fits) for one, fits in seen.tried[:-1] if _text(one) != _text(tiling)]
    most = path.tested(_MOST) if path is not None else None
    if most is not None and any(fits for _, fits in skipped):
        return Cause("tile-limit", operands | {"limit": most.values[1]})
    if skipped:
        return Cause("loops-do-not-divide", operands | _undivided(skipped[0][0], nodes))
    code = cause_of_branch(path, "tiling", behind="coalescing")
    if code == "coalescing" and len(candidates) < 2:
        code = "one-candidate"
    return Cause(code, operands, tests_of(path))


def _by_strides(path: CallPath | None, seen: _Seen, tiling: Any, nodes: Sequence[Any]) -> Cause:
    """Return what decided in `get_tiling_and_scores`: by the branch that it returned in, or by candidates."""
    code, tests = cause_of_branch(path, "tiling", behind="one-candidate"), tests_of(path)
    if decides(path, _TILES_REDUCTIONS):
        config = sys.modules["torch._inductor.config"].triton
        return Cause("reductions-not-tiled", {"prefer_nd_tiling": bool(config.prefer_nd_tiling)}, tests)
    if path is not None and decides(path, _FEWEST) and (fewest := path.tested(_FEWEST)) is not None:
        return Cause("tile-limit", {"limit": fewest.values[0]}, tests)
    if path is None or code in ("matrix-product", "unlisted-test"):
        return Cause(code, {}, tests)
    candidates, chosen = _distinct(seen.candidates), _text(tiling)
    operands = _candidates(candidates)
    if chosen in seen.preferred and len(_loops(tiling)) > 1:
        return Cause("n-d-tiles-preferred", operands, tests)
    if len(candidates) < 2:
        return Cause("one-candidate", operands, tests)
    if next(iter(candidates)) == chosen:
        return Cause("strides", operands, tests)
    tried = [_text(one) for one, fits in seen.tried if not fits]
    if tried:
        return Cause("loops-do-not-divide", operands | _undivided(tried[0], nodes), tests)
    third = path.tested(_THIRD)  # of two of them one of three dimensions was made
    return Cause("unlisted-test", operands, (test_at(path, third),) if third is not None else ())


def _candidates(candidates: Mapping[str, Any]) -> Operands:
    texts = tuple(f"{text} (score {size_of(score)})" for text, score in candidates.items())
    return {"candidates": texts[:_MOST_CANDIDATES]}


def _undivided(better: str, nodes: Iterable[Any]) -> Operands:
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
