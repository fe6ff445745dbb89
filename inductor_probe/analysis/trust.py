"""Whether a dump's code may run without being asked for: only if it was provably made here."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.model.manifest import Manifest
from inductor_probe.model.runs import MadeHere, Trust


def trust_of(
    graph: Path,
    made: MadeHere,
    manifest: Manifest | None = None,
    *,
    edited: bool = False,
    trusted: bool = False,
) -> Trust:
    """Decide whether the code of a graph may run.

    It may if the user says so, each time anew, or if the user's own record shows that `probe dump` made these
    files on this machine, and nobody else may write to them. What a dump says about itself decides nothing:
    it may be forged.

    Args:
        graph: its folder.
        made: what the record says of it.
        manifest: of its run, for what it claims.
        edited: its bench file holds, or would hold, anything but what is made from these files: then it
            must lie where probe made it, too.
        trusted: `--trust` was given.
    """
    if trusted:
        return Trust("trusted", graph)
    if made.same and made.others:
        return Trust("other-writers", graph, others=made.others)
    if made.same and (made.place or not edited):
        return Trust("made-here", graph)
    if made.same:
        return Trust("moved-and-edited", graph)
    if made.changed:
        return Trust("changed", graph)
    claims = None if manifest is None else manifest.machine
    return Trust("not-recorded", graph, problem=made.problem, claims=claims)
