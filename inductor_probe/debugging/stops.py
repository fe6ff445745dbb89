"""A place in a source where the child asks whether to stop."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from inductor_probe.model.codec import from_json, to_json


@dataclass(frozen=True, slots=True)
class Stop:
    """Before which statement of which module to stop.

    Attributes:
        module: its name, as it is imported.
        path: of its source.
        line, column: where the statement starts, in Python's own counting (from 1, from 0).
        place: the function or line, in words that a user can pass to `--break`.
        condition: a Python expression of the names that the function has there; None stops always.
        why: what happens there, for a stop that the user named by its subject.
    """

    module: str
    path: str
    line: int
    column: int
    place: str
    condition: str | None = None
    why: str | None = None

    def __str__(self) -> str:
        return f"{self.why} ({self.place})" if self.why else self.place


def stops_to_json(stops: Iterable[Stop]) -> str:
    """Return the stops as one argument of a command line."""
    return json.dumps(to_json(tuple(stops)))


def stops_from_json(text: str) -> tuple[Stop, ...]:
    """Return the stops that `stops_to_json` wrote."""
    return tuple(from_json(Stop, stop) for stop in json.loads(text))
