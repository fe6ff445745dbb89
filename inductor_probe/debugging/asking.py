"""The question that is asked at each stop, in the compiler's process: is this the time?"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Sequence
from types import CodeType, FrameType
from typing import Any

from inductor_probe.debugging.stops import Stop

_COUNT = re.compile(r"count\((\d+)\)")


def are_nodes(first: Any, second: Any, some: Collection[str], others: Collection[str]) -> bool:
    """Tell whether one scheduler node holds all of `some`, and the other all of `others`, either way round.

    Nodes may be fused already; names are of operations or buffers.
    """
    mine, its = ({*node.get_operation_names(), *node.get_buffer_names()} for node in (first, second))
    return (mine.issuperset(some) and its.issuperset(others)) or (
        mine.issuperset(others) and its.issuperset(some)
    )


def next_kernel() -> int:
    """Return the number that the next kernel of the graph gets, without taking it.

    Raises:
        AttributeError, ValueError: this torch counts them in another way.
    """
    wrapper = sys.modules["torch._inductor.virtualized"].V.graph.wrapper_code
    while hasattr(wrapper, "parent_wrapper"):  # a subgraph's kernels are counted with the graph's
        wrapper = wrapper.parent_wrapper
    counted = _COUNT.fullmatch(repr(wrapper._names_iter))
    if counted is None:
        raise ValueError(f"kernels are counted by {wrapper._names_iter!r}")
    return int(counted[1])


HELPERS: dict[str, Callable[..., Any]] = {"are_nodes": are_nodes, "next_kernel": next_kernel}
"""What a condition may call, beside the names at its place."""


class Asked:
    """What the inserted calls talk to: `asked(numbers) and stop()` stops in the function's own frame.

    Args:
        stops: calls name them by their number.
        stop: stops in the frame that calls it.
        is_watched: whether there is a debugger to stop for.
    """

    def __init__(
        self, stops: Sequence[Stop], stop: Callable[[], Any], is_watched: Callable[[], bool]
    ) -> None:
        self.stop = stop
        self._stops = stops
        self._is_watched = is_watched
        self._conditions = [_Condition(stop.condition) if stop.condition else None for stop in stops]
        self._reached: set[int] = set()
        self._failed: set[int] = set()

    def asked(self, *numbers: int) -> bool:
        """Tell whether to stop in the caller's frame, for any of the stops `numbers`."""
        if not self._is_watched():
            return False
        frame = sys._getframe(1)
        holds = [number for number in numbers if self._holds(number, frame)]
        for number in holds:
            self._reached.add(number)
            _say(f"stop: {self._stops[number]}")
        return bool(holds)

    def _holds(self, number: int, frame: FrameType) -> bool:
        condition = self._conditions[number]
        if condition is None:
            return True
        try:
            return condition.holds(frame)
        except Exception as error:  # it is the user's, or reads private parts of torch: the compile goes on
            if number not in self._failed:
                _say(f"the condition of {self._stops[number]} failed: {type(error).__name__}: {error}")
            self._failed.add(number)
            return False

    def say_unreached(self) -> None:
        """Say at the end where nothing stopped."""
        reached = {_what(self._stops[number]) for number in self._reached}
        for what in dict.fromkeys(map(_what, self._stops)):
            if what not in reached:
                _say(f"never reached: {what}")


def _what(stop: Stop) -> str:
    """Return what is waited for: the same thing may happen at one of several places."""
    return stop.why or stop.place


class _Condition:
    """An expression of names in a frame. Only those it uses are looked up, local ones first."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text, f"<condition {text}>", "eval")
        self._names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self._code: CodeType = compile(tree, f"<condition {text}>", "eval", dont_inherit=True)

    def holds(self, frame: FrameType) -> bool:
        scopes = (HELPERS, frame.f_globals, frame.f_locals)
        # As globals, not as locals: a comprehension in the expression sees only those.
        values = {name: scope[name] for scope in scopes for name in self._names if name in scope}
        return bool(eval(self._code, {**values, "__builtins__": frame.f_builtins}))  # noqa: S307 - the user's own


def _say(text: str) -> None:
    print(f"probe debug: {text}", file=sys.stderr, flush=True)
