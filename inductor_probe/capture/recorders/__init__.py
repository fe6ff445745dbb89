"""Recorders: what inductor decided while it compiled, written down at the function that decided it.

A module a kind of decision, or a part of a kind (`vector_access.py`), with a class of `base.Recorder`. Its
methods see calls of functions of torch (`torch_places.py` has all of these), and say what was decided. A
recorder reads what torch has at hand and alters nothing: it calls no function of torch that keeps state,
imports no module of torch (that would change the order of imports), and leaves torch its own result. What it
cannot read becomes a note in the manifest, and the compile goes on.

A cause is read off the way that torch took through a function that is watched (`sees(..., watches=True)`,
`Recorder.WATCHED`): by the branch in which it returned, or in which it stands while it calls what is
recorded, and by the tests that decided it, whose operands it compared. A literal of torch's is
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

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from inductor_probe.capture.recorders.arguments import Arguments
from inductor_probe.capture.recorders.base import Call, Observer, Recorder, sees
from inductor_probe.capture.recorders.buffers import Buffers
from inductor_probe.capture.recorders.casts import Casts
from inductor_probe.capture.recorders.concatenation import Concatenation
from inductor_probe.capture.recorders.configs import Configs
from inductor_probe.capture.recorders.copies import Copies
from inductor_probe.capture.recorders.cpp_nest import Nests
from inductor_probe.capture.recorders.cudagraphs import CudaGraphs
from inductor_probe.capture.recorders.decision_log import DecisionLog, debug_folder
from inductor_probe.capture.recorders.divisions import Divisions
from inductor_probe.capture.recorders.extern_kernels import ExternKernels
from inductor_probe.capture.recorders.fallback import Fallback
from inductor_probe.capture.recorders.freezing import Freezing
from inductor_probe.capture.recorders.fusion import Fusion
from inductor_probe.capture.recorders.index_width import IndexWidth
from inductor_probe.capture.recorders.layout_opt import LayoutOpt
from inductor_probe.capture.recorders.layouts import Layouts
from inductor_probe.capture.recorders.loops import LoopChanges
from inductor_probe.capture.recorders.near_patterns import NearPatterns
from inductor_probe.capture.recorders.padding import Padding
from inductor_probe.capture.recorders.reduction import Reductions
from inductor_probe.capture.recorders.reinplacing import Reinplacing
from inductor_probe.capture.recorders.rewrites import Rewrites
from inductor_probe.capture.recorders.threads import Threads
from inductor_probe.capture.recorders.tiling import Tiling
from inductor_probe.capture.recorders.vector_access import VectorAccess
from inductor_probe.capture.recorders.vectorisation import Vectorisation

RECORDERS: tuple[type[Recorder], ...] = (
    Nests, Vectorisation, Buffers, Fallback, Fusion, Reductions, IndexWidth, Layouts, LayoutOpt, Copies,
    LoopChanges, Tiling, VectorAccess, Threads, Rewrites, NearPatterns, Padding, Reinplacing, ExternKernels,
    Concatenation, Casts, Arguments, Divisions, CudaGraphs, Freezing, Configs,
)  # fmt: skip
"""In this order places of torch are wrapped: where several see one, the last is the outermost."""


def hooks(log: DecisionLog) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
    """Yield for each module of torch what is to be called when it is imported."""
    yield from Folders(log).hooks()
    for kind in RECORDERS:
        yield from kind.of(log).hooks()


class Folders(Observer):
    """Writes a graph's decisions when its folder is left, also where the compile failed."""

    @sees("torch._inductor.debug", "DebugContext.__exit__")
    def left(self, _: Call, context: Any, *__: Any) -> None:
        """Write what was decided about the graph whose folder is left."""
        if context._path:
            self.log.write(context._path)

    @sees("torch._inductor.debug", "DebugFormatter.fx_graph")
    def begun(self, _: Call, __: object, module: Any, *___: Any, **____: Any) -> None:
        """Give a graph what was decided before it had a folder."""
        folder = debug_folder()
        if folder is not None:
            self.log.begun(folder, {node.name for node in module.graph.nodes})
