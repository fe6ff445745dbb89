"""Which recorded decisions of a graph can be turned by name, and what a name means there.

Only what torch chooses because it expects one way to be faster can be turned: `capture/flips/`. What it must
do (a dependency, a dtype without vectors, an output that is needed as a buffer) has no flip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial

from msgspec.structs import replace

from inductor_probe.analysis.causes.conditions import applies
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import nodes_of
from inductor_probe.analysis.names import ANYTHING, resolve
from inductor_probe.catalogue import causes_of
from inductor_probe.catalogue.entries import Turn
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision, DecisionKind
from inductor_probe.model.flip import CHANNELS_LAST_RANKS, Flip, FlipKind


def flips_of(graph: CompiledGraph, names: Set[str] | None = None) -> tuple[Flip, ...]:
    """Return a flip for each decision of a graph that can be turned, in the order of the decisions.

    Args:
        names: of nodes, buffers and FX nodes: only decisions about them.
    """
    flips: dict[Flip, None] = {}
    for decision in graph.decided:
        if not decision.speculative and (names is None or not names.isdisjoint(decision.names)):
            flips.update(dict.fromkeys(flips_of_decision(graph, decision)))
    return tuple(flips)


def flips_of_decision(graph: CompiledGraph, decision: Decision) -> tuple[Flip, ...]:
    """Return the flips that would turn a decision; none where torch has no choice."""
    turn = _TURNS.get(decision.kind)
    if turn is None or decision.cause == "turned":
        return ()
    return tuple(_with_origins(graph, flip) for flip in turn(graph, decision))


def resolved(graph: CompiledGraph, flip: Flip) -> Flip:
    """Return a flip with what its names mean in a graph, so that they mean it in other compiles, too.

    The name of a kernel, a line or an operator stands for its nodes, where torch decides about them at once.

    Raises:
        NotFoundError: the graph has no such subject. ProbeError: it has several nodes that torch decides
            about one by one.
    """
    subjects = tuple(map(partial(_subject, graph, flip), flip.subjects, flip.nodes))
    return _with_origins(graph, replace(flip, subjects=subjects))


def _subject(graph: CompiledGraph, flip: Flip, name: str, parts: frozenset[str]) -> str:
    index = index_of(graph)
    if parts <= {*index.nodes.leaf, *index.before.leaf}:
        return name
    try:
        subject = resolve(graph, name, ANYTHING)
    except NotFoundError as error:
        raise NotFoundError(f"{graph.name} has no {name} for {flip.option}", error.hint) from None
    if subject.type in ("node", "buffer", "fx"):
        return subject.name
    made = nodes_of(graph, subject)
    if len(made) != 1 and not _is_one(graph, flip, made):
        raise ProbeError(
            f"{subject.name} has {len(made)} nodes: {flip.option} is about one",
            f"name one of {', '.join(made)}" if made else f"probe show {subject.name} says what became of it",
        )
    return made[0]


def _is_one(graph: CompiledGraph, flip: Flip, nodes: Sequence[str]) -> bool:
    """Whether torch takes the decision that a flip turns about all of some nodes at once."""
    about = (one for one in graph.decided if one.kind == flip.decides and not one.speculative)
    return any({*nodes} == {*group} for one in about for group in one.subjects)


def _with_origins(graph: CompiledGraph, flip: Flip) -> Flip:
    """Return a flip with the FX nodes whose values its subjects are, as far as each is told from others."""
    origins = tuple(_origin(graph, subject) for subject in flip.subjects)
    return replace(flip, origins=origins) if any(origins) else flip


def _origin(graph: CompiledGraph, subject: str) -> tuple[str, ...]:
    index = index_of(graph)
    leaf = index.nodes.leaf.get(subject) or index.before.leaf.get(subject)
    buffers = {buffer.name for buffer in leaf.outputs} if leaf else {subject}
    recorded = graph.record.origins if graph.record else ()
    values = [one.origin_node for one in recorded if one.buffer in buffers and one.origin_node]
    alone = [one for one in recorded if one.origin_node in values]
    return tuple(values[:1]) if len(alone) == 1 else ()


def _turns(graph: CompiledGraph, decision: Decision, flip: FlipKind) -> bool:
    """Whether the catalogue has a flip for the cause of a decision, as that weighs cost alone."""
    cause = causes_of(decision.kind).get(decision.cause)
    changes = cause.changes if cause else ()
    return any(
        isinstance(change, Turn) and change.flip == flip and applies(change, decision, graph)
        for change in changes
    )


def _of_nest(graph: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    node = decision.names[:1]
    if not node or decision.subject_type != "node":
        return
    if decision.outcome in ("vectorised", "underfilled"):
        yield Flip("scalar", node)
    elif decision.outcome == "scalar" and _turns(graph, decision, "vectorise"):
        yield Flip("vectorise", node)


def _of_threads(graph: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    if decision.outcome == "parallel" and (names := decision.names):
        yield Flip("threads", names[:1], "1")
        if _turns(graph, decision, "scalar"):  # of a scalar loop no step is lost
            yield Flip("scalar", names[:1])


def _of_pair(graph: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    if len(decision.subjects) != 2 or decision.subject_type != "node":
        return
    pair = tuple("_".join(group) for group in decision.subjects)
    if decision.outcome == "fused":
        yield Flip("no-fuse", pair)
    elif decision.outcome == "refused" and _turns(graph, decision, "fuse"):
        yield Flip("fuse", pair)


def _of_value(graph: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    if decision.outcome == "realised" and _turns(graph, decision, "inline"):
        yield Flip("inline", decision.names[:1])
    elif decision.outcome == "inlined" and _turns(graph, decision, "realize"):
        yield Flip("realize", decision.names[:1])


def _of_layout(graph: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    size = decision.operand("size")
    if decision.subject_type != "buffer" or not _turns(graph, decision, "layout"):
        return
    if isinstance(size, tuple) and len(size) in CHANNELS_LAST_RANKS and decision.outcome != "channels-last":
        yield Flip("layout", decision.subjects[0], "channels_last")
    if decision.outcome != "contiguous":
        yield Flip("layout", decision.subjects[0], "contiguous")


def _of_reduction(graph: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    names = decision.names[:1]
    if not names or decision.operand("device") == "cpu":
        return
    match decision.outcome:
        case "persistent" if _turns(graph, decision, "looped"):
            yield Flip("looped", names)
        case "looped" if _turns(graph, decision, "persistent"):
            yield Flip("persistent", names)
        case "split" if decision.subject_type == "buffer":
            yield Flip("split", names, "1")
        case "INNER" | "OUTER" | "DEFAULT" as hint if decision.subject_type == "buffer":
            yield from (
                Flip("reduction-hint", names, other)
                for other in ("INNER", "OUTER", "DEFAULT")
                if other != hint
            )


def _of_index(_: CompiledGraph, decision: Decision) -> Iterator[Flip]:
    if decision.outcome == "int32" and (names := decision.names):
        yield Flip("index-dtype", names[:1], "int64")


_TURNS: Mapping[DecisionKind, Callable[[CompiledGraph, Decision], Iterator[Flip]]] = {
    "vectorisation": _of_nest,
    "threads": _of_threads,
    "fusion": _of_pair,
    "realization": _of_value,
    "layout": _of_layout,
    "reduction": _of_reduction,
    "index-width": _of_index,
}
