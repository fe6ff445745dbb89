"""What a recorder is: methods that see calls of functions of torch, each marked with the place that it sees.

    class _Recorder(Recorder):
        KIND = "layout"

        @sees("torch._inductor.ir", "Buffer.freeze_layout")
        def frozen(self, call: Call, buffer: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
            before = buffer.layout
            yield
            if buffer.layout is not before:
                self.record("contiguous", Cause("no-reads"), call.place, (buffer.name,))

A method is called when torch's function has returned, with its call and its arguments. One that yields is
begun before that, and goes on behind its `yield`; where the function raises it is closed there, and where it
returns before it sees no more of that call. What a method raises becomes a note in the manifest.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from inductor_probe.capture.branches import CallPath, calls
from inductor_probe.capture.recorders.decision_log import DecisionLog, path_of_name, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame, TorchTest

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Recorder = TypeVar("_Recorder", bound="Recorder")
Operands: TypeAlias = dict[str, Operand]
Tests: TypeAlias = tuple[TorchTest, ...]


class Cause(NamedTuple):
    """Why torch decided: a code of the catalogue, what was compared, and the tests that decided."""

    code: CauseCode
    operands: Mapping[str, Operand] = {}
    tests: Tests = ()

    def also(self, operands: Mapping[str, Operand]) -> Cause:
        """Return it with more operands, behind its own."""
        return self._replace(operands={**self.operands, **operands})

    def behind(self, operands: Mapping[str, Operand]) -> Cause:
        """Return it with more operands, before its own."""
        return self._replace(operands={**operands, **self.operands})


class Call:
    """A call of a function of torch that a recorder sees.

    Attributes:
        place: where the function begins. function: its qualified name.
        result: what it returned, and the caller gets.
        ask: the function itself: it answers once more, and nobody sees that.
        made: the calls of watched functions that it made itself, where the recorder follows them.
    """

    __slots__ = ("ask", "function", "is_answered", "made", "place", "result", "steps")

    def __init__(self, place: TorchFrame, function: str, ask: Callable[..., Any]) -> None:
        self.place, self.function, self.ask, self.is_answered = place, function, ask, False
        self.result: Any = None
        self.made: Sequence[CallPath] = ()
        self.steps: Generator[None, None, None] | None = None

    @property
    def path(self) -> CallPath | None:
        """Which way the function went; None where it is not watched."""
        return self.path_of(self.function)

    def path_of(self, function: str) -> CallPath | None:
        """Return which way a function went that it called last."""
        return path_of_name(function, self.made)

    def answer(self, result: Any) -> None:
        """Answer in the place of the function, before it is called."""
        self.result, self.is_answered = result, True


class _Seen(NamedTuple):
    """Functions of a module of torch that a method sees; for the rest see `sees`."""

    module: str
    names: tuple[str, ...]
    follows: bool
    watches: bool
    nested: tuple[str, ...]
    may_lack: bool


def sees(
    module: str, *names: str, follows: bool = False, watches: bool = False,
    nested: tuple[str, ...] = (), may_lack: bool = False,
) -> Callable[[_Method], _Method]:  # fmt: skip
    """Mark a method of a recorder as one that sees calls of functions of torch.

    Args:
        names: places of the table (`torch_places.py`). follows: `Call.made` is wanted.
        watches: so is the way that the functions themselves go, and those `nested` in them.
        may_lack: a release of torch without such a function records the kind all the same.
    """

    def mark(method: _Method) -> _Method:
        seen = _Seen(module, names, follows or watches, watches, nested, may_lack)
        method.__dict__.setdefault("seen", []).append(seen)
        return method

    return mark


class _Watched(NamedTuple):
    module: str
    names: tuple[str, ...]
    may_lack: bool


def watches(module: str, *names: str, may_lack: bool = False) -> Callable[[type[_Recorder]], type[_Recorder]]:
    """Mark a recorder as one that reads which way further functions of torch go.

    One that is gone is a note, unless releases `may_lack` it.
    """

    def mark(recorder: type[_Recorder]) -> type[_Recorder]:
        recorder.watched = (*recorder.watched, _Watched(module, names, may_lack))
        return recorder

    return mark


class Observer:
    """Sees calls of functions of torch; what its methods raise is noted in a log."""

    watched: ClassVar[tuple[_Watched, ...]] = ()

    def __init__(self, log: DecisionLog) -> None:
        self.log = log

    def hooks(self) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
        """Yield for each module of torch what is to be called when it is imported."""
        methods = [getattr(self, name) for name, value in vars(type(self)).items() if hasattr(value, "seen")]
        modules = (seen.module for method in methods for seen in method.seen)
        for name in dict.fromkeys((*(watched.module for watched in self.watched), *modules)):
            yield name, functools.partial(self._hook, methods)

    def _hook(self, methods: Sequence[Any], module: ModuleType) -> None:
        for watched in self.watched:
            for name in watched.names if watched.module == module.__name__ else ():
                if _has(module, name) or not watched.may_lack:
                    self.log.watch(module, name)
        pairs = ((method, seen) for method in methods for seen in method.seen)
        for method, seen in pairs:
            for name in seen.names if seen.module == module.__name__ else ():
                if seen.may_lack and not _has(module, name):
                    continue
                if seen.watches:
                    self.log.watch(module, name, *seen.nested)
                wrap(module, name, functools.partial(self._around, method, follows=seen.follows))

    def _around(self, method: Any, original: Callable[..., Any], *, follows: bool) -> Callable[..., Any]:
        log, place, function = self.log, place_of(original), inspect.unwrap(original).__qualname__
        begin, end = _steps(method) if inspect.isgeneratorfunction(method) else (None, method)

        def call_and_record(*args: Any, **kwargs: Any) -> Any:
            call = Call(place, function, original)
            if begin is not None:
                log.safely(begin, call, *args, **kwargs)
            try:
                if follows:
                    with calls() as call.made:
                        call.result = original(*args, **kwargs)
                elif not call.is_answered:
                    call.result = original(*args, **kwargs)
            except BaseException:
                if call.steps is not None:
                    call.steps.close()
                raise
            log.safely(end, call, *args, **kwargs)
            return call.result

        return call_and_record


class Recorder(Observer):
    """Records one kind of decision, or a part of one, of all graphs that a log is of."""

    KIND: ClassVar[DecisionKind]

    @classmethod
    def of(cls: type[_Recorder], log: DecisionLog) -> _Recorder:
        """Return the one recorder of a class that a log has."""
        if cls not in log.recorders:
            log.recorders[cls] = cls(log)
        recorder: _Recorder = log.recorders[cls]
        return recorder

    def _hook(self, methods: Sequence[Any], module: ModuleType) -> None:
        super()._hook(methods, module)
        self.log.recorded(self.KIND)

    def record(
        self, outcome: Outcome, cause: Cause, place: TorchFrame, *subjects: tuple[str, ...], **more: Any
    ) -> int | None:
        """Add a decision of the kind about the graph that is being compiled: see `DecisionLog.record`."""
        return self.log.record(
            self.KIND, subjects, outcome, cause.code, place, operands=cause.operands, tests=cause.tests,
            **more,
        )  # fmt: skip


def _steps(method: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return what begins a method that yields, and what ends it; each has its name, which notes have."""

    @functools.wraps(method)
    def begin(call: Call, *args: Any, **kwargs: Any) -> None:
        call.steps = method(call, *args, **kwargs)
        next(call.steps, None)

    @functools.wraps(method)
    def end(call: Call, *_: Any, **__: Any) -> None:
        if call.steps is not None:
            next(call.steps, None)

    return begin, end


def _has(module: ModuleType, name: str) -> bool:
    """Whether a module has a function, or a class that has it."""
    owner: Any = module
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner is not None
