"""The flips of each graph that is being compiled: whom they mean there, and what became of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorders.base import Call, Observer, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog, debug_folder, virtual_graph
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.model.codec import to_json
from inductor_probe.model.decision import Decision, Operand, Outcome, TorchFrame
from inductor_probe.model.flip import Flip, FlipKind, FlipOutcome, FlipReason, FlipResult

_MOST_NAMES = 3
_LANGUAGE: Mapping[FlipKind, str] = {
    "vectorise": "C++", "scalar": "C++", "threads": "C++",
    "persistent": "Triton", "looped": "Triton", "index-dtype": "Triton",
}  # fmt: skip
"""Flips of decisions that one backend alone takes: C++ on a CPU, Triton elsewhere."""
_HINTS: frozenset[Outcome] = frozenset(("INNER", "OUTER", "OUTER_TINY", "DEFAULT", "unrolled"))
_PARTS: frozenset[Outcome] = frozenset(("split", "not-split", "unrolled"))
_LOOPS: frozenset[Outcome] = frozenset(("persistent", "looped", "unrolled"))
_VECTORS: frozenset[Outcome] = frozenset(("vectorised", "underfilled", "scalar"))
_OUTCOMES: Mapping[FlipKind, frozenset[Outcome]] = {
    "vectorise": _VECTORS, "scalar": _VECTORS, "split": _PARTS, "reduction-hint": _HINTS,
    "persistent": _LOOPS, "looped": _LOOPS,
}  # fmt: skip
"""Of kinds of which torch decides several things: those that keep it from what a flip turns."""
_Why: TypeAlias = tuple[FlipReason, dict[str, Operand]]


@dataclass
class Turn:
    """A flip in one graph.

    Attributes:
        flip: what was asked for. times: how often it was turned. place: where. subjects: names of what was.
        before, after: what torch chose, and what it is now.
        refusal: why torch could not, with operands. is_so: torch decided so by itself.
        value: the FX node that a buffer's name stands for here, once it is known.
        known: of each subject the nodes that it means, once all are there.
        cause: returns the decision that a refusal rests on, from what was recorded of the graph.
    """

    flip: Flip
    times: int = 0
    place: TorchFrame | None = None
    subjects: tuple[str, ...] = ()
    before: Outcome | None = None
    after: Outcome | None = None
    refusal: tuple[FlipReason, dict[str, Operand]] | None = None
    is_so: bool = False
    value: str | None = None
    known: list[frozenset[str]] | None = None
    cause: Callable[[Sequence[Decision]], Decision | None] | None = None

    def nodes(self) -> list[frozenset[str]]:
        """Return for each subject the names of its nodes in the graph; an empty set where it has none."""
        if self.known is None:
            operations = virtual_graph().operations
            origins = [*self.flip.origins, *[()] * len(self.flip.subjects)]
            self.known = [
                frozenset(node for name in names for node in _nodes_called(name, of, operations))
                for names, of in zip(self.flip.nodes, origins, strict=False)
            ]
        return self.known

    def is_about(self, names: Sequence[str]) -> bool:
        """Whether nodes hold the subject; a flip without a subject is about all."""
        return not self.flip.subjects or not self.nodes()[0].isdisjoint(names)

    def means(self, origin: Any, *names: str) -> bool:
        """Whether a value that is being lowered is the subject.

        Args:
            origin: its FX node. names: what its buffer and its node are, or will be called.
        """
        if not self.flip.subjects:
            return True
        subject, name = self.flip.subjects[0], getattr(origin, "name", None)
        if self.flip.origins and self.flip.origins[0]:
            return name == self.flip.origins[0][0]
        if self.value is not None:
            return name == self.value
        return subject == name or subject in names

    def turned(
        self, place: TorchFrame, subjects: Sequence[str], before: Outcome | None, after: Outcome | None
    ) -> None:
        """Count that the decision was turned."""
        self.times += 1
        self.place, self.before, self.after = place, before, after
        self.subjects = tuple(dict.fromkeys((*self.subjects, *subjects)))
        self.refusal = None

    def refuse(self, reason: FlipReason, **operands: Operand) -> None:
        """Remember why torch could not; it counts unless the decision was turned elsewhere."""
        self.refusal = reason, operands


class _Node(Struct, frozen=True):
    """What is asked of a node when a flip was not met. `kernel`: what it calls, if torch generates none."""

    device: str
    kernel: str | None
    reduces: bool


@dataclass
class _Graph:
    """A graph while it is compiled: its nodes by name, once they are known, its buffers and FX nodes."""

    turns: list[Turn] = field(default_factory=list)
    nodes: dict[str, _Node] = field(default_factory=dict)
    buffers: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    failed: bool = False


class Turns:
    """All flips of a dump, for each graph anew.

    Args:
        flips: what was asked for. events: where what became of them is written. log: of the recorders.
    """

    def __init__(self, flips: Sequence[Flip], events: EventLog, log: DecisionLog) -> None:
        self.log = log
        self._flips = tuple(flips)
        self._events = events
        self._graphs: dict[str, _Graph] = {}  # by folder

    def of(self, *kinds: FlipKind) -> list[Turn]:
        """Return the flips of some kinds that are asked for in the graph that is being compiled."""
        graph = self.here()
        return [turn for turn in graph.turns if turn.flip.kind in kinds] if graph is not None else []

    def here(self) -> _Graph | None:
        """Return the graph that is being compiled."""
        folder = debug_folder()
        if folder is None:
            return None
        return self._graph_in(folder)

    def _graph_in(self, folder: str) -> _Graph:
        if folder not in self._graphs:
            name = Path(folder).name
            flips = (flip for flip in self._flips if flip.graph in (None, name))
            self._graphs[folder] = _Graph([Turn(flip) for flip in flips])
        return self._graphs[folder]

    def write(self, folder: str, *, failed: bool) -> None:
        """Write what became of the flips in the graph of a folder."""
        if failed:
            self._graph_in(folder).failed = True
        graph = self._graphs.pop(folder, _Graph())
        decisions = self.log.decisions(folder)
        for turn in graph.turns:
            result = FlipResult(
                turn.flip, Path(folder).name, "not-met", None, turn.times, turn.place, turn.subjects,
                turn.before, turn.after,
            )  # fmt: skip
            self._events.write("flip", result=to_json(_ended(result, turn, graph, decisions)))


class Flips(Observer):
    """Turns the answers of functions of torch."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns.log)
        self.turns = turns


class Ends(Flips):
    """Sees a graph's names, and that its folder is complete."""

    @sees("torch._inductor.graph", "GraphLowering.codegen")
    def named(self, _: Call, lowering: Any, *__: Any, **___: Any) -> Iterator[None]:
        """Look up what flips mean when all nodes are there."""
        here = self.turns.here()
        if here is not None:
            for turn in here.turns:
                turn.nodes()
            _see(here, lowering)
        yield

    @sees("torch._inductor.debug", "DebugContext.__exit__")
    def left(self, _: Call, context: Any, *args: Any) -> None:
        """Write what became of each flip, before recorders write decisions."""
        if context._path:
            self.turns.write(context._path, failed=args[:1] not in ((), (None,)))


def _see(graph: _Graph, lowering: Any) -> None:
    ir = sys.modules["torch._inductor.ir"]
    graph.buffers = tuple(one.get_name() for one in lowering.buffers)
    graph.values = tuple(node.name for node in lowering.graph.nodes)
    for one in lowering.operations:
        device = one.get_device()
        graph.nodes[one.get_operation_name()] = _Node(
            device=device.type if device is not None else "",
            kernel=kernel_name(one) if isinstance(one, ir.ExternKernel) else None,
            reduces=isinstance(getattr(one, "data", None), ir.Reduction),
        )


def _ended(result: FlipResult, turn: Turn, graph: _Graph, decisions: Sequence[Decision]) -> FlipResult:
    """Return what became of a flip when its graph is complete."""
    outcome: FlipOutcome = "applied" if turn.times else "already-so"
    decision = None
    if turn.refusal is not None:
        (reason, operands), outcome = turn.refusal, "refused"
        decision = turn.cause(decisions) if turn.cause else None
    elif turn.times or turn.is_so:
        return replace(result, outcome=outcome)
    else:
        (reason, operands), outcome = _why_not_met(turn, graph), "not-met"
        if reason == "not-decided":
            decision = _last_about(turn, decisions)
            nodes = [graph.nodes[name] for names in turn.known or () for name in names if name in graph.nodes]
            of_reduction = turn.flip.decides == "reduction" and nodes
            if decision is None and of_reduction and not any(node.reduces for node in nodes):
                reason, operands = "no-reduction", {"subject": turn.flip.subjects[0]}
    kept = replace(decision, stack=()) if decision is not None else None
    return replace(result, outcome=outcome, reason=reason, operands=tuple(operands.items()), decision=kept)


def _why_not_met(turn: Turn, graph: _Graph) -> _Why:
    """Return why torch did not come to the decision that a flip turns, as far as the nodes tell."""
    flip, known = turn.flip, turn.known or []
    for subject, names in zip(flip.subjects, known, strict=False):
        if not names:
            return _why_no_node(turn, subject, graph)
    if graph.failed:
        return "compile-failed", {}
    if len(known) > 1 and (both := known[0] & known[1]):
        return "same-subject", {"node": min(both)}
    about = {name: graph.nodes[name] for names in known for name in names if name in graph.nodes}
    language = _LANGUAGE.get(flip.kind)
    devices = {node.device for node in (about or graph.nodes).values()}
    if language and devices and all((device == "cpu") is (language != "C++") for device in devices):
        operands: dict[str, Operand] = {"subject": flip.subjects[0]} if flip.subjects else {}
        return "other-device", {**operands, "device": min(devices), "language": language}
    for name, node in about.items():
        if node.kernel is not None:
            return "extern-kernel", {"subject": name, "kernel": node.kernel}
    return "not-decided", {}


def _why_no_node(turn: Turn, subject: str, graph: _Graph) -> _Why:
    """Return why a subject has no node: there is none of that name, or its value is in no buffer."""
    origins = dict(zip(turn.flip.subjects, turn.flip.origins, strict=False)).get(subject, ())
    value = origins[0] if origins else subject
    for other in graph.turns:
        if other.flip.kind == "inline" and other.times and value in (other.value, *other.flip.subjects):
            return "inlined-by-flip", {"subject": subject, "flip": str(other.flip)}
    if graph.failed and not graph.nodes:
        return "compile-failed", {}
    if value in graph.values:
        return "without-node", {"subject": subject}
    every = (*graph.nodes, *graph.buffers, *graph.values)
    near = get_close_matches(subject, every, n=_MOST_NAMES, cutoff=0.5)
    return "no-subject", {"subject": subject, "near": tuple(near)}


def _last_about(turn: Turn, decisions: Sequence[Decision]) -> Decision | None:
    """Return the last decision of the kind about the subject; None where it has none, or there is none."""
    names = {name for nodes in turn.known or () for name in nodes} | {*turn.flip.subjects}
    outcomes = _OUTCOMES.get(turn.flip.kind)
    for one in reversed(decisions):
        if one.kind != turn.flip.decides or one.speculative or (outcomes and one.outcome not in outcomes):
            continue
        if any(names & {*group} for group in one.subjects):
            return one
    return None


def _nodes_called(name: str, origins: Sequence[str], operations: Sequence[Any]) -> Iterator[str]:
    """Yield the nodes that a name means: of a node, its buffer, or the FX node whose value it holds.

    With `origins` it is the node of that name if it holds the same value here, else the one that does.
    """
    called = [one for one in operations if name == one.get_operation_name() or name in _outputs(one)]
    if origins:
        called = [one for one in called if _origin(one) == origins[0]]
    if not called:
        value = origins[0] if origins else name
        called = [one for one in operations if _origin(one) == value]
    yield from (one.get_operation_name() for one in called)


def _outputs(operation: Any) -> list[str]:
    return [buffer.get_name() for buffer in operation.get_outputs()]


def _origin(operation: Any) -> str | None:
    return getattr(operation.get_origin_node(), "name", None)


def next_names(graph: Any) -> tuple[str, str]:
    """Return what the next buffer of a graph (`GraphLowering.register_buffer`), and its node, will be."""
    names = f"buf{len(graph.buffers)}", f"op{len(graph.operations)}"
    return str(graph.qualify_name(names[0])), str(graph.qualify_name(names[1]))
