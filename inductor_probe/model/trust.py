"""Whether the code of a dump may be run, and what for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

TrustReason: TypeAlias = Literal[
    "trusted", "made-here", "other-writers", "moved-and-edited", "changed", "not-recorded"
]
"""The user said so; the record of dumps shows it; others may have changed it; it was moved, and its bench
file holds somebody's variants; its files are not those that were made; nothing shows that it was made
here."""


@dataclass(frozen=True, slots=True)
class OtherWriters:
    """Who else may have written a file or folder: its `owner`, or with this `mode` anybody it lets write."""

    path: Path
    owner: str | None = None
    mode: int | None = None


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
    """Whether a graph's code may run, and why; `report/words/trust.py` has the words.

    Attributes:
        graph: its folder.
        others: who else may have written it. problem: why the record of dumps could not be used.
        claims: what its manifest says of the machine that made it, None without a manifest: no proof.
    """

    reason: TrustReason
    graph: Path
    others: OtherWriters | None = None
    problem: str | None = None
    claims: tuple[tuple[str, str], ...] | None = None

    @property
    def allowed(self) -> bool:
        """Whether it may run."""
        return self.reason in ("trusted", "made-here")
