"""C++ loop nests: vectorised or scalar, and on how many threads; torch/_inductor/codegen/cpp.py.

A nest is generated of all its nodes at once, so that a flip about one of them is about the nest.

- `scalar`: `TilingSelect.select_tiling` answers with no loop, as where its heuristics refuse.
- `vectorise`: it is asked without its heuristics (`cpp.enable_tiling_heuristics`), for this nest only. What
  it checks besides stays: dtypes that have vectors, and a loop that can be vectorised.
- `threads 1`: `decide_parallel_depth` divides no loop. Other numbers stand in for `cpp.threads` while the
  nest is generated, and while its loops are written: both look at it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from inductor_probe.capture.flips.turns import Turn, Turns
from inductor_probe.capture.recorders.cpp_nest import node_name
from inductor_probe.capture.recorders.decision_log import place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import Outcome

_VECTORISED: frozenset[Outcome] = frozenset(("vectorised", "underfilled", "scalar"))


def _names(functions: Sequence[Any]) -> tuple[str, ...]:
    return tuple(filter(None, map(node_name, functions)))


def _config() -> Any:
    return sys.modules["torch._inductor.config"]


def _hook_tiling(cpp: Any, turns: Turns) -> None:
    def around(select: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(select)

        def select_or_turn(selector: Any, functions: Any, sizes: Any) -> Any:
            names = _names(functions)
            turn = next((one for one in turns.of("vectorise", "scalar") if one.is_about(names)), None)
            if turn is None:
                return select(selector, functions, sizes)
            wants_vectors = turn.flip.kind == "vectorise"
            answer = select(selector, functions, sizes)
            if bool(answer[1]) is wants_vectors:
                turn.is_so = True
                return answer
            if wants_vectors:
                with _config().patch({"cpp.enable_tiling_heuristics": False}):
                    answer = select(selector, functions, sizes)
                if not answer[1]:
                    dtypes = _other_dtypes(cpp, functions)
                    turn.refuse("dtype-not-vectorisable" if dtypes else "no-contiguous-loop", dtypes=dtypes)
                    return answer
                turn.turned(place, names, "scalar", "vectorised")
            else:
                answer = ([], [], *answer[2:])
                turn.turned(place, names, "vectorised", "scalar")
            turns.log.turn("vectorisation", names, _VECTORISED, turn.flip)
            return answer

        return select_or_turn

    wrap(cpp, "TilingSelect.select_tiling", around)


def _other_dtypes(cpp: Any, functions: Sequence[Any]) -> tuple[str, ...]:
    dtypes = cpp._get_dtype_from_loopbodies(cpp._get_loop_body(functions))
    return tuple(
        sorted(str(dtype).removeprefix("torch.") for dtype in dtypes if dtype not in cpp.VECTORIZABLE_DTYPES)
    )


class _Threads:
    """The flip about the nest whose loops are written now."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._open: list[tuple[Turn, tuple[str, ...]] | None] = []

    def around_codegen(self, codegen: Callable[..., Any]) -> Callable[..., Any]:
        """Return `codegen_functions` so that partial results have as many places as there will be threads."""

        def codegen_with_threads(proxy: Any, functions: Any, sizes: Any) -> Any:
            with self._set(self._about(_names(functions))):
                return codegen(proxy, functions, sizes)

        return codegen_with_threads

    def around_finalize(self, finalize: Callable[..., Any]) -> Callable[..., Any]:
        """Return `finalize_kernel` so that it is known whose loops are written."""

        def finalize_with_threads(group: Any, kernel: Any, nodes: Sequence[Any]) -> Any:
            about = self._about(tuple(node.get_name() for node in nodes))
            self._open.append(about)
            try:
                with self._set(about):
                    return finalize(group, kernel, nodes)
            finally:
                self._open.pop()

        return finalize_with_threads

    def around_depth(self, decide: Callable[..., Any]) -> Callable[..., Any]:
        """Return `decide_parallel_depth` so that one thread means that no loop is divided."""
        place = place_of(decide)

        def decide_or_turn(kernel: Any, allowed: Any, threads: int) -> Any:
            answer = decide(kernel, allowed, threads)
            about = self._open[-1] if self._open else None
            if about is None:
                return answer
            turn, names = about
            before: Outcome = "parallel" if answer.parallel_depth else "one-thread"
            if turn.flip.value == "1":
                if not answer.parallel_depth:
                    turn.is_so = True
                    return answer
                answer = type(answer)(parallel_depth=0, start_depth=answer.start_depth)
                turn.turned(place, names, before, "one-thread")
            elif answer.parallel_depth:
                turn.turned(place, names, None, before)
            else:
                turn.refuse("little-work", threads=threads, min_chunk_size=int(_config().cpp.min_chunk_size))
                return answer
            self._turns.log.turn("threads", names, frozenset(("parallel", "one-thread")), turn.flip)
            return answer

        return decide_or_turn

    def _about(self, names: tuple[str, ...]) -> tuple[Turn, tuple[str, ...]] | None:
        turns = self._turns.of("threads") if names else []
        return next(((turn, names) for turn in turns if turn.is_about(names)), None)

    def _set(self, about: tuple[Turn, tuple[str, ...]] | None) -> AbstractContextManager[Any]:
        # Of one thread torch would write loops that all threads of an open parallel region run.
        if about is None or about[0].flip.value == "1":
            return nullcontext()
        patched: AbstractContextManager[Any] = _config().patch({"cpp.threads": int(about[0].flip.value or 0)})
        return patched


def _hook_threads(cpp: Any, turns: Turns) -> None:
    threads = _Threads(turns)
    wrap(cpp, "CppKernelProxy.codegen_functions", threads.around_codegen)
    wrap(cpp, "KernelGroup.finalize_kernel", threads.around_finalize)
    wrap(cpp, "CppKernel.decide_parallel_depth", threads.around_depth)
    wrap(cpp, "OuterLoopFusedKernel.decide_parallel_depth", threads.around_depth)


TILING = {"torch._inductor.codegen.cpp": _hook_tiling}
THREADS = {"torch._inductor.codegen.cpp": _hook_threads}
