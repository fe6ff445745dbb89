"""What was looked for between two builds, configurations or runs, and which change makes the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.output import Output

BisectedKind: TypeAlias = Literal["builds", "settings", "decisions"]


class BisectedSide(Struct, frozen=True):
    """A build or configuration that was asked.

    Attributes:
        name: `torch 2.13.0`, `inductor.cpp.simdlen=1`. python: the interpreter, of a build.
        holds: whether it shows what is looked for. says: a sentence for each predicate that was asked.
        run: its dump; of the pair at the end alone.
    """

    name: str
    holds: bool
    says: tuple[str, ...] = ()
    python: Path | None = None
    run: Path | None = None


class BisectOutput(Output, frozen=True, kw_only=True):
    """What makes the difference.

    Attributes:
        keep: what was looked for. script: that shows it on one side. kind: what differs between the sides.
        sides: those that were asked, in the order in which they differ.
        pair: names of the last side on which it is as on the first, and of the next one; empty where the
            ends do not differ in it.
        changes: settings, variables or decisions, without any of which the first side stays as it is.
        differing: in how many of those the ends differ. asked: how many processes were.
        diff: of the dumps of the pair. summary: its first lines, in words.
    """

    verb: Literal["bisect"] = "bisect"
    keep: tuple[str, ...]
    script: Path
    kind: BisectedKind
    sides: tuple[BisectedSide, ...]
    pair: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    differing: int = 0
    asked: int = 0
    diff: RunDiff | GraphDiff | None = None
    summary: tuple[str, ...] = ()
    seconds: float = 0.0
