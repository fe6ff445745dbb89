"""How the elements of a Triton kernel are divided into tiles: in one dimension, two or three, and why.

torch/_inductor/codegen/simd.py, `SIMDScheduling.get_tiling_and_scores`: with the analysis of coalesced
accesses, `compute_tiling_strategy` scores a tiling for each loop along which something is contiguous, and
takes the best one that fits all nodes. Without it (`triton.coalesce_tiling_analysis`), `candidate_tilings`
divides behind the loop with stride 1 of each access. For example `x.t().contiguous()` of 2048 x 2048 reads
along one loop and writes along the other: tiles of y=2048, x=2048 let both be contiguous, and x=4194304 one.

Fusion asks for tilings as well (`select_tiling`); only what a kernel is generated with is recorded.
Candidates and scores are locals of torch's function, read from its frame while it asks which of them fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    UnknownPathError,
    inductor_caller,
    place_of,
    size_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "tiling"

_OUTCOMES: tuple[Outcome, ...] = ("one-d-tiles", "two-d-tiles", "three-d-tiles", "four-d-tiles")
_MOST_CANDIDATES = 8


@dataclass
class _Seen:
    """What was asked while a tiling is chosen: candidates with their scores, and which of them were tried."""

    is_strategy: bool = False
    candidates: list[tuple[Any, Any]] = field(default_factory=list)
    tried: list[tuple[Any, bool]] = field(default_factory=list)


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._open: list[_Seen] = []

    def around_choice(self, choose: Callable[..., Any]) -> Callable[..., Any]:
        """Return `get_tiling_and_scores` so that its answer is recorded where a kernel is generated."""
        place = place_of(choose)

        def choose_and_record(*args: Any, **kwargs: Any) -> Any:
            caller = inductor_caller().f_code
            self._open.append(_Seen())
            try:
                result = choose(*args, **kwargs)
            finally:
                seen = self._open.pop()
            if caller.co_filename.endswith("simd.py") and caller.co_name != "select_tiling":
                self._log.safely(self._record, place, seen, result[0], args[1:], kwargs)
            return result

        return choose_and_record

    def tried(self, _: TorchFrame, fits: bool, *args: Any, **kwargs: Any) -> None:
        """Remember a candidate that was tried, and all of them from the frame that tries."""
        if not self._open:
            return
        seen, frame = self._open[-1], inductor_caller()
        seen.tried.append((args[-1] if args else kwargs["tiling"], bool(fits)))
        if frame.f_code.co_name == "compute_tiling_strategy":
            seen.is_strategy = True
            seen.candidates = [(one.tiling, one.score) for one, *_ in frame.f_locals["tilings"]]
        elif frame.f_back is not None:
            counted = frame.f_back.f_locals["candidate_tiles"]
            seen.candidates = [(one.tiling, score) for one, score in counted.most_common()]

    def _record(
        self, place: TorchFrame, seen: _Seen, tiling: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        # get_tiling_and_scores(node_schedule, numel, reduction_numel=1, coalesce_analysis=None)
        schedule = args[0] if args else kwargs["node_schedule"]
        reduction_numel = args[2] if len(args) > 2 else kwargs.get("reduction_numel", 1)
        nodes = [node for node in schedule if hasattr(node, "get_name")]
        names = tuple(node.get_name() for node in nodes)
        outcome = _OUTCOMES[len(_loops(tiling)) - 1]
        cause, more = _cause(seen, tiling, nodes, is_reduction=bool(reduction_numel != 1))
        operands: dict[str, Operand] = {"tiling": _text(tiling), **more}
        self._log.record(KIND, (names,), outcome, cause, place, operands=operands, key=names)


def _cause(
    seen: _Seen, tiling: Any, nodes: Sequence[Any], *, is_reduction: bool
) -> tuple[CauseCode, dict[str, Operand]]:
    """Return what decided, in the order of `get_tiling_and_scores`."""
    config = sys.modules["torch._inductor.config"].triton
    if getattr(config, "native_matmul", False) and any(
        node.is_reduction() and node.node.get_reduction_type() == "dot" for node in nodes
    ):
        return "matrix-product", {}
    limit = config.max_tiles
    candidates = _distinct(seen.candidates)
    operands: dict[str, Operand] = {
        "candidates": tuple(f"{text} (score {size_of(score)})" for text, score in candidates.items())[
            :_MOST_CANDIDATES
        ]
    }
    if seen.is_strategy:
        skipped = [(_text(one), fits) for one, fits in seen.tried[:-1] if _text(one) != _text(tiling)]
        if any(fits for _, fits in skipped):
            return "tile-limit", operands | {"limit": 3 if limit is None else int(limit)}
        if skipped:
            return "loops-do-not-divide", operands | _undivided(skipped[0][0], nodes)
        return ("coalescing" if len(candidates) > 1 else "one-candidate"), operands
    if is_reduction and not config.tile_reductions:
        return "reductions-not-tiled", {"prefer_nd_tiling": bool(config.prefer_nd_tiling)}
    if limit is not None and limit <= 1:
        return "tile-limit", {"limit": int(limit)}
    if config.prefer_nd_tiling and len(_loops(tiling)) > 1:
        return "n-d-tiles-preferred", operands
    if len(candidates) < 2:
        return "one-candidate", operands
    if next(iter(candidates)) != _text(tiling):
        tried = [_text(one) for one, fits in seen.tried if not fits]
        if not tried:
            raise UnknownPathError("the first candidate of a tiling was not taken")
        return "loops-do-not-divide", operands | _undivided(tried[0], nodes)
    return "strides", operands


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
    wrap(simd, "SIMDScheduling.get_tiling_and_scores", recorder.around_choice)
    wrap(simd, "SIMDScheduling.tiling_is_compatible", log.observed(recorder.tried))


HOOKS = {"torch._inductor.codegen.simd": _hook}
