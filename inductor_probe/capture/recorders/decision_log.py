"""Decisions of the graphs that are being compiled, in memory until a graph's folder is complete."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from msgspec.structs import replace

from inductor_probe.capture.branches import CallPath, CannotWatchError, SeenTest, matches
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorder import compile_id
from inductor_probe.capture.torch_places import watch
from inductor_probe.catalogue import causes_by_test, causes_of, faults_of
from inductor_probe.errors import ProbeError
from inductor_probe.model.decision import (
    DECISIONS_NAME,
    CauseCode,
    Decision,
    DecisionKind,
    Decisions,
    Operand,
    Outcome,
    SubjectType,
    TorchFrame,
    TorchTest,
)
from inductor_probe.model.flip import Flip
from inductor_probe.store.decisions import write_decisions

MOST_FRAMES = 6
"""Frames of inductor that are kept of a stack: enough to see who asked."""
MOST_DECISIONS = 60_000
"""Of a graph, but for those that were kept: torch tries 64 fusions for each node. About 5 MB."""
_OF_TORCH = frozenset(("asker", "function", "lowering", "operator", "tag", "text"))
"""Operands that say who wanted a decision: not of one that a flip turned."""
_SOURCE = re.compile(r'File "(?P<path>.+?)", line (?P<line>\d+), in ')
_INDUCTOR = f"{os.sep}torch{os.sep}_inductor{os.sep}"


@dataclass
class _Graph:
    """Decisions of a graph by their number.

    `latest` is the number of the last one of a kind and a key; `names` tell the buffers that some are about;
    `turned` are those that a flip turned, with its text.
    """

    decisions: dict[int, Decision] = field(default_factory=dict)
    latest: defaultdict[DecisionKind, dict[object, int]] = field(default_factory=lambda: defaultdict(dict))
    names: dict[int, Callable[[], str | None]] = field(default_factory=dict)
    turned: dict[tuple[DecisionKind, frozenset[str], Outcome], str] = field(default_factory=dict)
    count: int = 0


class DecisionLog:
    """Collects decisions and writes those of a graph beside what torch dumps of it.

    A compile takes thousands of decisions: recording one costs some microseconds, and no text is made before
    the graph's folder is complete.

    Args:
        events: where what could not be recorded is noted.
        simulated: a GPU is simulated: what torch times on it is no measure.

    Attributes:
        recorders: those that write into it, by class.
    """

    def __init__(self, events: EventLog, *, simulated: bool = False) -> None:
        self.simulated = simulated
        self._events = events
        self._graphs: dict[str, _Graph] = {}  # by folder
        self._waiting: dict[str | None, _Graph] = {}  # by compile id
        self._kinds: list[DecisionKind] = []
        self._noted: set[str] = set()
        self.recorders: dict[type, Any] = {}

    def recorded(self, kind: DecisionKind) -> None:
        """Remember that decisions of a kind are recorded on this torch."""
        if kind not in self._kinds:
            self._kinds.append(kind)

    def record(
        self,
        kind: DecisionKind,
        subjects: tuple[tuple[str, ...], ...],
        outcome: Outcome,
        cause: CauseCode,
        place: TorchFrame,
        *,
        operands: Mapping[str, Operand] | tuple[tuple[str, Operand], ...],
        subject_type: SubjectType = "node",
        key: object = None,
        speculative: bool = False,
        frames: tuple[TorchFrame, ...] | None = None,
        times: int = 1,
        named: Callable[[], str | None] | None = None,
        waits: bool = False,
        tests: tuple[TorchTest, ...] = (),
    ) -> int | None:
        """Add a decision about the graph that is being compiled; return its number, None outside of a graph.

        Args:
            key: decisions of a kind with equal keys are answers to one question: only the last is kept, with
                the number of times that torch asked. None: each is kept.
            frames: the stack, for what is recorded after torch decided it. None: that of the caller.
            waits: outside of a graph, keep it for the graph of this compile that has one of its subjects: the
                pre-grad and joint passes run before there is a folder.
            named: returns the name of the buffer that it is about, when the graph is written: what is not a
                buffer yet has no name. Where it returns None, `subjects` stay.
            For the rest see `Decision`.
        """
        folder = debug_folder()
        if folder is None and not waits:
            return None
        graphs: dict[Any, _Graph] = self._graphs if folder is not None else self._waiting
        name = folder if folder is not None else compile_id()
        graph = graphs.get(name)
        if graph is None:
            graph = graphs[name] = _Graph()
        graph.count += 1
        if graph.turned:
            about = frozenset(name for group in subjects for name in group)
            if (flip := graph.turned.get((kind, about, outcome))) is not None:
                cause, operands = "turned", _of_turned(flip, dict(operands))
        if key is not None:
            numbers = graph.latest[kind]
            before = numbers.get(key)
            times += graph.decisions.pop(before).times if before is not None else 0
            numbers[key] = graph.count
        row = operands if isinstance(operands, tuple) else tuple(operands.items())
        graph.decisions[graph.count] = Decision(
            graph.count, kind, subject_type, subjects, outcome, cause, row, place,
            tuple(stack(sys._getframe(1))) if frames is None else frames, speculative, times, tests,
        )  # fmt: skip
        if named is not None:
            graph.names[graph.count] = named
        return graph.count

    def begun(self, folder: str, names: Set[str]) -> None:
        """Give a graph, whose FX nodes are `names`, what was decided about it before it had a folder.

        A joint graph becomes a forward and a backward one: the forward graph takes decisions about the graph
        as a whole and those about its nodes, and leaves the others to the backward graph.
        """
        waiting = self._waiting.pop(compile_id(), None)
        if waiting is None:
            return
        graph = self._graphs.setdefault(folder, _Graph())
        later = _Graph(count=waiting.count)
        keys = {number: (kind, key) for kind, row in waiting.latest.items() for key, number in row.items()}
        for number, decision in waiting.decisions.items():
            is_here = decision.subject_type != "fx" or any(
                not names.isdisjoint(group) for group in decision.subjects
            )
            if is_here or "_forward_" not in Path(folder).name:
                graph.count += 1
                graph.decisions[graph.count] = replace(decision, number=graph.count)
                if number in keys:
                    kind, key = keys[number]
                    graph.latest[kind][key] = graph.count
            else:
                later.decisions[number] = decision
        if later.decisions:
            self._waiting[compile_id()] = later

    def turn(self, kind: DecisionKind, names: Iterable[str], outcomes: Set[Outcome], flip: Flip) -> None:
        """Remember that a flip turned a decision, so that its cause is that, not what torch compares.

        Args:
            names: all that it is about. outcomes: of the question that was turned.
        """
        folder = debug_folder()
        if folder is not None:
            about, graph = frozenset(names), self._graphs.setdefault(folder, _Graph())
            graph.turned.update({(kind, about, outcome): str(flip) for outcome in outcomes})

    def is_turned(self, kind: DecisionKind, names: Iterable[str]) -> bool:
        """Whether a flip turned a decision of a kind about these names in the graph that is compiled now."""
        about, graph = frozenset(names), self._current()
        return graph is not None and any(key[:2] == (kind, about) for key in graph.turned)

    def _current(self) -> _Graph | None:
        """Return the graph that is being compiled, or what waits for one that has no folder yet."""
        folder = debug_folder()
        return self._graphs.get(folder) if folder is not None else self._waiting.get(compile_id())

    def decisions(self, folder: str) -> tuple[Decision, ...]:
        """Return the decisions about the graph in `folder` until they are written."""
        graph = self._graphs.get(folder, _Graph())
        return tuple(graph.decisions.values())

    def forget(self, kind: DecisionKind, key: object) -> None:
        """Drop the decision of that key: torch did it once more, and there was nothing to decide any more."""
        graph = self._current()
        if graph is not None and (number := graph.latest[kind].pop(key, None)) is not None:
            graph.decisions.pop(number, None)

    def latest(self, kind: DecisionKind, key: object) -> Decision | None:
        """Return the last decision of that key about the graph that is being compiled."""
        graph = self._current()
        return graph.decisions.get(graph.latest[kind].get(key, 0)) if graph is not None else None

    def revise(self, number: int | None, **changes: Any) -> None:
        """Change fields of a decision about the graph that is being compiled, by its number."""
        graph = self._current()
        if graph is not None and number is not None and number in graph.decisions:
            before = graph.decisions[number]
            if before.cause == "turned" and "operands" in changes:
                operands = _of_turned(str(before.operand("flip")), dict(changes["operands"]))
                changes["operands"] = tuple(operands.items())
            graph.decisions[number] = replace(before, **changes)

    def write(self, folder: str) -> None:
        """Write the decisions about the graph in `folder`, also if there are none, and forget them."""
        graph = self._graphs.pop(folder, _Graph())
        if not self._kinds:
            return
        for number, name in graph.names.items():
            self.safely(_rename, graph.decisions, number, name)
        torch = sys.modules["torch"].__version__
        kept = self._kept(list(graph.decisions.values()))
        self.safely(self._check, kept)
        decisions = Decisions(str(torch), tuple(self._kinds), tuple(kept))
        try:
            write_decisions(Path(folder) / DECISIONS_NAME, decisions)
        except Exception as error:  # also of an operand that has no JSON: the compile must not end for it
            self.note("write", error)

    def _check(self, decisions: Iterable[Decision]) -> None:
        """Note what of decisions the catalogue does not have, once for each cause."""
        rows: set[tuple[Outcome, CauseCode, int]] = set()  # thousands of tries have the same few operands
        for decision in decisions:
            row = decision.outcome, decision.cause, id(decision.operands)
            if row not in rows:
                rows.add(row)
                for fault in faults_of(decision):
                    self.note(f"{decision.kind}, {decision.cause}", ProbeError(fault))

    def _kept(self, decisions: list[Decision]) -> list[Decision]:
        """Return what is written: of very many decisions the first tries that were not kept are left out."""
        more = len(decisions) - MOST_DECISIONS
        if more <= 0:
            return decisions
        tries = [decision.number for decision in decisions if decision.speculative][:more]
        left_out = frozenset(tries)
        self.note("write", ProbeError(f"{len(tries)} of {len(decisions)} decisions, all tries, are left out"))
        return [decision for decision in decisions if decision.number not in left_out]

    def watch(self, module: ModuleType, name: str, *nested: str) -> None:
        """Watch a function of torch, and those `nested` in it; one that this torch lacks is a note."""
        try:
            watch(module, name, *nested)
        except (AttributeError, CannotWatchError) as error:
            self.note(f"watching {name}", error)

    def safely(self, record: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Call `record`; what it raises becomes a note: it reads what is private to torch."""
        try:
            record(*args, **kwargs)
        except Exception as error:  # the user's compile must not end for it
            module = getattr(record, "__module__", "").rpartition(".")[2]
            self.note(f"{module}.{getattr(record, '__qualname__', record)}", error)

    def note(self, recorder: str, error: Exception) -> None:
        """Say in the manifest, once for each recorder, what could not be recorded."""
        if recorder not in self._noted:
            self._noted.add(recorder)
            self._events.note("recorder-failed", recorder=recorder, error=f"{type(error).__name__}: {error}")


def _of_turned(flip: str, operands: Mapping[str, Operand]) -> dict[str, Operand]:
    """Return operands of a decision that a flip turned: nobody in torch asked for it."""
    return {"flip": flip, **{name: value for name, value in operands.items() if name not in _OF_TORCH}}


def _rename(decisions: dict[int, Decision], number: int, named: Callable[[], str | None]) -> None:
    name = named()
    if number in decisions and name is not None:
        decisions[number] = replace(decisions[number], subject_type="buffer", subjects=((name,),))


def debug_folder() -> str | None:
    """Return the folder of the graph that inductor is compiling now."""
    virtualized: Any = sys.modules.get("torch._inductor.virtualized")
    return getattr(virtualized.V.debug, "_path", None) if virtualized is not None else None


def size_of(size: Any) -> int | str:
    """Return a size of torch as an operand: a symbolic one is its text. No guard comes of it."""
    size = _expression(size)
    return int(size) if getattr(size, "is_number", True) else str(size)


def _expression(size: Any) -> Any:
    """Return the expression of a `torch.SymInt`, of which `int` would make a guard; else the size."""
    return getattr(getattr(size, "node", None), "expr", size)


@functools.lru_cache(maxsize=4096, typed=True)
def printed(index: Any) -> str:
    """Return the text of an expression of sympy, which takes 60 us to print: the same few are met again."""
    return str(index)


def hint_of(size: Any, fallback: int) -> int:
    """Return a size as torch guesses it: of a symbolic one its hint, or `fallback`. No guard comes of it."""
    size = _expression(size)
    if getattr(size, "is_number", True):
        return int(size)
    sizes = sys.modules["torch._inductor.virtualized"].V.graph.sizevars
    # torch 2.13 has optimization_hint, 2.11 has size_hint.
    ask = getattr(sizes, "optimization_hint", None) or sizes.size_hint
    return int(ask(size, fallback=fallback))


def is_gpu(device: Any) -> bool:
    """Return whether a device is of a kind that torch takes for a GPU."""
    return bool(sys.modules["torch._inductor.utils"].is_gpu(device.type))


def names_of(nodes: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of scheduler nodes."""
    return tuple(node.get_name() for node in nodes)


def node_in(kernel: Any) -> str:
    """Return the node whose code a kernel is given now; empty where it is given none."""
    node = getattr(kernel, "current_node", None)
    return str(node.get_name()) if node is not None else ""


def fx_in_lowering() -> Any:
    """Return the FX node that is lowered now, None where none is."""
    return virtual_graph().current_node


def virtual_graph() -> Any:
    """Return torch's `V.graph`: the `GraphLowering` that is at work."""
    return sys.modules["torch._inductor.virtualized"].V.graph


def source_of(node: Any) -> str:
    """Return the line of the user's that a node comes from: `model.py:12`."""
    frames = list(_SOURCE.finditer(node.meta.get("stack_trace") or ""))
    return f"{frames[-1]['path']}:{frames[-1]['line']}" if frames else ""


def inductor_caller() -> FrameType:
    """Return the frame of inductor that called what is wrapped; the outermost one where there is none."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _INDUCTOR not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame


def path_of(function: Callable[..., Any], made: Sequence[CallPath]) -> CallPath | None:
    """Return which way a watched function went, of the calls that were made; None where it is not watched."""
    return path_of_name(inspect.unwrap(function).__qualname__, made)


def path_of_name(function: str, made: Sequence[CallPath]) -> CallPath | None:
    """Return the same by the qualified name of the function."""
    return next((path for path in reversed(made) if path.sites.function == function), None)


def inner_path(made: Sequence[CallPath], function: str) -> CallPath | None:
    """Return the last call of a function among calls and those within them, at whatever depth."""
    for path in reversed(made):
        if path.sites.function == function:
            return path
        if (inner := inner_path(path.inner, function)) is not None:
            return inner
    return None


def tests_of(path: CallPath | None) -> tuple[TorchTest, ...]:
    """Return the tests because of which a watched function returned where it did."""
    return tuple(test_at(path, one) for one in path.deciding()) if path is not None else ()


def cause_of_branch(
    path: CallPath | None, kind: DecisionKind, at: str = "", behind: CauseCode = "unlisted-test"
) -> CauseCode:
    """Return the cause of the catalogue for the innermost branch, of those that have one, of a return.

    Args:
        at: the function or file of torch whose tests these are; without it all of the kind.
        behind: where it returned behind all conditions.
    """
    if path is None or path.exit is None:
        return "unlisted-test"
    held = (condition.text for condition, truth in path.branches() if truth)
    causes = (cause for text in held if (cause := _listed(kind, at, text)))
    return next(causes, "unlisted-test" if path.exit.within else behind)


def cause_of_test(
    kind: DecisionKind, at: str, test: SeenTest | TorchTest
) -> tuple[CauseCode, dict[str, Operand]] | None:
    """Return the cause of the catalogue that a test decides, with what was compared; None: it has none."""
    if (code := _listed(kind, at, test.text)) is None:
        return None
    return code, dict(zip(causes_of(kind)[code].values.split(), test.values, strict=False))


@functools.cache
def _listed(kind: DecisionKind, at: str, text: str) -> CauseCode | None:
    codes = (code for pattern, code in causes_by_test(kind, at).items() if matches(text, pattern))
    return next(codes, None)


def decides(path: CallPath | None, pattern: str) -> bool:
    """Return whether a test with a text like this is among those because of which a function returned."""
    return path is not None and any(matches(one.text, pattern) for one in path.deciding())


def test_at(path: CallPath, seen: SeenTest) -> TorchTest:
    """Return a test that a watched function made, with its place in torch."""
    file = file_of_torch(path.sites.file) or path.sites.file
    place = TorchFrame(file, path.sites.function, seen.line)
    return TorchTest(place, seen.text, seen.truth, seen.values)


def place_of(function: Callable[..., Any]) -> TorchFrame:
    """Return where a function of torch begins."""
    code: CodeType = inspect.unwrap(function).__code__
    file, name = named(code)
    return TorchFrame(file or code.co_filename, name, code.co_firstlineno)


def stack(frame: FrameType | None) -> Iterator[TorchFrame]:
    """Yield the frames of inductor from `frame` outwards, at most `MOST_FRAMES`.

    `traceback.extract_stack` would read source lines: it costs a hundred times as much.
    """
    count = 0
    while frame is not None and count < MOST_FRAMES:
        if named(frame.f_code)[0] is not None:
            count += 1
            yield frame_at(frame.f_code, frame.f_lineno)
        frame = frame.f_back


@functools.cache
def frame_at(code: CodeType, line: int) -> TorchFrame:
    """Return the one record of a line of inductor's: thousands of stacks go through the same few lines."""
    file, name = named(code)
    return TorchFrame(file or code.co_filename, name, line)


@functools.cache
def named(code: CodeType) -> tuple[str | None, str]:
    """Return the file of a code object, None outside of inductor, and its qualified name."""
    return file_of_torch(code.co_filename), getattr(code, "co_qualname", code.co_name)  # from Python 3.11


def file_of_torch(file: str) -> str | None:
    """Return `torch/_inductor/ir.py` of the path of a file of inductor, None of any other."""
    before, inductor, rest = file.rpartition(_INDUCTOR)
    return f"torch/_inductor/{rest}".replace(os.sep, "/") if inductor and before else None
