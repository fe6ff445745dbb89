"""The user's own callables of a graph or of a run: whether the script may run again, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inductor_probe.errors import ProbeError
from inductor_probe.model.own_call import NoOwnCall, OwnCall, OwnPair
from inductor_probe.report.units import counted

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
    from inductor_probe.measuring.script_process import OwnProgram
    from inductor_probe.model.bench import BenchSettings

_LONG_S = 10.0
"""Measuring that takes longer begins with an estimate."""
_IMPORTED_S = 4.0
"""About how long a process imports torch and inductor, and compiles a few kernels."""
_REACHED_S = 5.0
"""About how long a script of a small network takes up to the call, where its code is in inductor's caches."""
_TIMES = 3
"""A script may take so many times as long as its dump took, before it is given up."""


def own_calls(
    graphs: Sequence[GraphOnDisk],
    settings: BenchSettings,
    progress: Callable[[str], None] | None = None,
) -> tuple[tuple[OwnCall, ...], NoOwnCall | None]:
    """Time the callables that compiled graphs of a run against eager: this runs their script again.

    The script is run where the record shows that it was made here so, and as it was: never by what the
    manifest of a stranger says.

    Args:
        settings: its share of `budget` for each graph, `margin`, `processes` and `own_threads` count.

    Returns:
        those that could be timed, and why others were not.
    """
    from inductor_probe.harness.budget import OWN
    from inductor_probe.measuring.own_calls import time_own_calls

    if not settings.own:
        return (), NoOwnCall("not-asked")
    program = program_of(graphs[0].run, threads=settings.own_threads)
    if isinstance(program, NoOwnCall):
        return (), program
    wanted = wanted_of(graphs)
    if not wanted:
        return (), NoOwnCall("ahead-of-time")
    return time_own_calls(
        program,
        wanted,
        budget=settings.budget * OWN * len(graphs),
        margin=settings.margin,
        processes=settings.processes,
        progress=progress or (lambda text: None),
    )


def without_own_share(graph: GraphOnDisk, settings: BenchSettings) -> BenchSettings:
    """Return settings with what `own_calls` leaves of the budget."""
    from inductor_probe.harness.budget import OWN

    if not (settings.own and may_run_again(graph)):
        return settings
    return replace(settings, budget=settings.budget * (1 - OWN))


def may_run_again(graph: GraphOnDisk) -> bool:
    """Whether the script that compiled a graph can be run again to time its call."""
    return not isinstance(program_of(graph.run), NoOwnCall) and bool(wanted_of([graph]))


def duration_sentence(graphs: Sequence[GraphOnDisk], settings: BenchSettings, times: int = 1) -> str | None:
    """Return about how long measuring each of some graphs takes, and why; None where that is not long."""
    if not graphs:
        return None
    around, runs = seconds_around(graphs, settings)
    measuring = settings.budget * len(graphs)
    if (whole := times * (measuring + around)) < _LONG_S:
        return None
    script = f", the script runs {counted(times * runs, 'time')}" if runs else ""
    return f"this takes about {whole:.0f} s: {times * measuring:.3g} s of measuring{script}"


def seconds_around(graphs: Sequence[GraphOnDisk], settings: BenchSettings) -> tuple[float, int]:
    """Return about how long measuring takes beside the budget, and how often the script is run.

    A process of the script imports torch, and runs up to the call with what it compiled in inductor's caches:
    that is less than the dump took. The bench file's imports torch once, and compiles.
    """
    from inductor_probe.harness.budget import PROCESSES

    manifest = graphs[0].run.manifest
    runs = (settings.processes or PROCESSES) if settings.own and may_run_again(graphs[0]) else 0
    script_s = min(manifest.duration_s, _REACHED_S) if manifest else _REACHED_S
    return _IMPORTED_S * len(graphs) + runs * script_s, runs


def own_pair(
    a: Sequence[GraphOnDisk],
    b: Sequence[GraphOnDisk],
    *,
    budget: float,
    margin: float,
    threads: int | None = None,
    processes: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> OwnPair | NoOwnCall:
    """Time the callable that compiled the first of some graphs of a run against that of another run.

    Args:
        budget: seconds of timing.
        threads: of torch and OpenMP; None for those that the scripts have.
    """
    from inductor_probe.measuring.own_calls import compare_programs

    programs: list[OwnProgram] = []
    for graphs in (a, b):
        program = program_of(graphs[0].run, threads=threads)
        if isinstance(program, NoOwnCall):
            return program
        programs.append(program)
    wanted = wanted_of(a), wanted_of(b)
    if not all(wanted):
        return NoOwnCall("ahead-of-time")
    return compare_programs(
        programs[0],
        programs[1],
        wanted,
        budget=budget,
        margin=margin,
        processes=processes,
        progress=progress or (lambda text: None),
    )


def program_of(
    run: RunOnDisk,
    *,
    threads: int | None = None,
    trust: bool = False,
    may_fail: bool = False,
    simulated: bool = False,
) -> OwnProgram | NoOwnCall:
    """Return how the script of a run is run again, or why it is not; for the rest see `recipe_of`.

    Args:
        simulated: a simulated GPU will do: nothing is timed.
    """
    from inductor_probe.api.baseline import recipe_of, why_not_as_it_is
    from inductor_probe.capture.scripts import script_arguments
    from inductor_probe.capture.torch_settings import is_setting
    from inductor_probe.machine.targets import find_gpu_target
    from inductor_probe.measuring.script_process import LIMIT_S, OwnProgram

    try:
        recipe = recipe_of(run, trust=trust, may_fail=may_fail)
    except ProbeError as error:
        return NoOwnCall("no-script", error.message)
    manifest = run.manifest
    target = find_gpu_target(recipe.target) if isinstance(recipe.target, str) else recipe.target
    if manifest is None or (target is not None and not simulated):
        return NoOwnCall("simulated")
    if manifest.dump is not None and manifest.dump.pid != manifest.dump.script:
        return NoOwnCall("other-process")
    if (why := why_not_as_it_is(run, recipe)) is not None:
        return NoOwnCall("not-as-it-was", why)
    settings = {name: value for name, value in recipe.knobs.items() if is_setting(name)}
    knobs = {name: value for name, value in recipe.knobs.items() if name not in settings}
    return OwnProgram(
        script=recipe.script,
        arguments=tuple(script_arguments(recipe.script, recipe.args, recipe.cases, knobs)),
        settings=tuple(settings.items()),
        variables=recipe.variables,
        flips=recipe.flips,
        threads=threads,
        target=target,
        limit_s=max(LIMIT_S, _TIMES * manifest.duration_s),
    )


def wanted_of(graphs: Sequence[GraphOnDisk]) -> tuple[tuple[str, bool], ...]:
    """Return the compile ids of graphs, each with whether the script runs its backward."""
    manifest = graphs[0].run.manifest
    records = manifest.graphs if manifest else ()
    backward = {one.compile_id for one in records if one.why == "backward" and one.inputs}
    mine = [manifest.graph(graph.name) if manifest else None for graph in graphs]
    ids = dict.fromkeys(one.compile_id for one in mine if one is not None and one.compile_id is not None)
    return tuple((name, name in backward) for name in ids)
