"""Where the time of a program goes, and what cost it: parts of a call, and missed optimisations by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.bounds import with_bounds
from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.causes.times import Times
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.model.call_parts import CallPart, Side
from inductor_probe.model.cause import Cause
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.overview import Basis, OverviewPart
from inductor_probe.model.own_call import OwnCall
from inductor_probe.model.profile import WORKS, NestTime, Profile, ProfilePart
from inductor_probe.model.record import grouped
from inductor_probe.model.span import SourceLine, own_lines

_MOST_LINES = 3
_AS_LONG = 1.3
_SUMS = ("call", "compiled")
_WORK = ("kernel", "library", "copy")
"""Kinds of parts that have names; of others the kind is the name."""


def parts_of_call(own: OwnCall | None, profiles: Sequence[Profile]) -> tuple[OverviewPart, ...]:
    """Return the parts of a call by their share, C++ kernels as their loop nests; shares add up to 1 at most.

    They are those of the user's call where that was looked into, with the loop nests of profiles in them;
    else those of all profiles, as if each graph was called once.
    """
    if own is not None and own.parts is not None and agrees(own):
        side = side_of(own)
        parts = [
            part
            for row in own.parts.rows
            if row.side == side and row.kind not in _SUMS and row.nonzero
            for part in _of_row(row, profiles)
        ]
    else:
        whole = sum(profile.call for profile in profiles)
        parts = [part for profile in profiles for part in _of_profile(profile, whole)]
    return tuple(sorted(parts, key=lambda part: -part.share))


def side_of(own: OwnCall) -> Side:
    """Return whose parts say where a call's time goes: the host's, where the GPU waits for it mostly."""
    gap = own.parts.row("gap", "device") if own.parts else None
    busy = own.device != "cpu" and (gap is None or gap.share < 1 - WORKS)
    return "device" if busy else "host"


def busy_of(profiles: Sequence[Profile]) -> float | None:
    """Return how long a GPU works in a call of each graph, all together; None on a CPU."""
    parts = [part for profile in profiles for part in profile.parts if part.side == "device"]
    return sum(part.seconds for part in parts if part.kind not in ("gap", "call")) if parts else None


def agrees(own: OwnCall) -> bool:
    """Whether the parts of a call, timed by themselves, take about what the call does."""
    if own.parts is None or (whole := own.parts.row("compiled")) is None:
        return False
    return 1 / _AS_LONG < (own.parts.wall or whole.seconds) / own.compiled < _AS_LONG


def _of_row(row: CallPart, profiles: Sequence[Profile]) -> Iterator[OverviewPart]:
    """Yield a part of the user's call: of a kernel that one profile has, its loop nests in proportion."""
    name = row.name if row.kind in _WORK else row.kind
    having = [
        (profile, part)
        for profile in profiles
        for part in profile.parts
        if part.name == row.name and part.kind in ("kernel", "library") and row.kind in _WORK
    ]
    if len(having) != 1:
        yield OverviewPart(name, row.share, row.seconds)
        return
    (profile, part), *_ = having
    for one in _of_part(part, profile, row.share / part.share if part.share > 0 else 0.0):
        yield replace(one, time=row.seconds * one.share / row.share if row.share else one.time)


def _of_profile(profile: Profile, whole: float) -> Iterator[OverviewPart]:
    side = "host" if profile.device == "cpu" else "device"
    scale = profile.call / whole if whole else 0.0
    for part in profile.parts:
        unknown = part.kind in _SUMS or (part.kind == "gap" and side == "host")  # what is in no part
        if part.side == side and not unknown and part.seconds > part.uncertainty:
            yield from _of_part(part, profile, scale)


def _of_part(part: ProfilePart, profile: Profile, scale: float) -> Iterator[OverviewPart]:
    """Yield a part, or its loop nests where those take most of it; shares are multiplied with `scale`."""
    nests = [one for one in profile.nests if one.kernel == part.name and one.number is not None]
    if len(nests) > 1:
        yield from (_of_nest(nest, profile, scale) for nest in nests if nest.seconds > nest.uncertainty)
        return
    slow = nests[0].slow if nests else None
    yield OverviewPart(
        name=part.name if part.kind in _WORK else part.kind,
        share=part.share * scale,
        time=part.seconds,
        bytes=part.moved,
        graph=profile.graph,
        nodes=part.nodes,
        lines=_lines(part.sources),
        slow=slow.operations if slow else (),
    )


def _of_nest(nest: NestTime, profile: Profile, scale: float) -> OverviewPart:
    return OverviewPart(
        name=f"loop nest {nest.number} of {nest.kernel}",
        share=nest.share * scale,
        time=nest.seconds,
        bytes=nest.moved,
        graph=profile.graph,
        nodes=nest.nodes,
        lines=_lines(nest.sources),
        slow=nest.slow.operations if nest.slow else (),
    )


def _lines(sources: Sequence[SourceLine]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.short for line in own_lines(sources)))[:_MOST_LINES]


def parts_unmeasured(graphs: Sequence[CompiledGraph]) -> tuple[tuple[OverviewPart, ...], Basis]:
    """Return kernels and library calls by what bounds their time, and what that is.

    Of a GPU whose figures are known it is the least time that each can take (`bounds.py`), else the bytes
    that it reads and writes. What has no bound is left out; shares are of what has one.
    """
    rows = [
        (graph, row) for graph in graphs for row in with_bounds(graph, kernel_rows(graph)) if row.launches
    ]
    on_gpu = any(row.bound is not None for _, row in rows)
    weights = [(row.bound.seconds if row.bound else None) if on_gpu else row.moved for _, row in rows]
    total = sum(filter(None, weights))
    parts = [
        OverviewPart(
            name=row.name,
            share=weight / total,
            time=float(weight) if on_gpu else None,
            bytes=row.moved,
            graph=graph.name,
            nodes=row.nodes,
            lines=_lines(row.sources),
        )
        for (graph, row), weight in zip(rows, weights, strict=True)
        if weight
    ]
    basis: Basis = "none" if not parts else "bound" if on_gpu else "bytes"
    return tuple(sorted(parts, key=lambda part: -part.share)), basis


class Missed(Struct, frozen=True):
    """Missed optimisations of one cause in a graph: the weightiest, and what all of them are about.

    `share` is that of the call; None where it is not known.
    """

    graph: str
    cause: Cause
    alike: int
    share: float | None
    time: float | None


def missed(
    graphs: Sequence[CompiledGraph], times: Mapping[str, Times], whole: float | None
) -> tuple[Missed, ...]:
    """Return what was missed by the share of the call that it is about; by bytes where nothing was timed.

    What no kernel runs for, and what has no bytes, is left out. A decision of which torch has no other is
    listed, too: it says where the time goes.

    Args:
        whole: seconds of the call; None where shares are of all bytes that kernels read and write.
    """
    total = sum(row.moved or 0 for graph in graphs for row in kernel_rows(graph) if row.launches)
    rows = []
    for graph in graphs:
        causes_missed = (
            cause
            for cause in graph_causes(graph, times=times.get(graph.name)).causes
            if cause.kind in ("missed", "hazard")
        )
        for causes in grouped(causes_missed, _what).values():
            causes.sort(key=lambda cause: (-cause.stake, -(cause.cost or 0)))
            pieces = dict(piece for cause in causes for piece in cause.times)
            time = sum(pieces.values()) if pieces else None
            counted = {cause.counted or cause.subjects: cause.cost or 0 for cause in causes}
            stake = sum({(cause.counted or cause.subjects): cause.stake for cause in causes}.values())
            share = stake / whole if whole and time is not None else None
            if whole is None and total:
                share = sum(counted.values()) / total
            if share is None or share > 0:
                rows.append(
                    Missed(graph.name, causes[0], len(causes), min(share, 1.0) if share else share, time)
                )
    return tuple(sorted(rows, key=lambda one: -(one.share or 0.0)))


def _what(cause: Cause) -> object:
    """Return what is the same of missed optimisations of one cause."""
    if decision := cause.decision:
        return decision.kind, decision.outcome, decision.cause
    return cause.remark.code if cause.remark else ""
