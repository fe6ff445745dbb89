"""The user's compiled callables, timed where his script calls them.

A callable is timed at its first call that compiles nothing, and is like the one that compiled the graph
asked for: its tensors have the same sizes, strides, dtypes. Where the script ends before, or time is up, it
is timed on copies of the inputs of that one. Then the script goes on to the next callable, or is ended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from inductor_probe.capture.callables import (
    Callables,
    Callee,
    Compiling,
    Values,
    context,
    copied,
    form_of,
    name_of,
    untraced,
    where_of,
)

if TYPE_CHECKING:
    from inductor_probe.harness.own_calls import OwnCall

SPINNING_S = 0.003
"""How long threads of OpenMP of the other process may go on spinning after its lap: libgomp's some 1 ms."""

_OF_EAGER = 0.25
"""Of the seconds for parts of calls: a few calls say which operators eager runs."""


class OwnRequest(Struct, frozen=True):
    """What a process is to time; it gets this as JSON.

    Attributes:
        wanted: compile ids of graphs, each with whether the script runs its backward.
        seconds: of timing each callable. precision: width of the interval of a log-ratio that ends it.
        seed: of the order. candidate_first: the compiled side is set up first.
        limit_s: from its start the script may run so long; then the next call is timed as it is.
        most: callables that are timed.
        parts: seconds of timing what a call consists of, a part of them for eager's; 0: neither is.
        eager_only: look at eager's operators for `parts`, and at nothing else.
        memory: look at what both sides allocate, and at nothing else.
        laps: run laps of the first one as lines of the other pipe ask for, in place of timing it.
    """

    wanted: tuple[tuple[str, bool], ...]
    seconds: float = 2.0
    precision: float = 0.0025
    seed: int = 0
    candidate_first: bool = False
    limit_s: float = 600.0
    most: int = 8
    parts: float = 0.0
    laps: bool = False
    eager_only: bool = False
    memory: bool = False


class OwnCalls(Callables):
    """Finds callables, and times those that were asked for.

    Args:
        tell: sends an event. ask: returns the next line of what is asked for, None at the end.
    """

    def __init__(
        self, request: OwnRequest, tell: Callable[..., None], ask: Callable[[], str | None] = lambda: None
    ) -> None:
        self._request, self._tell, self._ask = request, tell, ask
        super().__init__()
        self._begin = time.monotonic()
        self._sent = 0

    def at_end(self, ending: str) -> None:
        """Time what was compiled and not timed yet, once the script has ended; say what was not found."""
        for callee in self.callees if ending != "failed" else ():  # of a failed script nothing counts
            if self._waiting(callee) and not self._over:
                self._time_again(callee)
        self._tell("over", ending=ending, callables=len(self.callees), timed=self._sent)

    def before(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Time a call that is asked for before it is made; else copy its inputs, in case it compiles."""
        callee.calls += 1
        form = form_of((args, kwargs))
        late = time.monotonic() - self._begin > self._request.limit_s
        waiting = self._waiting(callee)
        if any(late or callee.compiled_in[one].form == form for one in waiting):
            if all(callee.compiled_in[one].form != form for one in waiting):
                self._time_again(callee)
            else:
                self._time(callee, waiting, (args, kwargs), callee.calls, after=None)
        elif late:
            for other in self.callees:
                if self._waiting(other):
                    self._time_again(other)
        if self._over:
            self._tell("over", ending="ended", callables=len(self.callees), timed=self._sent)
            end_process()
        self.running.compiling = Compiling(callee.calls, copied((args, kwargs)), form, context())

    def _waiting(self, callee: Callee) -> list[str]:
        """Return the compile ids of a callable that are asked for, and were not timed yet."""
        ids = [one for one, _ in self._request.wanted]
        return [one for one in ids if one in callee.compiled_in and one not in callee.timed]

    @property
    def _over(self) -> bool:
        timed = {one for callee in self.callees for one in callee.timed}
        return self._sent >= self._request.most or all(one in timed for one, _ in self._request.wanted)

    def _time_again(self, callee: Callee) -> None:
        """Time a callable on copies of the inputs of the call that compiled what is asked for."""
        waiting = self._waiting(callee)
        compiling = callee.compiled_in[waiting[-1]]
        with ExitStack() as stack:
            compiling.context(stack)
            self._time(callee, waiting, compiling.values, compiling.number, after=callee.calls)

    def _time(
        self, callee: Callee, ids: Sequence[str], values: Values, number: int, *, after: int | None
    ) -> None:
        """Time a call, with which all graphs of its callable are done.

        `after`: how many calls there were, where it is made again on copies of its inputs.
        """
        from inductor_probe.harness.jobs import memory_ran_out  # noqa: PLC0415 - torch is there now
        from inductor_probe.harness.own_calls import OwnCall  # noqa: PLC0415
        from inductor_probe.harness.reference import first_line  # noqa: PLC0415

        callee.timed.update(callee.compiled_in)
        self.busy = True
        alike = [other for other in self.callees if other.code is callee.code or other is callee]
        backward = dict(self._request.wanted)
        reached, self._sent = time.monotonic() - self._begin, self._sent + 1
        self._tell(
            "reached",
            graphs=[*callee.compiled_in],
            name=name_of(callee.eager),
            where=where_of(callee),
            call=number,
            after=after,
            instances=len(alike),
            reached_s=reached,
        )
        try:
            with untraced():
                with_backward = any(backward.get(one) for one in ids)
                own = OwnCall(callee.eager, callee.compiled, *values, backward=with_backward)
                self._measure(own)
        except Exception as error:  # whatever his program, or torch, may raise
            text = first_line(error)
            self._tell("not-timed", code="memory" if memory_ran_out(text) else "raises", message=text)
        finally:
            self.busy = False

    def _measure(self, own: OwnCall) -> None:
        remarks = own.check()
        compiles = self.compiles
        self._tell(
            "call", remarks=[{"code": code, "numbers": values} for code, values in remarks], **own.facts()
        )
        if self._request.laps:
            self._serve(own)
        elif self._request.eager_only:
            self._tell_operators(own)
        elif self._request.memory:
            self._tell("memory", **own.memory())
        else:
            request = self._request
            series = own.time(
                request.seconds, request.precision, request.seed, candidate_first=request.candidate_first
            )
            self._tell("series", series=series, compiled=self.compiles - compiles)
            if request.parts:
                self._tell_parts(own)
                self._tell_operators(own)

    def _tell_parts(self, own: OwnCall) -> None:
        """Time what a call consists of, and say so; or why that cannot be had."""
        from inductor_probe.harness.reference import first_line  # noqa: PLC0415

        try:
            seconds = self._request.parts * (1 - _OF_EAGER)
            self._tell("parts", parts=own.parts(seconds, self._request.seed))
        except Exception as error:  # what torch may raise where a private part of it is another
            self._tell("no-parts", message=f"{type(error).__name__}: {first_line(error)}")

    def _tell_operators(self, own: OwnCall) -> None:
        """Say what eager runs; nothing where torch's profiler does not run here, or has another form."""
        from inductor_probe.harness.reference import first_line  # noqa: PLC0415

        try:
            self._tell("eager", **own.operators(self._request.parts * _OF_EAGER))
        except Exception as error:
            self._tell("no-operators", message=f"{type(error).__name__}: {first_line(error)}")

    def _serve(self, own: OwnCall) -> None:
        """Run laps of both sides as they are asked for: see `measuring/interleaved.py`."""
        from inductor_probe.harness.laps import kept_lap  # noqa: PLC0415
        from inductor_probe.harness.quads import run_once  # noqa: PLC0415

        sides = own.sides(candidate_first=self._request.candidate_first)
        self._tell("ready")
        while line := self._ask():
            command = json.loads(line)
            if command.get("end"):
                break
            side, number = sides[command["lap"]], command["number"]
            if own.device == "cpu" and sys.modules["torch"].get_num_threads() > 1:
                time.sleep(SPINNING_S)
            run_once(side, number)
            lap = kept_lap(side, number)
            self._tell("lap", seconds=lap.seconds, lost=lap.lost)
        own.state.restore()


def end_process() -> None:
    """End the process, and nothing of what the script would do at its end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
