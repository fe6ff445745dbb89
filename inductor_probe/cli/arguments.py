"""Names and where to look for them, typed in either order: one rule for every verb that takes both."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import click

from inductor_probe.discovery.discover import find
from inductor_probe.errors import NotFoundError, ProbeError

Answer = TypeVar("Answer")
_SOURCE_LINE = re.compile(r".*\.py(:\d+)?")


def answer(words: Sequence[str], most: int, ask: Callable[..., Answer]) -> Answer:
    """Return what `ask` returns for the first reading of `words` that there is something for.

    For example with `most` 1: `buf0` is a name in the latest run, or else a run or graph; `buf0 aa` is the
    name buf0 in the run aa, or else the name aa in the run buf0. With `most` 2, `op0 aa` is first the pair
    of these names in the latest run. A path is never a name.

    Args:
        words: as typed.
        most: names that the verb takes.
        ask: is called with the names, None for each that is left out, and the target; raises NotFoundError
            where the run has no such name, or there is no such run or graph.

    Raises:
        NotFoundError: of the reading that came closest: the run is there, and has no such name.
        click.UsageError: more words than names and a target.
    """
    if len(words) > most + 1:
        limit = "1 name" if most == 1 else f"{most} names"
        raise click.UsageError(f"at most {limit} and a run or graph, not {len(words)} arguments")
    failures: list[tuple[str | None, NotFoundError]] = []
    for names, target in _readings(tuple(words), most):
        try:
            return ask(*names, *[None] * (most - len(names)), target)
        except NotFoundError as error:
            failures.append((target, error))
    if not failures:
        raise click.UsageError(f"{' and '.join(words)} are both paths of a run or graph: only one can be")
    raise next((error for target, error in failures if target and _is_there(target)), failures[0][1])


_Reading = tuple[tuple[str, ...], str | None]


def _readings(words: tuple[str, ...], most: int) -> Iterator[_Reading]:
    """Yield the names and the target that the words may be, the likeliest first."""
    readings: list[_Reading] = [(words, None)] if len(words) <= most else []
    if words:
        readings.append((words[:-1], words[-1]))
    if len(words) > 1:
        readings.append((words[1:], words[0]))
    yield from (reading for reading in readings if not any(map(_is_path, reading[0])))


def _is_path(word: str) -> bool:
    """Whether a word cannot be a name: nothing in a graph has a slash in it but a line of the user's."""
    return os.sep in word and (not _SOURCE_LINE.fullmatch(word) or Path(word).exists())


def _is_there(target: str) -> bool:
    """Whether a run or graph is called so, or the run before its last `:` or `/` is: aa of `aa:7`."""
    for name in (target, target.rpartition("/")[0], target.rpartition(":")[0]):
        try:
            if name:
                find(name, Path.cwd())
                return True
        except ProbeError:
            continue
    return False
