"""Methods of a recorder see calls of torch's functions: before, after, when these raise, and when they do."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, cast

import pytest

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorders.base import Call, Observer, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog
from tests.capture.test_decision_log import Notes

DEBUG = "torch._inductor.debug"


def debug(**methods: Any) -> types.ModuleType:
    """Return a module like torch's with a `DebugContext` of these methods."""
    made = types.ModuleType(DEBUG)
    made.DebugContext = type("DebugContext", (), methods)  # type: ignore[attr-defined]
    return made


def context(kind: type[Observer], notes: Notes, **methods: Any) -> Any:
    """Return a context whose calls an observer of a kind sees."""
    module = debug(**methods)
    for name, hook in kind(DecisionLog(cast(EventLog, notes))).hooks():
        assert name == DEBUG
        hook(module)
    return module.DebugContext()


class Steps(Observer):
    """Keeps what it sees in a list that the context has."""

    @sees(DEBUG, "DebugContext.__enter__")
    def entered(self, call: Call, one: Any) -> Iterator[None]:
        """See a call before and after it."""
        one.seen.append("before")
        try:
            yield
            one.seen.append(f"after {call.result}")
        finally:
            one.seen.append("end")

    @sees(DEBUG, "DebugContext.__exit__")
    def left(self, call: Call, one: Any, *error: Any) -> None:
        """See a call when it has returned."""
        one.seen.append((call.function.rpartition(".")[2], error, call.result))


def test_a_method_that_yields_goes_on_when_the_function_has_returned() -> None:
    seen: list[Any] = []
    one = context(
        Steps,
        Notes(),
        __enter__=lambda self: seen.append("torch") or "in",
        __exit__=lambda self: None,
        seen=seen,
    )
    assert one.__enter__() == "in"
    assert seen == ["before", "torch", "after in", "end"]


def test_a_method_is_closed_where_the_function_raises() -> None:
    def enter(self: Any) -> None:
        raise RuntimeError("no memory")

    seen: list[Any] = []
    notes = Notes()
    one = context(Steps, notes, __enter__=enter, __exit__=lambda self, kind: False, seen=seen)
    with pytest.raises(RuntimeError, match="no memory"):
        one.__enter__()
    assert seen == ["before", "end"]
    assert notes.errors == []
    assert one.__exit__(None) is False
    assert seen[2] == ("<lambda>", (None,), False)


class Failing(Observer):
    """Fails before and after."""

    @sees(DEBUG, "DebugContext.__enter__")
    def entered(self, _: Call, __: Any) -> Iterator[None]:
        """Fail before torch's function is called."""
        raise KeyError("size")
        yield

    @sees(DEBUG, "DebugContext.__exit__")
    def left(self, call: Call, _: Any) -> None:
        """Fail when it has returned."""
        raise TypeError(call.result)


def test_what_a_method_raises_is_noted_once_and_torch_has_its_result() -> None:
    notes = Notes()
    one = context(Failing, notes, __enter__=lambda self: 1, __exit__=lambda self: 2)
    assert [one.__enter__(), one.__enter__(), one.__exit__(), one.__exit__()] == [1, 1, 2, 2]
    assert notes.errors == ["recorder-failed: KeyError: 'size'", "recorder-failed: TypeError: 2"]


class Answering(Observer):
    """Answers in the place of a function, or asks it once more."""

    @sees(DEBUG, "DebugContext.__enter__")
    def entered(self, call: Call, one: Any) -> Iterator[None]:
        """Answer, where the context is to be entered by no one."""
        if one.is_closed:
            call.answer("closed")
        yield

    @sees(DEBUG, "DebugContext.__exit__")
    def left(self, call: Call, one: Any) -> None:
        """Ask once more, and sum."""
        call.result += call.ask(one)


@pytest.mark.parametrize(("is_closed", "result"), [(True, "closed"), (False, "in")])
def test_a_result_is_replaced(*, is_closed: bool, result: str) -> None:
    one = context(
        Answering, Notes(), __enter__=lambda self: "in", __exit__=lambda self: 2, is_closed=is_closed
    )
    assert one.__enter__() == result
    assert one.__exit__() == 4
