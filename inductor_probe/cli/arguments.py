"""Names and where to look for them, typed in either order: one rule for every verb that takes both."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

import inductor_probe as ip
from inductor_probe.errors import NotFoundError, ProbeError

Answer = TypeVar("Answer")


def answer(
    words: Sequence[str | None], most: int, ask: Callable[[tuple[str, ...], str | None], Answer]
) -> tuple[Answer, tuple[str, ...]]:
    """Return what `ask(names, target)` returns for the first reading of `words` that there is something for.

    `buf0` is a name in the latest run, `aa` a run; `buf0 aa` and `aa buf0` are both. With `most` 1 the
    readings of two words are: the second is the run or graph, or the first is. A single word is a name, or
    else the run or graph. What is there as a path can be no name.

    Args:
        words: as typed; None for an argument that was left out.
        most: names that the verb takes.
        ask: raises NotFoundError where the run has no such name, or there is no such run or graph.

    Returns:
        The answer, and the words that were names.

    Raises:
        NotFoundError: of the reading that came closest: the run is there, and has no such name.
    """
    typed = tuple(word for word in words if word is not None)
    if len(typed) > most + 1:
        raise click.UsageError(f"at most {most} names and a run or graph, not {len(typed)} arguments")
    readings: list[tuple[tuple[str, ...], str | None]] = []
    if len(typed) <= most and not any(map(_is_path, typed)):
        readings.append((typed, None))
    if typed:
        readings.append((typed[:-1], typed[-1]))
    if len(typed) > 1:
        readings.append((typed[1:], typed[0]))
    failures: list[tuple[str | None, NotFoundError]] = []
    for names, target in readings:
        try:
            return ask(names, target), names
        except NotFoundError as error:
            failures.append((target, error))
    raise next((error for target, error in failures if target and _is_there(target)), failures[0][1])


def _is_path(word: str) -> bool:
    """Whether a word can only be a path: nothing in a graph has a slash in its name."""
    return os.sep in word and Path(word).exists()


def _is_there(target: str) -> bool:
    try:
        ip.open_run(target)
    except ProbeError:
        return False
    return True
