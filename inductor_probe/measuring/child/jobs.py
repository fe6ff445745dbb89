"""Jobs of a child of `harness/server.py`: list the cases of a script, compile some, time one."""

from __future__ import annotations

import fnmatch
import gc
import json
import os
import platform
import random
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict

import torch

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.jobs import JobError, Tell, refuse_bad_fork
from inductor_probe.harness.laps import kept_lap
from inductor_probe.harness.measure import Options, describe, time_pair
from inductor_probe.harness.quads import (
    Ring,
    Side,
    gpu_clock,
    make_ring,
    make_side,
    run_once,
)
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.references import plain_check
from inductor_probe.harness.sides import warm_up
from inductor_probe.harness.timing import Subject
from inductor_probe.measuring.child.cases import (
    EAGER,
    OF_COMPILED,
    Built,
    Column,
    Request,
    scenario_of,
    usage,
)
from inductor_probe.measuring.child.observed import observing
from inductor_probe.scenario import Case, Scenario, missing_device, tensors_in

CALIBRATION, WARM_S = 20, 0.2  # calls of which warming up takes at least so many, and for how long


def list_cases(file: Request, request: Request, tell: Tell) -> None:
    """Send the cases of a script that were asked for, with their knobs, and why one cannot run here.

    `matrix` and the patterns in `cases` choose among them; `settings` are knobs that are set otherwise.
    """
    scenario = scenario_of(request)
    try:
        cases = chosen(scenario, request)
        for knob, text in request["settings"].items():
            cases = [case.with_knob(knob, text, scenario.choices.get(knob, ())) for case in cases]
    except ProbeError as error:
        raise usage(error) from error
    listed = [
        {"name": case.name, "knobs": dict(case.knobs), "missing": missing_device(case)} for case in cases
    ]
    tell("cases", cases=listed)


def describe_interpreter(file: Request, request: Request, tell: Tell) -> None:
    """Send what this Python and its torch are, and the GPU that it sees."""
    tell(
        "interpreter",
        executable=sys.executable,
        python=platform.python_version(),
        torch=torch.__version__,
        git=torch.version.git_version,
        gpu=torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    )


def chosen(scenario: Scenario, request: Request) -> list[Case]:
    """Return the cases of a matrix, or of all where only patterns are given, that match one of those."""
    patterns, matrix = request["cases"], request["matrix"]
    cases = scenario.matrix(matrix or ("full" if patterns else "quick"))
    names = dict.fromkeys(name for pattern in patterns for name in fnmatch.filter(cases, pattern))
    for pattern in patterns:
        if not fnmatch.filter(cases, pattern):
            raise NotFoundError(f"no case matches {pattern!r}", near_names(pattern, cases))
    return [cases[name] for name in names or cases]


def compile_cases(file: Request, request: Request, tell: Tell) -> None:
    """Compile the cases whose turn it is, so that whoever times them finds all in inductor's caches.

    Of `children` children, child 1 has cases 1, 1 + children, ... What fails here fails again there.
    """
    torch.set_num_threads(1)
    scenario: Scenario | None = None
    for number, case in enumerate(request["cases"]):
        if number % request["children"] != request["child"]:
            continue
        scenario = scenario or scenario_of(case)
        try:
            set_threads(case["threads"])
            built = Built(case, scenario)
            built.warm(
                [
                    column
                    for column in built.columns(case["columns"])
                    if column.name not in (EAGER, *OF_COMPILED)
                ]
            )
        except Exception as error:  # whatever a scenario may raise
            tell("compiled", case=case["case"], error=first_line(error))
        else:
            tell("compiled", case=case["case"], error="")
        torch._dynamo.reset()


def set_threads(threads: int) -> None:
    """Set the threads of torch, and those that C++ kernels are generated for.

    Before torch 2.12 the key of a graph in inductor's cache does not have torch's threads in it: code for one
    thread would be found for four.
    """
    torch.set_num_threads(threads)
    from torch._inductor import config

    config.cpp.threads = threads


def time_case(file: Request, request: Request, tell: Tell) -> None:
    """Compile the columns of a case from inductor's caches, check them, and time them in turns.

    Sends `row` (what is known of the inputs), `columns`, a `series` for each pair, and `columns` once more.
    """
    load = os.getloadavg()[0]
    built, columns = prepared(request, tell)
    send(columns, tell, load)
    if not request["check_only"]:
        with torch.no_grad() if built.needs_grad else nullcontext():
            measured = time_columns(built, columns, request, tell)
        after(built, columns)
        send(columns, tell, load, measured)


def prepared(request: Request, tell: Tell) -> tuple[Built, list[Column]]:
    """Build a case, compile its columns, in turn from the last one if that is asked for, and check them.

    Sends `row`, what is known of the inputs, with the checks.

    Raises:
        JobError: the script or a name is wrong, or the function fails as it is.
    """
    refuse_bad_fork()
    set_threads(request["threads"])
    tell("phase", phase="compiling", names=[request["case"]])
    scenario = scenario_of(request)
    try:
        built = Built(request, scenario)
    except ProbeError as error:
        raise usage(error) from error
    columns = built.columns(request["columns"])
    try:
        outputs = tensors_in(built.call(built.check.function, *clone(built.inputs)))
    except Exception as error:  # whatever the function may raise
        raise JobError("error", f"the function raises {first_line(error)}") from error
    built.warm(columns[::-1] if request["second"] else columns)
    if request["check"]:
        tell("phase", phase="checking", names=[request["case"]])
        built.judge(columns)
        tell("row", inputs=describe(list(built.inputs)), **built.work(outputs))
    return built, columns


def send(columns: list[Column], tell: Tell, load: float = 0.0, measured: float = 0.0) -> None:
    """Send what is known of all columns."""
    facts = []
    for column in columns:
        check = plain_check(column.check) if column.check else None
        facts.append({"name": column.name, **column.facts, "check": check})
    tell("columns", columns=facts, load=load, measured=measured)


def time_columns(built: Built, columns: list[Column], request: Request, tell: Tell) -> float:
    """Time the first column with each other one that is right; return the seconds that it took.

    Where the first is not to be compared, the next one that is takes its place.
    """
    good = [column for column in columns if not column.problem]
    if not good:
        return 0.0
    device = next((str(tensor.device) for tensor in tensors_of(built.inputs) if tensor.is_cuda), None)
    cold = request["cold"] if request["cold"] is not None else device is not None
    if device is not None:
        gpu_clock(device, cold)
    seed, subjects = request["seed"], {}
    rng = random.Random(seed)  # noqa: S311 - no secret
    for column in good:
        values = column.values if column.name in OF_COMPILED else built.inputs
        subjects[column.name] = Subject(column.name, built.bound(column), values)
        column.call_s = seconds_of(subjects[column.name])
    options = Options(
        precision=request["margin"] / 4,
        threads=request["threads"],
        cold=cold,
        copies_first=request["second"],
        seed=seed,
    )
    first, *others = good
    pairs: list[tuple[Column, Column | None]] = [(first, other) for other in others] or [(first, None)]
    spent, built_s = 0.0, request["budget"]
    built.counter.since()
    gc.disable()
    for number, (a, b) in enumerate(pairs):
        names = [a.name, *([b.name] if b else [])]
        tell("phase", phase="timing", names=names)
        share = max(built_s - spent, 0.0) / (len(pairs) - number)
        expected = max(a.call_s, b.call_s if b else 0.0)
        begin = time.perf_counter()
        try:
            timed = time_pair(
                (subjects[a.name], subjects[b.name] if b else None),
                options,
                max(share, 2 * expected),
                rng,
                lambda remark: None,
                expected,
            )
        except (MemoryError, RuntimeError) as error:  # torch has its own for memory: a RuntimeError
            (b or a).fail("not-timed", first_line(error))
        else:
            tell("series", series=asdict(timed))
        spent += time.perf_counter() - begin
    gc.enable()
    return spent


def seconds_of(subject: Subject) -> float:
    """Return about how long one call takes: the shorter of two."""
    run = subject.bind(clone(subject.values))
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        run()
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


def after(built: Built, columns: list[Column]) -> None:
    """See whether each column still runs what it ran before it was timed, and has compiled nothing since."""
    counts = built.counter.since()
    for column in columns:
        if column.name in (EAGER, *OF_COMPILED) or column.problem:
            continue
        if counts.compiles:
            column.fail("compiled-while-timed", f"{counts.compiles} compiles")
            continue
        bind = built.bound(column)
        with observing() as observed:
            bind(clone(built.inputs))()
        if observed.paths != column.observed.paths and not observed.replayed:
            column.fail("other-code", ", ".join(observed.paths))


def serve_case(file: Request, request: Request, tell: Tell) -> None:
    """Compile and check the columns of a case, then run laps of them as lines on standard input ask for.

    `{"lap": "compiled", "number": 3}` runs one, on the slot of a ring that the number chooses, and
    `{"end": true}` ends. Sends `row`, `columns`, `ready`, then a `lap` for each line, and `columns` once more
    at the end.
    """
    built, columns = prepared(request, tell)
    good = {column.name: column for column in columns if not column.problem}
    with torch.no_grad() if built.needs_grad else nullcontext():
        rng = random.Random(request["seed"])  # noqa: S311 - no secret
        rings: dict[int, Ring] = {}
        sides: dict[str, Side] = {}
        for name, column in good.items():
            values = column.values if name in OF_COMPILED else built.inputs
            subject = Subject(name, built.bound(column), values)
            ring = rings.get(id(values)) or make_ring(values, bool(request["cold"]), rng, lambda remark: None)
            rings[id(values)] = ring
            sides[name] = make_side(subject, ring)
            if seconds_of(subject) * CALIBRATION < WARM_S:
                warm_up([sides[name]], WARM_S)
        built.counter.since()
        send(columns, tell)
        tell("ready")
        gc.disable()
        while line := sys.stdin.buffer.readline():
            command = json.loads(line)
            if command.get("end"):
                break
            side, number = sides[command["lap"]], command["number"]
            run_once(side, number)
            lap = kept_lap(side, number)
            tell("lap", seconds=lap.seconds, lost=lap.lost)
        gc.enable()
    after(built, columns)
    send(columns, tell)
