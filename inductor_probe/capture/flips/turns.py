"""The flips of each graph that is being compiled: whom they mean there, and what became of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorders.decision_log import DecisionLog, debug_folder
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.codec import to_json
from inductor_probe.model.decision import Decision, Operand, Outcome, TorchFrame
from inductor_probe.model.flip import Flip, FlipKind, FlipOutcome, FlipReason, FlipResult

_MOST_NAMES = 3


@dataclass
class Turn:
    """A flip in one graph.

    Attributes:
        flip: what was asked for. times: how often it was turned. place: where. subjects: names of what was.
        before, after: what torch chose, and what it is now.
        refusal: why torch could not, with operands. is_so: torch decided so by itself.
        value: the FX node that a buffer's name stands for here, once it is known.
        known: of each subject the nodes that it means, once all are there.
        cause: returns operands of a refusal from what was recorded of the graph.
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
    cause: Callable[[Sequence[Decision]], dict[str, Operand]] | None = None

    def nodes(self) -> list[frozenset[str]]:
        """Return for each subject the names of its nodes in the graph; an empty set where it has none."""
        if self.known is None:
            operations = _graph().operations
            origins = [*self.flip.origins, *[()] * len(self.flip.subjects)]
            self.known = [
                frozenset(node for name in names for node in _nodes_called(name, of, operations))
                for names, of in zip(self.flip.nodes, origins, strict=False)
            ]
        return self.known

    def is_about(self, names: Sequence[str]) -> bool:
        """Whether nodes hold the subject; a flip without a subject is about all."""
        return not self.flip.subjects or not self.nodes()[0].isdisjoint(names)

    def means(self, origin: Any, buffer: str) -> bool:
        """Whether a value that is being lowered is the subject.

        Args:
            origin: its FX node. buffer: what it will be called if it is the next one to be realised.
        """
        if not self.flip.subjects:
            return True
        subject, name = self.flip.subjects[0], getattr(origin, "name", None)
        if self.flip.origins and self.flip.origins[0]:
            return name == self.flip.origins[0][0]
        if self.value is not None:
            return name == self.value
        return subject in (name, buffer)

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


@dataclass
class _Graph:
    turns: list[Turn] = field(default_factory=list)
    operations: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


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
        graph = self._here()
        return [turn for turn in graph.turns if turn.flip.kind in kinds] if graph is not None else []

    def hooks(self) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
        """Yield what sees a graph's names, and that its folder is complete."""
        yield "torch._inductor.graph", self._see_names
        yield "torch._inductor.debug", self._see_end

    def _here(self) -> _Graph | None:
        folder = debug_folder()
        if folder is None:
            return None
        if folder not in self._graphs:
            name = Path(folder).name
            flips = (flip for flip in self._flips if flip.graph in (None, name))
            self._graphs[folder] = _Graph([Turn(flip) for flip in flips])
        return self._graphs[folder]

    def _see_names(self, graph: Any) -> None:
        def around(codegen: Callable[..., Any]) -> Callable[..., Any]:
            def codegen_and_see(lowering: Any, *args: Any, **kwargs: Any) -> Any:
                here = self._here()
                if here is not None:
                    here.operations = tuple(one.get_operation_name() for one in lowering.operations)
                    here.buffers = tuple(one.get_name() for one in lowering.buffers)
                    here.values = tuple(node.name for node in lowering.graph.nodes)
                    for turn in here.turns:
                        turn.nodes()
                return codegen(lowering, *args, **kwargs)

            return codegen_and_see

        wrap(graph, "GraphLowering.codegen", around)

    def _see_end(self, debug: Any) -> None:
        def around(leave: Callable[..., Any]) -> Callable[..., Any]:
            def leave_and_write(context: Any, *args: Any) -> Any:
                result = leave(context, *args)
                if context._path:
                    self._write(context._path)
                return result

            return leave_and_write

        wrap(debug, "DebugContext.__exit__", around)

    def _write(self, folder: str) -> None:
        graph = self._graphs.pop(folder, _Graph())
        decisions = self.log.decisions(folder)
        for turn in graph.turns:
            outcome, reason, operands = _end_of(turn, graph, decisions)
            result = FlipResult(
                turn.flip, Path(folder).name, outcome, reason, turn.times, turn.place, turn.subjects,
                turn.before, turn.after, tuple(operands.items()),
            )  # fmt: skip
            self._events.write("flip", result=to_json(result))


def _end_of(
    turn: Turn, graph: _Graph, decisions: Sequence[Decision]
) -> tuple[FlipOutcome, FlipReason | None, dict[str, Operand]]:
    """Return what became of a flip when its graph is complete."""
    if turn.refusal is not None:
        reason, operands = turn.refusal
        return "refused", reason, {**operands, **(turn.cause(decisions) if turn.cause else {})}
    if turn.times:
        return "applied", None, {}
    if turn.is_so:
        return "already-so", None, {}
    known = turn.known or []
    for subject, nodes in zip(turn.flip.subjects, known, strict=False):
        if not nodes and subject not in graph.values:
            every = (*graph.operations, *graph.buffers, *graph.values)
            near = get_close_matches(subject, every, n=_MOST_NAMES, cutoff=0.5)
            return "not-met", "no-subject", {"subject": subject, "near": tuple(near)}
    names = {name for nodes in known for name in nodes} | {*turn.flip.subjects}
    about = [one for one in decisions if one.kind == turn.flip.decides and not one.speculative]
    last = next((one for one in reversed(about) if any(names & {*group} for group in one.subjects)), None)
    if last is None:
        return "not-met", "not-decided", {}
    return "not-met", "not-decided", {"outcome": last.outcome, "cause": last.cause}


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


def _graph() -> Any:
    return sys.modules["torch._inductor.virtualized"].V.graph


def next_buffer(graph: Any) -> str:
    """Return what the next buffer of a graph will be called (`GraphLowering.register_buffer`)."""
    return str(graph.qualify_name(f"buf{len(graph.buffers)}"))
