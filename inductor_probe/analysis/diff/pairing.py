"""Algorithms on the things of two sides: pairs by equal keys, groups that are tied together, what moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from inductor_probe.model.record import grouped

A = TypeVar("A")
B = TypeVar("B")
Item = TypeVar("Item")
Groups = tuple[tuple[str, ...], tuple[str, ...]]


def pair_equal(
    a: Iterable[A],
    b: Iterable[B],
    key_a: Callable[[A], Hashable],
    key_b: Callable[[B], Hashable],
    *,
    unique: bool = False,
) -> list[tuple[A, B]]:
    """Pair the items of two sides that have equal keys, in order; an item with the key None has no pair.

    By their first letter, [p1, q1, p2] and [q3, p4] give (p1, p4) and (q1, q3); with `unique`, where a key
    has to be that of one item on each side, (q1, q3) alone.
    """
    buckets_a, buckets_b = _buckets(a, key_a), _buckets(b, key_b)
    return [
        pair
        for key, items in buckets_a.items()
        if not unique or len(items) == len(buckets_b.get(key, ())) == 1
        for pair in zip(items, buckets_b.get(key, ()), strict=False)
    ]


def pair_by_levels(a: Mapping[A, Sequence[Hashable]], b: Mapping[B, Sequence[Hashable]]) -> dict[A, B]:
    """Pair things that have several keys by the first, those that are left then by the next, and so on."""
    pairs: dict[A, B] = {}
    for level in range(max(map(len, a.values()), default=0)):
        matched = set(pairs.values())
        left_a = {item: keys[level] for item, keys in a.items() if item not in pairs}
        left_b = {item: keys[level] for item, keys in b.items() if item not in matched}
        pairs.update(pair_equal(left_a, left_b, left_a.get, left_b.get))
    return pairs


def _buckets(items: Iterable[Item], key: Callable[[Item], Hashable]) -> dict[Hashable, list[Item]]:
    return {value: group for value, group in grouped(items, key).items() if value is not None}


def components(ties: Iterable[tuple[str, str]]) -> list[Groups]:
    """Return what ties from names of A to names of B hold together, directly or through others.

    The connected components of a bipartite graph, in the order in which they are met: ties x-p, x-q, y-r give
    (x; p, q) and (y; r).
    """
    neighbours: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for name_a, name_b in ties:
        neighbours.setdefault(("a", name_a), {})["b", name_b] = None
        neighbours.setdefault(("b", name_b), {})["a", name_a] = None
    seen: set[tuple[str, str]] = set()
    groups = []
    for start in neighbours:
        if start in seen:
            continue
        reached = {start: None}
        waiting = [start]
        for vertex in waiting:  # grows while it is walked
            waiting += [other for other in neighbours[vertex] if other not in reached]
            reached.update(dict.fromkeys(neighbours[vertex]))
        seen |= reached.keys()
        a, b = (tuple(name for side, name in reached if side == which) for which in ("a", "b"))
        groups.append((a, b))
    return groups


def moved(places: Sequence[int]) -> set[int]:
    """Return the fewest indices of `places` without which the rest ascends: what moved, not what gave way.

    All but a longest increasing subsequence, found by patience sorting: of 0 3 1 2 it is index 1, the 3.
    """
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, place in enumerate(places):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [index]
    ascending: set[int] = set()
    index = last[-1] if last else -1
    while index >= 0:
        ascending.add(index)
        index = before[index]
    return set(range(len(places))) - ascending
