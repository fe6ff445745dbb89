"""Two interpreters in one session: a process of each, whose laps take turns, as two sides of a quad do.

Two builds of torch cannot be in one process, and two sessions one after the other measure the machine's drift
as well. So a child of each interpreter builds the same case, and waits for commands on its standard input:

    {"lap": "compiled", "number": 3}  ->  {"event": "lap", "seconds": 1.2e-5, "lost": 0}

One of them runs a lap while the other waits for the next line. Quads are as in one process: ABBA or BAAB,
lap by lap, of which the fastest of each side counts, and some of A with itself as guards. What differs is
that a lap begins with cold caches of the core, after the other process had it: each lap is preceded by a call
outside of the clock.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.harness.budget import GUARD_EVERY, width
from inductor_probe.measuring.plan import Plan
from inductor_probe.measuring.rows import JOBS, CaseProcess, Progress, case_request
from inductor_probe.model.perf import SECOND, CaseKey
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import Order, Quad, Series

LAPS = 2
FEWEST = 6
_ORDERS: tuple[Order, Order] = ("ABBA", "BAAB")
_PATIENCE_S = 600.0
_WARM_SHARE = 1 / 8


class Laps(Protocol):
    """Another process, which runs laps when it is asked to."""

    def lap(self, column: str, number: int) -> tuple[int, float]:
        """Run a lap; return how often it lost its core, in its last attempt, and seconds a call."""


class Remote:
    """A child that has built a case, and runs laps of its columns when it is asked to."""

    def __init__(self, server: Server, request: Event) -> None:
        self._server, self._events = server, server.events(request, _PATIENCE_S)
        self.case = CaseProcess()

    def wait_for(self, name: str) -> Event:
        """Return the next event of this name; keep what others say of the case.

        Raises:
            JobFailedError: the child ended before.
        """
        for event in self._events:
            if event["event"] == name:
                return event
            self.case.take(event)
        return {}

    def lap(self, column: str, number: int) -> tuple[int, float]:
        """Run a lap; return how often it lost its core, in its last attempt, and seconds a call."""
        self._server.send({"lap": column, "number": number})
        event = self.wait_for("lap")
        return int(event["lost"]), float(event["seconds"])

    def end(self) -> None:
        """Let the child say what ran until now, and end."""
        self._server.send({"end": True})
        self.wait_for("end")


def time_pair(  # noqa: PLR0917 - what is timed, and how
    servers: Sequence[Server], plan: Plan, key: CaseKey, number: int, seconds: float, progress: Progress
) -> CaseProcess:
    """Time the columns of a case under two interpreters; names of the second's have `SECOND` behind them.

    Each column of the first is compared with that of the second. See `rows.measure_row`.
    """
    request = {
        **case_request(plan, key, number),
        "job": f"{JOBS}:serve_case",
        "cold": key.data == "cold",
    }
    case, remotes = CaseProcess(), list[Remote]()
    try:
        # Which is built first alternates: it lies elsewhere in memory.
        for server in servers if number % 2 == 0 else servers[::-1]:
            progress(f"compiling for torch {server.torch} ({number + 1})")
            remotes.append(Remote(server, request))
            remotes[-1].wait_for("ready")
        first, second = remotes = remotes if number % 2 == 0 else remotes[::-1]
        case.facts, begin = first.case.facts, time.monotonic()
        good = [{one.name for one in remote.case.columns if one.problem is None} for remote in remotes]
        names = [one.name for one in first.case.columns if one.name in good[0] & good[1]]
        rng = random.Random(2 * number)  # noqa: S311 - no secret
        for name in names:
            progress(f"timing {name} of both ({number + 1})")
            start = time.monotonic()
            quads = time_remotes(remotes, name, seconds / len(names), plan.settings.margin / 4, rng)
            case.series.append(Series(name, name + SECOND, tuple(quads), time.monotonic() - start))
        case.measured = time.monotonic() - begin
        for remote in remotes:
            remote.end()
        others = (replace(one, name=one.name + SECOND) for one in second.case.columns)
        case.columns = (*first.case.columns, *others)
    except JobFailedError as error:
        for server in servers:
            server.stop()
        case.failure, case.series = error, []
    return case


def time_remotes(
    remotes: Sequence[Laps], column: str, seconds: float, precision: float, rng: random.Random
) -> list[Quad]:
    """Time quads of one column; the first eighth of the time warms both sides up."""
    sides: Mapping[str, Laps] = dict(zip("AB", remotes, strict=True))
    begin = time.monotonic()
    for number in range(1000):
        for remote in remotes:
            remote.lap(column, number)
        if time.monotonic() - begin > _WARM_SHARE * seconds:
            break
    quads: list[Quad] = []
    while len(quads) < FEWEST or time.monotonic() - begin < seconds:
        number = len(quads)
        guard = number % GUARD_EVERY == GUARD_EVERY - 1
        order, blocks = rng.choice(_ORDERS), list[tuple[int, float]]()
        for pair in (order[:2], order[2:]):
            turns = [
                [sides["A" if guard else side].lap(column, number) for side in pair] for _ in range(LAPS)
            ]
            blocks += map(min, zip(*turns, strict=True))  # the fastest of those that kept their core
        lost = sum(times for times, _ in blocks)
        disturbed = measured("core-lost", "hazard", Subject("machine", ""), {"times": lost}) if lost else None
        laps = [seconds for _, seconds in blocks]
        quads.append(Quad(order, tuple(laps), guard, disturbed))
        if (
            number >= 3 * GUARD_EVERY
            and number % 10 == 0
            and width([quad.score for quad in quads if not quad.guard]) < precision
        ):
            break
    if all(quad.guard for quad in quads):
        return []
    return quads
