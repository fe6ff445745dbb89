"""Why something of a graph is as it is: the decisions that concern a subject, each with what it rests on.

A decision names unfused nodes, buffers or FX nodes. A subject is looked up as the same three sets, so that
every subject finds every kind of decision: `buf3` finds what was decided of the buffer and of the node that
writes it, `cpp_fused_flip_0` what was decided of each of its nodes, `model.py:12` and `aten.cumprod` what was
decided of all that became of them.

What is not recorded is taken from torch's log of fusion, and from what the dump proves (`Cause.remark`): it
is `read`, not `recorded`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.causes.conditions import applies
from inductor_probe.analysis.causes.nests import nest_of, nest_span
from inductor_probe.analysis.causes.pairs import ABOUT_MANY, decision_of_pair, untried_of_node
from inductor_probe.analysis.causes.proved import KINDS, proved
from inductor_probe.analysis.causes.times import Times
from inductor_probe.analysis.flips import flips_of_decision
from inductor_probe.analysis.fusion.decisions import decision_of_ir
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import fx_of, links, nodes_of
from inductor_probe.analysis.names import ANYTHING, became, gone, resolve
from inductor_probe.analysis.run_remarks import unfinished
from inductor_probe.analysis.work import buffer_traffic, counted_nodes, is_stored, node_traffic, shared_bytes
from inductor_probe.catalogue import causes_of, remark_of
from inductor_probe.catalogue.entries import By, Source
from inductor_probe.errors import ProbeError
from inductor_probe.model.cause import TURN, Cause, Change, GraphCauses
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import DECISION_KINDS, Decision, DecisionKind
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.remark import Remark, Subject
from inductor_probe.model.setting import CONFIG, Setting
from inductor_probe.model.span import Span

_RANKS = {"hazard": 0, "missed": 0, "analysis": 1, "passed": 2}
_COPIES = (("aten.clone.default",), ("aten.copy.default",))
_RANKS_OF_SUBJECT = {"hazard": 0, "missed": 0, "passed": 1, "analysis": 2}
"""In the ledger of a graph, what went well comes last; of one subject, it says what the subject is."""


class _Scope(Struct, frozen=True):
    """What belongs to a subject."""

    nodes: frozenset[str]
    buffers: frozenset[str]
    fx: frozenset[str]
    direct: frozenset[str] = frozenset()


def graph_causes(
    graph: CompiledGraph,
    names: Sequence[str] = (),
    kinds: Collection[str] = (),
    times: Times | None = None,
    logged: Sequence[Decision] | None = None,
) -> GraphCauses:
    """Return what was decided about `names` in a graph, and why; all that was decided without a name.

    Args:
        names: of one subject, or of two for what was decided about the pair.
        kinds: only these kinds of decisions; all if empty.
        times: how long loop nests and kernels take, as far as they were timed.
        logged: decisions that torch's log has, of a dump that does not record how nodes were fused; None
            without a log.

    Raises:
        NotFoundError: the graph has no such subject; near names are offered. ProbeError: several fit, or
            both names mean the same nodes.
    """
    subjects = tuple(resolve(graph, name, ANYTHING) for name in names)
    scopes = [_scope(graph, subject) for subject in subjects]
    if len(scopes) > 1 and scopes[0].nodes and scopes[0].nodes == scopes[1].nodes:
        both = " and ".join(subject.name for subject in subjects)
        raise ProbeError(f"{both} both name {'_'.join(sorted(scopes[0].nodes))}", f"probe why {names[0]}")
    recorded = graph.decisions
    kinds_recorded = recorded.recorders if recorded else ()
    everything = (*(recorded.decisions if recorded else ()), *(logged or ()))
    decisions = [one for one in everything if _is_of(one, kinds) and _concerns(one, scopes)]
    if len(scopes) == 2 and (not kinds or "fusion" in kinds):
        nodes = scopes[0].nodes - scopes[1].nodes, scopes[1].nodes - scopes[0].nodes
        final = decision_of_pair(everything, *nodes) if all(nodes) else None
        if final is None and all(nodes) and "fusion" not in kinds_recorded:
            final = decision_of_ir(graph, *nodes, logged=logged is not None)
        decisions = [one for one in decisions if one.kind != "fusion" or one.speculative]
        decisions += [final] if final and not final.speculative else []
    elif len(scopes) == 1:
        of_node = (  # of decisions about all nodes what they say of this one
            untried_of_node(everything, one, scopes[0].nodes) if one.cause in ABOUT_MANY else one
            for one in decisions
        )
        decisions = [one for one in of_node if one is not None]
    maker = _Maker(graph, times or Times())
    causes = [maker.cause(decision) for decision in decisions if not decision.speculative]
    if len(subjects) < 2:
        known = {*kinds_recorded, *(["fusion"] if logged else [])}
        causes += maker.read(scopes, {*(kinds or KINDS)} - known)
    if len(subjects) == 1:
        causes = [replace(cause, direct=_is_direct(cause, subjects[0])) for cause in causes]
    ranks = _RANKS_OF_SUBJECT if subjects else _RANKS
    fx = tuple(name for one in subjects if one.type == "operator" for name in became(graph, one.name))
    return GraphCauses(
        graph=graph.name,
        asked=subjects,
        recorded=kinds_recorded,
        looked_for=tuple(kind for kind in DECISION_KINDS if not kinds or kind in kinds),
        causes=tuple(sorted(causes, key=lambda cause: _order(cause, ranks))),
        tried=sum(decision.speculative for decision in decisions),
        compile_failed=tuple(unfinished(graph)) if graph.failures else (),
        problems=recorded.problems if recorded else (),
        became=fx,
        gone=gone(graph, fx),
    )


def with_causes(graph: CompiledGraph, rows: Iterable[LayoutRow]) -> tuple[LayoutRow, ...]:
    """Return rows of buffers with what was recorded of each: its layout, its copies, why it is there."""
    return tuple(
        replace(
            row,
            causes=tuple(
                cause
                for cause in graph_causes(graph, [row.buffer]).causes
                if cause.decision is not None and cause.decision.subject_type == "buffer"
            ),
        )
        for row in rows
    )


def _order(cause: Cause, ranks: Mapping[str, int]) -> tuple[bool, int, float, int, int]:
    """Sort key: what is about the subject itself; then missed ones; then by time, and by bytes at stake."""
    return (
        not cause.direct,
        ranks[cause.kind],
        -cause.stake,
        -(cause.cost or 0),
        cause.decision.number if cause.decision else 0,
    )


def _is_direct(cause: Cause, subject: Subject) -> bool:
    """Whether a cause is about a subject itself: `op3` in `op3_op4`, `buf3`, the loops of a kernel."""
    match subject.type:
        case "node" | "buffer":
            names = {name for about in cause.subjects for name in about.name.split("_")}
            mine = subject.name.split("_") if subject.type == "node" else ()
            return subject in cause.subjects or not names.isdisjoint(mine)
        case "kernel":
            decision = cause.decision
            of_code = decision is None or decision.subject_type == "node" or decision.outcome == "extern"
            return of_code and len(cause.subjects) == 1 and cause.kernels == (subject.name,)
    return True


def _scope(graph: CompiledGraph, subject: Subject) -> _Scope:
    nodes = nodes_of(graph, subject)
    if subject.type == "buffer" and not nodes:  # what reads an input is all that there is to say of it
        nodes = tuple(index_of(graph).nodes.readers.get(subject.name, ()))
    scope = _of_nodes(graph, nodes)
    if subject.type == "buffer":
        return _Scope(scope.nodes, frozenset([subject.name]), scope.fx)
    return _Scope(scope.nodes, scope.buffers, fx_of(graph, subject) or scope.fx)


def _of_nodes(graph: CompiledGraph, nodes: Sequence[str]) -> _Scope:
    index = index_of(graph)
    leaves = [leaf for name in nodes if (leaf := index.nodes.leaf.get(name) or index.before.leaf.get(name))]
    return _Scope(
        nodes=frozenset(nodes),
        buffers=frozenset(buffer.name for leaf in leaves for buffer in leaf.outputs),
        fx=frozenset(name for link in links(graph).of_nodes(nodes) for name in link.fx),
    )


def _names_of(decision: Decision, scope: _Scope) -> frozenset[str]:
    match decision.subject_type:
        case "buffer":
            return scope.buffers
        case "fx":
            return scope.fx
    return scope.nodes


def _is_of(decision: Decision, kinds: Collection[str]) -> bool:
    """Whether a decision is of some kinds, or of any: a copy that a pass removed is about copies, too."""
    is_copy = decision.outcome == "removed" and decision.operand("operators") in _COPIES
    return not kinds or decision.kind in kinds or ("copy" in kinds and is_copy)


def _concerns(decision: Decision, scopes: Sequence[_Scope]) -> bool:
    """Whether a decision is about the subjects: any side of it about one, each about one of a pair."""
    if not scopes:
        return True
    sides = [
        {number for number, scope in enumerate(scopes) if not _names_of(decision, scope).isdisjoint(group)}
        for group in decision.subjects
    ]
    if len(scopes) == 1:
        return any(sides)
    if len(sides) != 2:
        return False
    first, second = sides
    return (0 in first and 1 in second) or (1 in first and 0 in second)


class _Maker:
    """Makes causes of the decisions of one graph."""

    def __init__(self, graph: CompiledGraph, times: Times) -> None:
        self._graph = graph
        self._times = times
        self._settings = dict(graph.runnable.settings) if graph.runnable else None

    def cause(self, decision: Decision) -> Cause:
        """Return a decision with whom it concerns, what is at stake, and what would turn it."""
        index, nodes = index_of(self._graph), self._nodes(decision)
        kernels, fx = self._linked(nodes)
        fx = decision.names if decision.subject_type == "fx" else fx
        if decision.subject_type == "graph" and (node := decision.operand("node")) in index.fx:
            fx = (str(node),)  # the first one on a CPU, which CUDA graphs do not replay
        nest = nest_of(self._graph, decision)
        lines = [leaf.span for leaf in index.nodes.named(nodes) if leaf.span]
        code = nest_span(self._graph, *nest) if nest else None
        times = self._times.pieces(kernels, nodes, nest)
        return Cause(
            kind=remark_of(decision),
            subjects=self._subjects(decision),
            knowledge=decision.knowledge,
            decision=decision,
            cost=self._cost(decision, nodes),
            times=times,
            moved=self._moved(decision, nodes) if times else None,
            kernels=kernels,
            nest=nest[1] + 1 if nest else None,
            nodes=nodes,
            counted=counted_nodes(self._graph, nodes),
            fx=fx,
            sources=index.sources(fx),
            evidence=(
                *([decision.span] if decision.span else []),
                *([code] if code else _definitions(self._graph, kernels)),
                *lines,
            ),
            changes=tuple(self._changes(decision)),
        )

    def read(self, scopes: Sequence[_Scope], kinds: Collection[str]) -> Iterator[Cause]:
        """Yield what the dump proves of decisions of kinds that were not recorded."""
        for kind, remark, nodes in proved(self._graph) if kinds else ():
            if kind in kinds and (not scopes or not scopes[0].nodes.isdisjoint(nodes)):
                yield self._of_remark(remark, nodes, kind)

    def _of_remark(self, remark: Remark, nodes: tuple[str, ...], kind: DecisionKind) -> Cause:
        kernels, fx = self._linked(nodes)
        kernels = (remark.subject.name,) if remark.subject.type == "kernel" else kernels
        return Cause(
            kind=remark.kind,
            subjects=remark.subjects,
            knowledge=remark.knowledge,
            remark=remark,
            cost=remark.cost,
            times=self._times.pieces(kernels, nodes),
            kernels=kernels,
            nodes=nodes,
            counted=counted_nodes(self._graph, nodes),
            fx=fx,
            sources=index_of(self._graph).sources(fx),
            evidence=remark.evidence,
            proved_kind=kind,
        )

    def _linked(self, nodes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the kernels that run nodes, and the FX nodes that they compute."""
        linked = links(self._graph).of_nodes(nodes)
        kernels = dict.fromkeys(link.kernel for link in linked if link.kernel)
        return tuple(kernels), tuple(dict.fromkeys(name for link in linked for name in link.fx))

    def _nodes(self, decision: Decision) -> tuple[str, ...]:
        index, names = index_of(self._graph), decision.names
        match decision.subject_type:
            case "node":
                return names
            case "buffer":
                nodes = (index.nodes.producer.get(name) for name in names)
                return tuple(dict.fromkeys(node for node in nodes if node))
            case "fx":
                into = decision.operand("into")  # of an inlined value; many more nodes come from it
                if isinstance(into, tuple):
                    return tuple(dict.fromkeys(filter(None, map(index.nodes.producer.get, into))))
                linked = links(self._graph).nodes
                return tuple(node for node, link in linked.items() if not set(names).isdisjoint(link.fx))
            case "graph":
                cut = decision.operand("nodes")  # what CUDA graphs leave out
                return tuple(leaf.name for leaf in index.nodes.named(cut if isinstance(cut, tuple) else ()))
        return ()

    def _subjects(self, decision: Decision) -> tuple[Subject, ...]:
        match decision.subject_type:
            case "node":
                return tuple(Subject("node", "_".join(group)) for group in decision.subjects if group)
            case "buffer" | "fx" as type_:
                return tuple(Subject(type_, name) for name in decision.names)
        return (Subject("graph", self._graph.name),)

    def _cost(self, decision: Decision, nodes: Sequence[str]) -> int | None:
        """Return the bytes at stake: an operand that says them, or else what the subjects move.

        Of a pair it is what both use, also where torch counted none of it as shared; of buffers that have no
        memory it is nothing.
        """
        stored = (is_stored(self._graph, name) for name in decision.names)
        if decision.subject_type == "buffer" and not any(stored):
            return 0
        size = decision.operand("bytes")
        if isinstance(size, int) and not isinstance(size, bool):
            return size
        match decision.subject_type, len(decision.subjects):
            case "node", 2:
                counted = decision.operand("shared_bytes")
                sizes = [shared_bytes(self._graph, *decision.subjects), counted]
                return max((size for size in sizes if isinstance(size, int)), default=None)
            case "buffer", _:
                traffic = (buffer_traffic(self._graph, name) for name in decision.names)
                known = [size for size in traffic if size is not None]
                return sum(known) if known else None
        return node_traffic(self._graph, nodes) if nodes else None

    def _moved(self, decision: Decision, nodes: Sequence[str]) -> int | None:
        """Return the bytes that its own are a part of; None of a decision about all that its nodes do."""
        of_part = decision.subject_type == "buffer" or len(decision.subjects) == 2
        return node_traffic(self._graph, nodes) if of_part else None

    def _changes(self, decision: Decision) -> Iterator[Change]:
        cause = causes_of(decision.kind).get(decision.cause)
        for change in cause.changes if cause else ():
            if not applies(change, decision, self._graph):
                continue
            match change:
                case Source(code=code, differs=differs):
                    yield Change(code, differs=differs)
                case By() if setting := self._setting(change, decision):
                    yield Change(change.code, setting, differs=change.differs)
        if remark_of(decision) == "missed":
            for flip in flips_of_decision(self._graph, decision):
                yield Change(TURN, operands=(("option", flip.option),))

    def _setting(self, change: By, decision: Decision) -> Setting | None:
        """Return the setting with its present value and the one to try; None where it is so already."""
        value = change.value(decision) if callable(change.value) else change.value
        name = f"{CONFIG}.{change.code}"
        present = "default" if self._settings is not None else None
        if self._settings is not None and name in self._settings:
            present = self._settings[name]
        elif change.present is not None and (compared := decision.operand(change.present)) is not None:
            present = str(compared)
        is_set = self._settings is not None and name in self._settings
        if value is None or present == value or (change.is_default and not is_set):
            return None
        return Setting(name, value, present)


def _definitions(graph: CompiledGraph, kernels: Iterable[str]) -> Iterator[Span]:
    defined = index_of(graph).kernels
    yield from (span for name in kernels if name in defined and (span := defined[name].span))
