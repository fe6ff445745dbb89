"""Flips: a decision of inductor turned by name, at the function of torch that takes it, for one subject.

`probe dump --scalar op0` asks for a `Flip` (`model/flip.py`). A module here turns those of some kinds: it
wraps the places of `torch_places.py` that the recorder of the kind wraps, and only where such a flip was
asked for. What is turned is a choice that torch makes because it expects one way to be faster. What it checks
so that code is right stays torch's: dependencies, cycles, writes in place, aliases, dtypes, sizes of an
index. So a flip may be refused, and the manifest says by what (`FlipResult`).

Flips are set before the recorders, and thus within them: a recorder sees the answer that torch then uses, and
its decision has the cause `turned` (`DecisionLog.turn`).

Who is meant:

- A graph: that of the flip, or each that has the subject.
- A scheduler node by its name, its buffer, or the FX node whose value it holds. When code is generated all
  nodes are there, so that the subject is looked up once (`Turn.nodes`).
- While FX nodes are lowered a buffer has no name yet: it is the one that is numbered next. A value that is
  realised or inlined by a flip numbers all later ones anew. From then on a name is not what it was in the
  dump that it was read in, unless the flip says from which FX node it came there (`Flip.origins`, which
  `analysis/flips.py` looks up).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.flips import fusion, kernels, nests, reductions, values
from inductor_probe.capture.flips.turns import Ends, Flips, Turns
from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.model.flip import Flip, FlipKind

_CLASSES: Mapping[FlipKind, type[Flips]] = {
    "vectorise": nests.Tiling, "scalar": nests.Tiling, "threads": nests.Threads,
    "fuse": fusion.Fusion, "no-fuse": fusion.Fusion,
    "realize": values.Realize, "inline": values.Inline, "layout": values.Layout,
    "reduction-hint": reductions.Reductions, "split": reductions.Reductions,
    "persistent": kernels.Persistence, "looped": kernels.Persistence, "index-dtype": kernels.IndexTypes,
}  # fmt: skip


def settings_without_dump(flips: Sequence[Flip], folder: str) -> tuple[tuple[str, str], ...]:
    """Return the settings with which graphs have the names of a dump where nothing is dumped.

    A flip is about a graph, which inductor names where it traces (`torch/_inductor/debug.py`, DebugContext):
    its folder is made in `folder`, without most of its files.
    """
    if not flips:
        return ()
    files = ("fx_graph", "fx_graph_transformed", "ir_pre_fusion", "ir_post_fusion", "output_code", "info_log")
    return (
        ("inductor.trace.enabled", "True"),
        ("inductor.trace.debug_dir", folder),
        *((f"inductor.trace.{name}", "False") for name in files),
    )


def hooks(
    flips: Sequence[Flip], events: EventLog, log: DecisionLog
) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
    """Yield for each module of torch what is to be called when it is imported, before the recorders."""
    if not flips:
        return
    turns = Turns(flips, events, log)
    kinds: list[type[Flips]] = [Ends, *(_CLASSES[flip.kind] for flip in flips)]
    for kind in dict.fromkeys(kinds):
        yield from kind(turns).hooks()
