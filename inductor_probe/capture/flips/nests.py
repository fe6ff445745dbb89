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
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from inductor_probe.capture.flips.turns import Flips, Turn, Turns
from inductor_probe.capture.recorders.base import Call, sees
from inductor_probe.capture.recorders.cpp_nest import node_name
from inductor_probe.capture.recorders.decision_log import names_of
from inductor_probe.model.decision import Outcome

_CPP = "torch._inductor.codegen.cpp"
_VECTORISED: frozenset[Outcome] = frozenset(("vectorised", "underfilled", "scalar"))
_About = tuple[Turn, tuple[str, ...]]


def _names(functions: Sequence[Any]) -> tuple[str, ...]:
    return tuple(filter(None, map(node_name, functions)))


def _config() -> Any:
    return sys.modules["torch._inductor.config"]


class Tiling(Flips):
    """Turns whether a nest is vectorised."""

    @sees(_CPP, "TilingSelect.select_tiling")
    def selected(self, call: Call, selector: Any, functions: Any, sizes: Any) -> None:
        """Turn the answer."""
        names = _names(functions)
        turn = next((one for one in self.turns.of("vectorise", "scalar") if one.is_about(names)), None)
        if turn is None:
            return
        answer, wants_vectors = call.result, turn.flip.kind == "vectorise"
        if bool(answer[1]) is wants_vectors:
            turn.is_so = True
            return
        if wants_vectors:
            with _config().patch({"cpp.enable_tiling_heuristics": False}):
                answer = call.result = call.ask(selector, functions, sizes)
            if not answer[1]:
                dtypes = _other_dtypes(functions)
                turn.refuse("dtype-not-vectorisable" if dtypes else "no-contiguous-loop", dtypes=dtypes)
                return
            turn.turned(call.place, names, "scalar", "vectorised")
        else:
            call.result = ([], [], *answer[2:])
            turn.turned(call.place, names, "vectorised", "scalar")
        self.log.turn("vectorisation", names, _VECTORISED, turn.flip)


def _other_dtypes(functions: Sequence[Any]) -> tuple[str, ...]:
    cpp = sys.modules[_CPP]
    dtypes = cpp._get_dtype_from_loopbodies(cpp._get_loop_body(functions))
    return tuple(
        sorted(str(dtype).removeprefix("torch.") for dtype in dtypes if dtype not in cpp.VECTORIZABLE_DTYPES)
    )


class Threads(Flips):
    """Turns how many threads a nest has; `_open` are the flips about the nests whose loops are written."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns)
        self._open: list[_About | None] = []

    @sees(_CPP, "CppKernelProxy.codegen_functions")
    def generated(self, _: Call, __: Any, functions: Any, ___: Any) -> Iterator[None]:
        """Let partial results have as many places as there will be threads."""
        with _threads(self._about(_names(functions))):
            yield

    @sees(_CPP, "KernelGroup.finalize_kernel")
    def finalized(self, _: Call, __: Any, ___: Any, nodes: Sequence[Any]) -> Iterator[None]:
        """See whose loops are written."""
        about = self._about(names_of(nodes))
        self._open.append(about)
        try:
            with _threads(about):
                yield
        finally:
            self._open.pop()

    @sees(_CPP, "CppKernel.decide_parallel_depth", "OuterLoopFusedKernel.decide_parallel_depth")
    def decided(self, call: Call, _: Any, __: Any, threads: int) -> None:
        """Let one thread mean that no loop is divided."""
        about = self._open[-1] if self._open else None
        if about is None:
            return
        turn, names = about
        depth = call.result.parallel_depth
        before: Outcome = "parallel" if depth else "one-thread"
        if turn.flip.value == "1":
            if not depth:
                turn.is_so = True
                return
            call.result = type(call.result)(parallel_depth=0, start_depth=call.result.start_depth)
            turn.turned(call.place, names, before, "one-thread")
        elif depth:
            turn.turned(call.place, names, None, before)
        else:
            turn.refuse("little-work", threads=threads, min_chunk_size=int(_config().cpp.min_chunk_size))
            return
        self.log.turn("threads", names, frozenset(("parallel", "one-thread")), turn.flip)

    def _about(self, names: tuple[str, ...]) -> _About | None:
        turns = self.turns.of("threads") if names else []
        return next(((turn, names) for turn in turns if turn.is_about(names)), None)


def _threads(about: _About | None) -> AbstractContextManager[Any]:
    # Of one thread torch would write loops that all threads of an open parallel region run.
    if about is None or about[0].flip.value == "1":
        return nullcontext()
    patched: AbstractContextManager[Any] = _config().patch({"cpp.threads": int(about[0].flip.value or 0)})
    return patched
