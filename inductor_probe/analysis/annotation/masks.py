"""Sets of nodes as bits of a number: bit 3 stands for the fourth node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def joined(masks: Iterable[int]) -> int:
    """Return the union."""
    found = 0
    for mask in masks:
        found |= mask
    return found


def bits(mask: int) -> Iterator[int]:
    """Yield the nodes in order."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def monotone(masks: list[int]) -> list[int] | None:
    """Drop candidates that a rising order rules out; None when it rules out all of some value."""
    low = 0
    lows = []
    for mask in masks:
        low = max(low, (mask & -mask).bit_length() - 1)
        lows.append(low)
    high = max(mask.bit_length() for mask in masks) - 1
    narrowed = []
    for mask, least in zip(reversed(masks), reversed(lows), strict=True):
        high = min(high, mask.bit_length() - 1)
        kept = mask & ((1 << high + 1) - 1) & ~((1 << least) - 1)
        if not kept:
            return None
        narrowed.append(kept)
    return narrowed[::-1]


def by_name(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the nodes of each name."""
    found: dict[str, int] = {}
    for name, at in pairs:
        found[name] = found.get(name, 0) | 1 << at
    return found
