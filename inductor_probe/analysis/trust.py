"""Whether a dump's code may run without being asked for: only if it was provably made here."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.model.manifest import Manifest
from inductor_probe.model.trust import MadeHere, Trust


def trust_of(
    graph: Path,
    found: MadeHere,
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
        found: what the record says of it.
        manifest: of its run, for what it claims.
        edited: its bench file holds, or would hold, anything but what is made from these files: then it
            must lie where probe made it, too.
        trusted: `--trust` was given.
    """
    if trusted:
        return Trust(True, f"you trust {graph}")
    bench = graph / "output_code_bench.py"
    hint = (
        f"read {graph / 'output_code.py'}, and {bench.name} if there is one, then add --trust: "
        "it will be compiled and run as you"
    )
    if found.same and found.others:
        remedy = f"{found.others.remedy} if nobody changed it; or " if found.others.remedy else ""
        why = f"{graph} was made on this machine, but {found.others.why}: it may hold their code"
        return Trust(False, why, remedy + hint)
    if found.same and (found.place or not edited):
        return Trust(True, "probe dump made it on this machine")
    if found.same:
        return Trust(
            False,
            f"probe dump made {graph} in another folder: nothing shows whose variants and edits "
            f"{bench.name} holds there, so it runs without any only",
            f"read {bench}, then add --trust; or delete it: the graph itself was made on this machine",
        )
    if found.changed:
        return Trust(False, f"{graph} was made on this machine, and its files were changed since", hint)
    why = f"nothing shows that {graph} was made on this machine"
    if found.problem:
        return Trust(False, f"{why}: {found.problem}", hint)
    return Trust(False, why + _claim(manifest), hint)


def _claim(manifest: Manifest | None) -> str:
    if manifest is None:
        return ", and it was not made by probe dump"
    facts = dict(manifest.machine)
    where = " with ".join(facts[name] for name in ("host", "cpu") if name in facts)
    return f" (it says: on {where})" if where else ""
