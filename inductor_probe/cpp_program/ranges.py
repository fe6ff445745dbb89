"""Which integers a kernel can take: what it checks of the indices that it computes from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inductor_probe.backends import backend_called

# A value may be computed by a lambda that is called where it stands; its end is `()` on a line, then `;`.
_ASSIGNED = re.compile(
    r"\bauto\s+(?P<name>\w+)\s*=\s*(?P<value>\[&\][\s\S]{0,9999}?\n\s*\(\)\s*;|[^;]{0,9999};)"
)
_CHECK = re.compile(r"<= (?P<value>tmp\w*)\) & \((?P=value) < (?:[\w:]+<[^<>()\n]*>\()*(?P<high>[^()\n]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(\d{1,18})L{0,2}")
_LONGEST = 200_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a kernel does with the integers behind a pointer.

    Attributes:
        below: they must be less than this: an index made from them is checked.
        index: an index is made from them, so that a wrong one reads or writes beside the buffer.
    """

    below: int | str | None
    index: bool


def bounds(source: str, pointers: frozenset[str]) -> dict[str, Bounds]:
    """Return for each of `pointers` what the text of a kernel does with integers loaded through it.

    Values are followed through `auto tmp3 = ...;`. `below` is a number, or the name of a size (`ks0`).
    """
    backend = backend_called("cpp")
    if backend is None or len(source) > _LONGEST:
        return {}
    made: dict[str, str] = {}
    for assigned in _ASSIGNED.finditer(source):
        made[assigned["name"]] = made.get(assigned["name"], "") + " " + assigned["value"]
    below: dict[str, list[int | str]] = {}
    for check in _CHECK.finditer(source):
        for pointer in _reached(check["value"], made, pointers):
            below.setdefault(pointer, []).append(_limit(check["high"]))
    index = {
        pointer
        for use in backend.pointer_uses(source, pointers)
        for word in _WORD.findall(use.index or "")
        if word.startswith("tmp")
        for pointer in _reached(word, made, pointers)
    }
    return {
        pointer: Bounds(_least(below.get(pointer, [])), pointer in index)
        for pointer in pointers
        if pointer in below or pointer in index
    }


def _reached(name: str, made: Mapping[str, str], pointers: frozenset[str]) -> Iterator[str]:
    """Yield the pointers that a value is computed from."""
    seen, waiting = {name}, [name]
    while waiting:
        for word in _WORD.findall(made.get(waiting.pop(), "")):
            if word in pointers:
                yield word
            elif word in made and word not in seen:
                seen.add(word)
                waiting.append(word)


def _limit(text: str) -> int | str:
    number = _NUMBER.fullmatch(text.strip())
    return int(number[1]) if number else text.strip()


def _least(limits: list[int | str]) -> int | str | None:
    numbers = [limit for limit in limits if isinstance(limit, int)]
    if numbers:
        return min(numbers)
    return limits[0] if limits else None
