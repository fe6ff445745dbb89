"""Words for runs and graphs: why a graph was compiled, how the script ended, what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inductor_probe.model.manifest import Manifest
from inductor_probe.model.remark import Number, Remark, RemarkCode
from inductor_probe.model.runs import Blocker, BlockerCode, GraphSummary

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
    return f"{summary.why}: {summary.guard}" if summary.guard else summary.why or ""


def how_it_ended(manifest: Manifest) -> str:
    """`was interrupted by SIGTERM`, `exited with status 1`."""
    return _ended(dict(manifest.ending))


def _ended(numbers: Mapping[str, Number]) -> str:
    signal, status = numbers.get("signal"), numbers.get("exit_status")
    by = f"signal {signal}" if isinstance(signal, int) else signal
    if numbers["outcome"] == "interrupted":
        unknown = ", and nothing tells by what" if status is None else ""
        return f"was interrupted by {by}" if by else f"was interrupted{unknown}"
    return f"was killed by {by}" if by else f"exited with status {status}"


def _script(rest: str) -> Callable[[Remark], str]:
    return lambda remark: f"the script {_ended(dict(remark.numbers))}{rest}"


def _constant(text: str) -> Callable[[Remark], str]:
    return lambda remark: text


def _recompile_limit(remark: Remark) -> str:
    where = remark.number("where")
    place = f" ({where})" if where else ""
    return f"recompile limit hit by {remark.number('function')}{place}: from then on it ran eagerly"


def _graph_break(remark: Remark) -> str:
    where, times = remark.number("where"), remark.number("times")
    place = f" at {where}" if where else ""
    return f"graph break{place}: {remark.number('reason')}{f' ({times} times)' if times != 1 else ''}"


def _kernels_without_ir(remark: Remark) -> str:
    kernels = remark.number("kernels")
    return (
        f"{kernels} launched kernel{' has' if kernels == 1 else 's have'} no node: of a graph with branches, "
        "loops or partitions torch keeps the IR of the last part only"
    )


SENTENCES: Mapping[RemarkCode, Callable[[Remark], str]] = {
    "kernels-without-ir": _kernels_without_ir,
    "unfinished-compile": _constant("its compile did not come to its end: files are missing, or end early"),
    "cut-short": _script(": what it would have compiled later, if anything, is missing"),
    "recompile-limit": _recompile_limit,
    "graph-break": _graph_break,
    "not-recorded": lambda remark: str(remark.number("text")),
    "script-ended": _script(""),
    "graphs-in-cache": lambda remark: (
        "torch took its graphs from inductor's cache; the other verbs read them there: "
        f"{remark.number('path')}"
    ),
    "empty-graphs": _constant(
        "its graphs compute nothing (views and identities), so inductor left their folders empty"
    ),
    "no-dump": _constant(
        "no graph was dumped, and no probe.json says why; a warm cache is the usual reason: "
        "`probe dump` gives each run its own"
    ),
    "ended-before-compile": _script(" before inductor compiled anything"),
    "other-backend": lambda remark: (
        f"dynamo handed over {remark.number('frames')} graph(s), but none to inductor: "
        "the script chose another backend"
    ),
    "ran-eagerly": _constant("everything ran eagerly: dynamo gave up on every function it was handed"),
    "nothing-compiled": _constant(
        "nothing was compiled: torch.compile was not called, or what it returned never ran"
    ),
}
