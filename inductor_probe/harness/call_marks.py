"""Marks of a call that is looked into: what they mean, what they cost, and what is between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inductor_probe.harness.marked_wrappers import CppWrapper, Marks, PythonWrapper


class Level(NamedTuple):
    """What a mark begins: a function of `dynamo`, a graph of inductor (`fx`) or its `call`, by its number."""

    kind: str
    number: int = 0


DYNAMO, FX, END = Level("dynamo"), Level("fx"), Level("end")
RUN, FORWARD = Level("run"), Level("forward")  # at the begin of a call, and behind its forward
LINES = {"launch": "kernel", "library": "library", "copy": "copy"}  # lines of a wrapper that run something


class Costs(NamedTuple):
    """Nanoseconds that readings of the clock take: in a timed function between its two, and outside of them.

    `mark` is between two marks with nothing between them.
    """

    inside: float
    outside: float
    mark: float


def timed(
    function: Callable[..., Any], level: Level, marks: Marks, now: Callable[[], int]
) -> Callable[..., Any]:
    """Return a function that does the same, and marks its begin and end."""

    def call(*args: Any) -> Any:
        marks.append((level, now()))
        out = function(*args)
        marks.append((END, now()))
        return out

    return call


def costs_of(now: Callable[[], int]) -> Costs:
    """Measure what reading clocks takes."""

    def nothing(_: Any) -> None: ...

    def seconds(run: Callable[[Any], object]) -> float:
        begin = now()
        for _ in range(200):
            run(None)
        return (now() - begin) / 200

    marks: Marks = []
    noting = timed(nothing, END, marks, now)
    plain, clocked = (min(seconds(run) for _ in range(20)) for run in (nothing, noting))
    between = sorted(end - begin for (_, begin), (_, end) in zip(marks[::2], marks[1::2], strict=True))
    inside = between[len(between) // 2]
    marks.clear()
    for _ in range(200):
        marks.append((END, now()))
        marks.append((END, now()))
    mark = sorted(end - begin for (_, begin), (_, end) in zip(marks[::2], marks[1::2], strict=True))
    return Costs(max(inside - plain, 0.0), max(clocked - inside, 0.0), mark[len(mark) // 2])


def added(
    marks: Marks, wrappers: Mapping[int, PythonWrapper | CppWrapper], costs: Costs
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], int]]:
    """Return the nanoseconds between marks by kind and name, and how many there were."""
    parts: dict[tuple[str, str], float] = {}
    counts: dict[tuple[str, str], int] = {}

    def add(kind: str, name: str, taken: float) -> None:
        parts[kind, name] = parts.get((kind, name), 0.0) + taken
        counts[kind, name] = counts.get((kind, name), 0) + 1

    stack: list[tuple[Level, int]] = []
    line: tuple[int, int] | None = None
    begin = end = 0
    behind = False  # the forward
    for what, at in marks:
        if line is not None and (wrapper := wrappers.get(stack[-1][0].number)):
            row = wrapper.lines[line[0]]
            if row.kind in LINES:
                name = row.kind if row.kind == "copy" else row.target
                add(LINES[row.kind], name, at - line[1] - costs.mark)
        line = (what, at) if not isinstance(what, Level) and what >= 0 else None
        if what is RUN:
            begin, end, behind = at, 0, False
        elif what is FORWARD:
            add("forward", "", at - begin - costs.mark)
            behind = True
        elif what is END:
            level, first = stack.pop()
            if all(other.kind != level.kind for other, _ in stack):  # a graph behind a break calls the next
                add(f"{level.kind}-backward" if behind else level.kind, "", at - first - costs.inside)
            if not stack:
                end = at
        elif isinstance(what, Level):
            if end and not behind and what is DYNAMO:
                add("between", "", at - end - costs.outside)
            stack.append((what, at))
    return parts, counts
