"""Whether the code of a dump may be run, and what for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OtherWriters:
    """Who else may have written a file: `why` is a sentence that names it, `remedy` a command that helps."""

    why: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class MadeHere:
    """What the user's own record of dumps says of a graph's folder.

    Attributes:
        same: `probe dump` made exactly these files on this machine, for this user.
        place: it made them in this folder; else they were moved or copied.
        changed: it made other files in this folder, which were changed since.
        problem: why the record could not be used, if it could not.
        others: who else may have written the files that code is made from, or put others in their place.
    """

    same: bool = False
    place: bool = False
    changed: bool = False
    problem: str | None = None
    others: OtherWriters | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether a graph's code may run. `why` is a sentence; `hint` is the next step where it may not."""

    allowed: bool
    why: str
    hint: str | None = None
