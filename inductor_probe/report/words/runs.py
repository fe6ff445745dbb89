"""Words for runs: why a graph was compiled, what bars a removal, why the code of a dump may not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inductor_probe.model.manifest import Manifest
from inductor_probe.model.runs import Blocker, BlockerCode, GraphSummary, RecordProblem, Trust
from inductor_probe.report.words.remarks import ended

_BENCH = "output_code_bench.py"
_BLOCKERS: Mapping[BlockerCode, str] = {
    "behind-link": "it is reached through a link, and lies at {}",
    "in-archive": "it is unpacked from {}",
    "not-a-run": "it is not provably a run: no graph, no folder or log of torch, no readable probe.json",
    "still-made": "process {}, which makes it, is still there",
    "unlistable": "{} cannot be listed",
    "link": "{} is a link",
    "mount": "{} is another file system",
    "foreign-folder": "{} is not a folder of torch or probe",
    "special-file": "{} is not a regular file",
    "foreign-file": "{} was not written by torch or probe",
    "edited": "{} was edited",
    "changed-after-graph": "{} was changed long after the other files of its graph",
    "changed-after-run": "{} was changed after the run",
    "record-unreadable": "{}",
    "more": "and {} more like these",
}


def blocker_text(blocker: Blocker) -> str:
    """Return what stands against removing a run."""
    return _BLOCKERS[blocker.code].format(blocker.subject)


def compile_reason(summary: GraphSummary) -> str:
    """`first`, `recompile: <the guard that failed>`, `backward`; empty when not recorded."""
    return f"{summary.compile_kind}: {summary.guard}" if summary.guard else summary.compile_kind or ""


def how_it_ended(manifest: Manifest) -> str:
    """`was interrupted by SIGTERM`, `exited with status 1`."""
    return ended(dict(manifest.ending))


def refusal(trust: Trust) -> tuple[str, str]:
    """Return why a graph's code may not run, and what to do."""
    graph, bench = trust.graph, trust.graph / _BENCH
    others = trust.others
    hint = (
        f"read {graph / 'output_code.py'}, and {_BENCH} if there is one, then add --trust: "
        "it will be compiled and run as you"
    )
    match trust.reason:
        case "other-writers" if others is not None and others.owner:
            why = f"{others.path} belongs to {others.owner}"
        case "other-writers" if others is not None:
            why = f"other users may write to {others.path} (mode {others.mode or 0:04o})"
            hint = f"chmod go-w {others.path} if nobody changed it; or {hint}"
        case "moved-and-edited":
            return (
                f"probe dump made {graph} in another folder, and nothing records who wrote the variants and "
                f"edits in {_BENCH}: it runs only without them",
                f"read {bench}, then add --trust; or delete it: the graph itself was made on this machine",
            )
        case "changed":
            return f"{graph} was made on this machine, and its files were changed since", hint
        case _:
            why = f"nothing shows that {graph} was made on this machine"
            return why + (f": {_record_text(trust.problem)}" if trust.problem else _claim(trust)), hint
    return f"{graph} was made on this machine, but {why}: it may hold their code", hint


def recipe_refusal(trust: Trust, would_run: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return why a run is not made again from what its manifest says, with what would run, and what to do.

    `would_run`: what is used of the manifest, each with what it is: `script`, `arguments`, `variables` ...
    """
    run, others = trust.graph, trust.others
    match trust.reason:
        case "other-writers" if others is not None and others.owner:
            why = f"{run} was made on this machine, but {others.path} belongs to {others.owner}"
        case "other-writers" if others is not None:
            mode = f"(mode {others.mode or 0:04o})"
            why = f"{run} was made on this machine, but other users may write to {others.path} {mode}"
        case "moved":
            why = f"{run} was made on this machine, in another folder"
        case "changed":
            why = f"{run} was made on this machine, and its probe.json no longer says how it was made"
        case _:
            why = f"nothing shows that {run} was made on this machine"
            why += f": {_record_text(trust.problem)}" if trust.problem else _claim(trust)
    width = max(len(what) for what, _ in would_run)
    shown = "".join(f"\n{what:<{width}}  {text}" for what, text in would_run)
    return (
        f"{why}. It would be made again with{shown}",
        "name the script in place of the run, with what you want of this; or read all of it, then add "
        "--trust: it will be run as you",
    )


def _record_text(problem: RecordProblem) -> str:
    if problem.code == "unreadable":
        return f"{problem.path} cannot be read: {problem.error}"
    return f"{problem.path} belongs to another user, or others may write to it, so it is not used as proof"


def _claim(trust: Trust) -> str:
    if trust.claims is None:
        return ", and it was not made by probe dump"
    facts = dict(trust.claims)
    where = " with ".join(facts[name] for name in ("host", "cpu") if name in facts)
    return f" (it says: on {where})" if where else ""
