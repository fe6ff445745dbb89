"""The user's own callables, timed in fresh processes, each of which runs his script up to the call."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import inductor_probe.capture
from inductor_probe.bench.call_parts import call_parts_of
from inductor_probe.bench.stop_rule import StopRule
from inductor_probe.bench.times import times_of
from inductor_probe.bench.verdict import conclude
from inductor_probe.capture.own_calls import OwnRequest
from inductor_probe.capture.own_child import OwnOptions
from inductor_probe.executors.child import Event
from inductor_probe.measuring.interleaved import time_remotes
from inductor_probe.measuring.script_process import OwnChildError, OwnProgram, ScriptProcess
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.memory import MeasuredMemory
from inductor_probe.model.own_call import (
    EagerOperator,
    NoOwnCall,
    OwnCall,
    OwnCallOfSide,
    OwnPair,
    OwnRemark,
    OwnRemarkCode,
)
from inductor_probe.model.timing import CallSamples, Series

Progress = Callable[[str], None]

CHILD = Path(inductor_probe.capture.__file__).with_name("own_child.py")
_ON_TOP = 4
_REACHING_S, _REACHING = 60.0, 6
"""Seconds, or times the budget, that scripts of all processes may run up to the call in all."""
MOST_PROCESSES = 5
"""Each runs the script up to the call: seconds that buy little."""
PARTS = 0.1
"""Of a budget, for what a call consists of: in the first process."""
_MISSING: tuple[OwnRemarkCode, ...] = ("no-parts", "no-operators")
"""Events that say why others did not come."""
COMPILED = "compiled"
"""As harness/own_calls.py calls that side."""


class OwnProcess(ScriptProcess):
    """A process that runs the script up to the call, and times it there."""

    def __init__(self, program: OwnProgram, request: OwnRequest, caches: Path | None = None) -> None:
        def options(folder: str) -> OwnOptions:
            return OwnOptions(request, folder, program.settings, program.flips)

        super().__init__(program, CHILD, options, patience=_ON_TOP * request.seconds, caches=caches)

    def lap(self, column: str, number: int) -> tuple[int, float]:
        """Run a lap of a side; return how often its process lost its core, and seconds a call."""
        self.ask({"lap": column, "number": number})
        event = self.next_event()
        return int(event["lost"]), float(event["seconds"])


@contextmanager
def _caches_of(program: OwnProgram) -> Iterator[Path | None]:
    """Give a folder for inductor's caches where decisions are turned: keys of graphs do not have them."""
    if not program.flips:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="own-caches-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def time_own_calls(
    program: OwnProgram,
    wanted: Sequence[tuple[str, bool]],
    *,
    budget: float,
    margin: float,
    processes: int | None = None,
    progress: Progress = lambda text: None,
) -> tuple[tuple[OwnCall, ...], NoOwnCall | None]:
    """Time the callables that compiled some graphs against eager; this runs the script, several times.

    Args:
        wanted: compile ids of the graphs, each with whether the script runs its backward.
        budget: seconds of timing, for all callables and processes. The script runs on top of that.
        margin: what differs by less is the same. processes: how many; if None 3 and more.

    Returns:
        each callable, in the order in which they were reached, and why one is missing, if one is.
    """
    runs: list[list[Event]] = []
    problem: NoOwnCall | None = None
    rule, callables = _rule(budget * (1 - PARTS), margin, processes), max(len(wanted), 1)
    begin, reaching = time.monotonic(), 0.0
    with _caches_of(program) as caches:
        while True:
            number = len(runs)
            progress(
                f"running {program.script} up to the call ({number + 1} of {max(rule.fewest, number + 1)})"
            )
            request = OwnRequest(
                wanted=tuple(wanted),
                seconds=rule.share(number) / callables,
                parts=budget * PARTS / callables if number == 0 else 0.0,
                precision=margin / 4,
                seed=2 * number,
                candidate_first=bool(number % 2),
                limit_s=program.limit_s,
            )
            try:
                with OwnProcess(program, request, caches) as process:
                    for event in process.events():
                        if event["event"] == "reached":
                            progress(f"timing {event['name']} against eager ({number + 1})")
                            reaching = max(reaching, event["reached_s"])
                            callables = max(1, len(_ids([*runs, process.seen])))
                    runs.append(process.seen)
            except OwnChildError as error:
                problem = NoOwnCall(error.code, error.message)
                break
            calls = _calls(runs, program, margin)
            if not calls:
                problem = _why_none(runs[-1])
                break
            comparisons = [call.comparison for call in calls]
            if rule.enough(number + 1, comparisons, inf if reaching > budget else 0.0):
                break
            if time.monotonic() - begin + reaching > max(_REACHING_S, _REACHING * budget) + budget:
                break
    calls = _calls(runs, program, margin)
    if problem is None and runs:
        missing = {one for one, _ in wanted} - {one for call in calls for one in call.graphs}
        problem = _why_none(runs[-1]) if missing and len(calls) < request.most else None
    few = OwnRemark("few-processes", (("seconds", reaching), ("processes", len(runs))))
    if len(runs) < rule.fewest:
        calls = tuple(replace(call, remarks=(*call.remarks, few)) for call in calls)
    return calls, problem


def time_without_vectors(
    program: OwnProgram, wanted: Sequence[tuple[str, bool]], own: OwnCall, seconds: float
) -> OwnCall:
    """Return a call with the time of each of its operators where ATen's kernels for vectors are switched off.

    The script runs once more, with `ATEN_CPU_CAPABILITY=default`, which torch reads when it is loaded. What
    inductor compiles then has no vectors either: g++ does not take them without that. Where the script ends
    otherwise, the call is as it was.
    """
    plain = replace(
        program,
        variables={**program.variables, "ATEN_CPU_CAPABILITY": "default"},
        settings=(*program.settings, ("inductor.cpp.simdlen", "1")),
    )
    request = OwnRequest(wanted=tuple(wanted), parts=seconds, eager_only=True, limit_s=program.limit_s)
    try:
        with _caches_of(program) as caches, OwnProcess(plain, request, caches) as process:
            events = [event for event in process.events() if event["event"] == "eager"]
    except OwnChildError:
        return own
    if len(events) != 1 or events[0]["capability"] != "DEFAULT":
        return own
    times = {one["name"].replace("::", "."): one["seconds"] for one in events[0]["operators"]}
    return replace(
        own,
        operators=tuple(replace(one, without_vectors=times.get(one.name)) for one in own.operators),
    )


def measure_memory(
    program: OwnProgram, wanted: Sequence[tuple[str, bool]], progress: Progress = lambda text: None
) -> tuple[tuple[MeasuredMemory, ...], NoOwnCall | None]:
    """Return what torch's allocator gives in a call of each callable, compiled and eager: runs the script.

    Args:
        wanted: see `time_own_calls`.

    Returns:
        each callable, in the order in which they were reached, and why one is missing, if one is.
    """
    request = OwnRequest(wanted=tuple(wanted), memory=True, limit_s=program.limit_s)
    progress(f"running {program.script} up to the call")
    try:
        with _caches_of(program) as caches, OwnProcess(program, request, caches) as process:
            events = [*process.events()]
    except OwnChildError as error:
        return (), NoOwnCall(error.code, error.message)
    made, facts = list[MeasuredMemory](), dict[str, Any]()
    for event in events:
        facts |= event
        if event["event"] == "memory":
            made.append(
                from_json(
                    MeasuredMemory,
                    {
                        **facts,
                        "eager": _side_memory(event["eager"]),
                        "compiled": _side_memory(event["compiled"]),
                    },
                )
            )
    missing = {one for one, _ in wanted} - {one for call in made for one in call.graphs}
    return tuple(made), _why_none(events) if missing and len(made) < request.most else None


def _side_memory(facts: Event) -> Event:
    """Return what a process says of one side, as a record of it has it."""
    live = [
        {"operator": name.replace("::", "."), "bytes": size, "count": count}
        for name, size, count in facts["live"]
    ]
    return {**facts, "live": live}


def _rule(budget: float, margin: float, processes: int | None) -> StopRule:
    return StopRule(budget, margin, processes, most=MOST_PROCESSES, verdict_is_enough=True)


def _ids(runs: Sequence[Sequence[Event]]) -> dict[tuple[str, ...], None]:
    reached = (event for run in runs for event in run if event["event"] == "reached")
    return dict.fromkeys(tuple(event["graphs"]) for event in reached)


def _calls(runs: Sequence[Sequence[Event]], program: OwnProgram, margin: float) -> tuple[OwnCall, ...]:
    """Return the callables that were timed, by what all processes say."""
    calls = []
    for ids in _ids(runs):
        several: list[dict[str, Event]] = []
        for run in runs:
            parts, mine = dict[str, Event](), False
            for event in run:
                if event["event"] == "reached":
                    mine = tuple(event["graphs"]) == ids
                if mine:
                    parts[event["event"]] = event
            if "series" in parts:
                several.append(parts)
        if several:
            calls.append(_call(several, program, margin))
    return tuple(calls)


def _call(several: Sequence[dict[str, Event]], program: OwnProgram, margin: float) -> OwnCall:
    series = [from_json(Series, parts["series"]["series"]) for parts in several]
    comparison = conclude(series, margin)
    times = {time.name: time.seconds for time in times_of(series, [comparison], {})}
    facts = {**several[0]["reached"], **several[0]["call"]}
    remarks = list(facts["remarks"])
    if any(parts["series"]["compiled"] for parts in several):
        remarks.append({"code": "compiled-while-timed"})
    remarks += [
        {"code": code, "message": parts[code]["message"]}
        for parts in several
        for code in _MISSING
        if code in parts
    ]
    eager = next((parts["eager"] for parts in several if "eager" in parts), {})
    samples = [from_json(CallSamples, parts["parts"]["parts"]) for parts in several if "parts" in parts]
    found = {
        "script": str(program.script),
        "eager": times[series[0].baseline],
        "compiled": times[series[0].candidate or ""],
        "comparison": comparison,
        "processes": len(several),
        "reached_s": max(parts["reached"]["reached_s"] for parts in several),
        "measured": sum(one.spent for one in series),
        "remarks": remarks,
        "parts": call_parts_of(samples) if samples else None,
        "operators": [_eager_operator(one, times[series[0].baseline]) for one in eager.get("operators", ())],
        "capability": eager.get("capability", ""),
    }
    return from_json(OwnCall, {**facts, **{name: to_json(value) for name, value in found.items()}})


def _eager_operator(facts: Event, call: float) -> EagerOperator:
    """Return what a process says of an operator; together they take no more than eager's `call`."""
    return EagerOperator(
        name=facts["name"].replace("::", "."),
        calls=facts["calls"],
        seconds=min(facts["share"] * call, facts["seconds"]),
        own=facts["own"],
        below=tuple((name.replace("::", "."), share) for name, share in facts["below"]),
        read=facts["read"],
        written=facts["written"],
        allocated=facts["allocated"],
        functions=tuple(facts["functions"]),
    )


def _why_none(run: Sequence[Event]) -> NoOwnCall:
    """Return why a process that came to its end timed less than was asked for."""
    for event in run:
        if event["event"] == "not-timed":
            return NoOwnCall(event["code"], event["message"])
    over = run[-1] if run else {}
    return NoOwnCall("not-called" if over.get("callables") else "nothing-compiled")


def compare_programs(
    a: OwnProgram,
    b: OwnProgram,
    wanted: tuple[Sequence[tuple[str, bool]], Sequence[tuple[str, bool]]],
    *,
    budget: float,
    margin: float,
    processes: int | None = None,
    progress: Progress = lambda text: None,
) -> OwnPair | NoOwnCall:
    """Time the compiled callable of A against that of B, each in a process of its script, lap by lap.

    Args: see `time_own_calls`; `wanted` has the graphs of A and those of B: the first callable of theirs is
        timed on each side.

    Returns:
        the comparison, or why there is none.
    """
    series: list[Series] = []
    seen: tuple[Sequence[Event], ...] = ()
    rule = _rule(budget, margin, processes)
    with _caches_of(a) as caches_a, _caches_of(b) as caches_b:
        while True:
            number = len(series)
            share = rule.share(number)
            first, second = (
                OwnRequest(wanted=tuple(ids), seconds=share, laps=True, limit_s=program.limit_s)
                for ids, program in zip(wanted, (a, b), strict=True)
            )
            progress(f"running the script of A and that of B up to the call ({number + 1})")
            try:
                with OwnProcess(a, first, caches_a) as one, OwnProcess(b, second, caches_b) as other:
                    for process in (one, other) if number % 2 == 0 else (other, one):
                        while (event := process.next_event())["event"] != "ready":
                            if event["event"] in ("over", "not-timed"):
                                return _why_none(process.seen)
                    seen = seen or (tuple(one.seen), tuple(other.seen))
                    progress(f"timing both calls in turns ({number + 1})")
                    rng, begin = random.Random(number), time.monotonic()  # noqa: S311 - no secret
                    quads = time_remotes([one, other], COMPILED, share, margin / 4, rng)
                    series.append(Series("A", "B", tuple(quads), time.monotonic() - begin))
            except OwnChildError as error:
                return NoOwnCall(error.code, error.message)
            comparison = conclude(series, margin)
            if rule.enough(number + 1, [comparison]):
                break
    times = {one.name: one.seconds for one in times_of(series, [comparison], {})}
    sides = [
        _side(events, program, times[name])
        for events, program, name in zip(seen, (a, b), ("A", "B"), strict=True)
    ]
    return OwnPair(sides[0], sides[1], comparison, sum(one.spent for one in series))


def _side(events: Sequence[Event], program: OwnProgram, seconds: float) -> OwnCallOfSide:
    parts = {event["event"]: event for event in events}
    found = {"script": str(program.script), "seconds": seconds}
    return from_json(OwnCallOfSide, {**parts["reached"], **parts["call"], **found})
