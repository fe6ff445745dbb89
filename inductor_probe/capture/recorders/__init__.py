"""Recorders: what inductor decided while it compiled, written down at the function that decided it.

A module a kind of decision, or a part of a kind (`vector_access.py`). Each has `KIND`, the kind of its
decisions, and `HOOKS`: for each module of torch a function that wraps places of it (`torch_places.py` has
them all) once that module is imported. A recorder reads what torch has at hand and alters nothing: it calls
no function of torch that keeps state, imports no module of torch (that would change the order of imports),
and returns torch's own result. What it cannot read becomes a note in the manifest (`DecisionLog.observed`),
and the compile goes on.

A cause is read off the way that torch took through a function that is watched (`DecisionLog.watch`, and
`followed` in the place of `observed`): by the branch in which it returned, or in which it stands while it
calls what is recorded, and by the tests that decided it, whose operands it compared. A literal of torch's is
never written here (`tests/capture/test_no_literals.py`). Of what is asked too often for that (`fusion`) a
watched copy is asked once more, or its text is read. Which loops are merged (`loop_votes.py`), what a copy is
made for, along which loops a C++ nest is contiguous, and why CUDA graphs are skipped is still inferred from
what was seen.

To record another decision: a module here, its places in `torch_places.py`, an entry for each cause in
`catalogue/`, and a program in `tests/proving_ground` that shows the cause, with the flip that turns the
decision. A cause, or an operand, that has no entry becomes a note in the manifest (`faults_of`), which the
tests of the proving ground take for a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol, cast

from inductor_probe.capture.recorders import (
    arguments,
    buffers,
    casts,
    concatenation,
    configs,
    copies,
    cudagraphs,
    divisions,
    extern_kernels,
    fallback,
    freezing,
    fusion,
    index_width,
    layouts,
    loops,
    near_patterns,
    padding,
    reduction,
    reinplacing,
    rewrites,
    threads,
    tiling,
    vector_access,
    vectorisation,
)
from inductor_probe.capture.recorders.decision_log import DecisionLog, debug_folder
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import DecisionKind, TorchFrame


class Recorder(Protocol):
    """What a module of this package has."""

    KIND: DecisionKind
    HOOKS: Mapping[str, Callable[[Any, DecisionLog], None]]


RECORDERS: tuple[Recorder, ...] = cast(
    "tuple[Recorder, ...]",
    (
        vectorisation,
        buffers,
        fallback,
        fusion,
        reduction,
        index_width,
        layouts,
        copies,
        loops,
        tiling,
        vector_access,
        threads,
        rewrites,
        near_patterns,
        padding,
        reinplacing,
        extern_kernels,
        concatenation,
        casts,
        arguments,
        divisions,
        cudagraphs,
        freezing,
        configs,
    ),
)


def hooks(log: DecisionLog) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
    """Yield for each module of torch what is to be called when it is imported."""
    yield "torch._inductor.debug", lambda module: _write_with_graph(module, log)
    for recorder in RECORDERS:
        for name, hook in recorder.HOOKS.items():
            yield name, _noted(recorder.KIND, hook, log)


def _noted(
    kind: DecisionKind, hook: Callable[[Any, DecisionLog], None], log: DecisionLog
) -> Callable[[ModuleType], None]:
    def hook_and_note(module: ModuleType) -> None:
        hook(module, log)  # raises where a place is gone: then the kind is not recorded, and a note says so
        log.recorded(kind)

    return hook_and_note


def _write_with_graph(debug: Any, log: DecisionLog) -> None:
    """Write a graph's decisions when its folder is left, also where the compile failed."""

    def around(leave: Callable[..., Any]) -> Callable[..., Any]:
        def leave_and_write(context: Any, *args: Any) -> Any:
            result = leave(context, *args)
            if context._path:
                log.write(context._path)
            return result

        return leave_and_write

    def begun(_: TorchFrame, __: object, formatter: Any, module: Any, *___: Any, **____: Any) -> None:
        folder = debug_folder()
        if folder is not None:
            log.begun(folder, {node.name for node in module.graph.nodes})

    wrap(debug, "DebugContext.__exit__", around)
    wrap(debug, "DebugFormatter.fx_graph", log.observed(begun))
