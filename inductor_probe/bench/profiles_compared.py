"""Two profiles part by part: kernels that do the same work, and what else a call spends its time on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from inductor_probe.model.profile import (
    ComparedPart,
    NestTime,
    PartKind,
    Profile,
    ProfileComparison,
    ProfilePart,
    Standing,
)

Group: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of kernels of A and of B that do the same work; one side may be empty."""
_BETWEEN_PROCESSES = 0.05
"""Code and data lie elsewhere in each process: its times differ by a few percent from those of another."""
_NOTICED = 0.005
"""Of a call: a part that differs by less makes no difference to it."""
_ORDER: tuple[PartKind, ...] = (
    "kernel", "library", "launches", "allocation", "check", "free", "other", "gap", "call",
)  # fmt: skip


def compare_profiles(a: Profile, b: Profile, groups: Sequence[Group] | None = None) -> ProfileComparison:
    """Compare two profiles; `groups` are kernels that do the same work, None to pair them by their names.

    Kernels that stand in no group are paired by their names. Loop nests are compared where one kernel stands
    against one, and both have equally many.
    """
    known = [*(groups or ()), *_by_name(a, b, groups or ())]
    parts: list[ComparedPart] = []
    least = _NOTICED * max(a.call, b.call)
    for kind in _ORDER:
        if kind in ("kernel", "library"):
            parts += _kernels(a, b, kind, known, least)
        else:
            sides = [part for profile in (a, b) if (part := profile.part(kind))]
            if sides:
                name = (sides[0].name,)
                first, second = a.part(kind), b.part(kind)
                parts.append(_compared(kind, (name, name), _one(first), _one(second), least))
    by: Literal["compute", "name"] = "name" if groups is None else "compute"
    return ProfileComparison(a.graph, b.graph, a.torch, b.torch, by, tuple(parts))


def _by_name(a: Profile, b: Profile, groups: Sequence[Group]) -> Iterator[Group]:
    """Pair what stands in no group by its name."""
    sides = [
        [part.name for part in profile.parts if part.kind in ("kernel", "library")] for profile in (a, b)
    ]
    paired = [{name for group in groups for name in group[side]} for side in (0, 1)]
    left = [[name for name in sides[side] if name not in paired[side]] for side in (0, 1)]
    for name in dict.fromkeys(left[0] + left[1]):
        yield ((name,) if name in left[0] else (), (name,) if name in left[1] else ())


def _kernels(
    a: Profile, b: Profile, kind: PartKind, groups: Sequence[Group], least: float
) -> Iterator[ComparedPart]:
    for group in groups:
        sides = [_named(profile, kind, names) for profile, names in zip((a, b), group, strict=True)]
        if not sides[0] and not sides[1]:
            continue
        yield _compared(kind, group, _sum(sides[0]), _sum(sides[1]), least)
        nests = [
            [nest for nest in profile.nests if nest.kernel in names]
            for profile, names in zip((a, b), group, strict=True)
        ]
        if kind == "kernel" and len(group[0]) == len(group[1]) == 1 and len(nests[0]) == len(nests[1]) > 2:
            for first, second in zip(*nests, strict=True):
                times = [(nest.seconds, nest.uncertainty) for nest in (first, second)]
                names = _nest_name(first), _nest_name(second)
                yield _compared("nest", names, times[0], times[1], least)


def _named(profile: Profile, kind: PartKind, names: Sequence[str]) -> list[ProfilePart]:
    side = "device" if profile.device != "cpu" else "host"
    parts = (part for part in profile.parts if part.name in names and part.kind == kind)
    return [part for part in parts if part.side == side or kind == "library"]


def _nest_name(nest: NestTime) -> tuple[str]:
    return (f"loop nest {nest.number}" if nest.number else "outside of loop nests",)


_Time: TypeAlias = "tuple[float, float] | None"


def _one(part: ProfilePart | None) -> _Time:
    return None if part is None else (part.seconds, part.uncertainty)


def _sum(parts: Iterable[ProfilePart]) -> _Time:
    times = [(part.seconds, part.uncertainty) for part in parts]
    return (sum(time[0] for time in times), math.hypot(*(time[1] for time in times))) if times else None


def _compared(
    kind: PartKind | Literal["nest"], names: Group, a: _Time, b: _Time, least: float
) -> ComparedPart:
    difference = (b[0] if b else 0.0) - (a[0] if a else 0.0)
    off = math.hypot(a[1] if a else 0.0, b[1] if b else 0.0)
    standing: Standing
    if a is None or b is None:
        standing = "only-b" if a is None else "only-a"
    elif abs(difference) <= max(off, least, _BETWEEN_PROCESSES * max(a[0], b[0], 0.0)):
        standing = "same"
    else:
        standing = "slower" if difference > 0 else "faster"
    return ComparedPart(
        kind=kind,
        names_a=names[0] if a else (),
        names_b=names[1] if b else (),
        a=a[0] if a else None,
        b=b[0] if b else None,
        difference=difference,
        uncertainty=off,
        standing=standing,
    )
