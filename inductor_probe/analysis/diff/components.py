"""Groups of two graphs that share members: which group became which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Component:
    """Groups of A and of B that are tied together by their members, in the order in which they were met."""

    a: tuple[str, ...]
    b: tuple[str, ...]


def components(ties: Iterable[tuple[str, str]]) -> tuple[Component, ...]:
    """Return what is tied together, directly or through others, by ties from groups of A to groups of B."""
    beside: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for mine, other in ties:
        beside.setdefault(("a", mine), {})["b", other] = None
        beside.setdefault(("b", other), {})["a", mine] = None
    seen: set[tuple[str, str]] = set()
    found = []
    for start in beside:
        if start in seen:
            continue
        seen.add(start)
        reached = [start]
        for at in reached:  # grows while it is walked
            for next_one in beside[at]:
                if next_one not in seen:
                    seen.add(next_one)
                    reached.append(next_one)
        found.append(
            Component(
                tuple(name for which, name in reached if which == "a"),
                tuple(name for which, name in reached if which == "b"),
            )
        )
    return tuple(found)
