"""Runs on disk: what each is, its summary, what removing it takes away, and whether its code may run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.ir import Dim
from inductor_probe.model.manifest import Outcome
from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import Problem, SourceLine

RunState: TypeAlias = Literal["ok", "failed", "interrupted", "running", "empty", "unknown", "graphs"]
"""`failed`: the script, or a compile, also one that the script caught. `empty`: nothing was dumped.
`running`: its process is still there. `unknown`: torch made it alone, so how the script ended is not
recorded. `graphs`: folders of graphs outside of any run."""


class RunFacts(Struct, frozen=True):
    """One run on disk, as far as it is known without reading its graphs.

    Attributes:
        label, scenario, cases: as `probe dump` wrote them down; `cases` are those of its graphs.
        torch: version. devices: of its nodes, without an index.
        graphs: how many. size: bytes on disk, its trace log for tlparse included.
        made: seconds since the epoch.
        state: of the run that stands for a dump, how the script ended; of another, how its process did.
        remark: why it is empty, which compile failed first, or how its script ended; None for a run that is
            neither empty nor failed.
        dump: what the runs of a dump of several processes have in common, None for a run that is alone.
        pid, rank: of its process, where it is one of several. place: in the order of the dump's processes; of
            its runs the one with the lowest place stands for the dump.
    """

    path: Path
    label: str | None
    scenario: str | None
    cases: tuple[str, ...]
    torch: str | None
    devices: tuple[str, ...]
    graphs: int
    size: int
    made: float
    state: RunState
    remark: Remark | None = None
    dump: str | None = None
    pid: int | None = None
    rank: int | None = None
    place: int = 0

    @property
    @written
    def name(self) -> str:
        """Name of the run's folder."""
        return self.path.name


BlockerCode: TypeAlias = Literal[
    "behind-link", "in-archive", "not-a-run", "still-made",
    "unlistable", "link", "mount", "foreign-folder", "special-file", "foreign-file",
    "edited", "changed-after-graph", "changed-after-run", "record-unreadable", "more",
]  # fmt: skip


class Blocker(Struct, frozen=True):
    """What stands against removing a run: of which `subject`, a path in it as a rule.

    For `behind-link` that is where the run lies, for `in-archive` the archive, for `still-made` the process,
    for `record-unreadable` the error of reading the record of what was made here, for `more` how many more.
    """

    code: BlockerCode
    subject: str = ""


class Removal(Struct, frozen=True):
    """What removing a run takes away. `blockers`: why it is not removed; none if it can be.

    `files` and `folders` are relative to `run`, the run's own folder left out; `beside` is its trace log.
    """

    run: Path
    files: tuple[str, ...]
    folders: tuple[str, ...]
    beside: tuple[Path, ...]
    size: int
    blockers: tuple[Blocker, ...]


class RemovalResult(Struct, frozen=True):
    """What was to be removed, and whether it was."""

    removal: Removal
    removed: bool


class RunsOutput(Output, frozen=True, kw_only=True):
    """Runs on disk, oldest first; with `--rm`, what was to be removed of which.

    Attributes:
        removals: one for each of `rows` with `--rm`, also where nothing was removed.
    """

    verb: Literal["runs"] = "runs"
    rows: tuple[RunFacts, ...]
    removals: tuple[RemovalResult, ...] = ()


class SubgraphSummary(Struct, frozen=True):
    """A branch of a conditional, the body of a loop, or a region, with what it has; `nodes` after fusion."""

    name: str
    nodes: int
    kernels: tuple[tuple[str, int], ...]
    externs: int
    buffers: int
    buffer_bytes: Dim


class GraphSummary(Struct, frozen=True):
    """One row of the table.

    Attributes:
        graph, case: names. compile_kind: `GraphRecord.why`, None when not recorded. guard: for a recompile,
            the first guard that failed, in dynamo's words.
        nodes_before, nodes_after: top-level scheduler nodes before and after fusion.
        kernels: generated kernels by backend. externs: library calls.
        buffers, buffer_bytes: what the wrapper allocates, views and reuse not counted; text when symbolic.
        recorded_bytes: `buffer_bytes` with the sizes of the compile, where they are symbolic and recorded.
        subgraphs: its subgraphs in the order of the code; what is in them counts for the graph, too.
        remarks: about its compile, layouts and kernels; hazards first, then most bytes at stake.
        problems: what could not be read of it.
        sources: of what remarks are about, by its name, the first line of the user's that it comes from.
    """

    graph: str
    case: str | None
    compile_kind: Literal["first", "recompile", "backward"] | None
    guard: str | None
    nodes_before: int
    nodes_after: int
    kernels: tuple[tuple[str, int], ...]
    externs: int
    buffers: int
    buffer_bytes: Dim
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Problem, ...] = ()
    recorded_bytes: int | None = None
    subgraphs: tuple[SubgraphSummary, ...] = ()
    sources: tuple[tuple[str, SourceLine], ...] = ()


class NextStep(Struct, frozen=True):
    """What to look into next, because of what the run has.

    Attributes:
        kind: `doctor`: nothing was compiled; `unread`: parts of the dump could not be read; `scalar`: kernels
            with scalar loops; `why`: the same, where the cause is recorded; `apart`: nodes that share memory
            and were not fused; `measure`: none of these.
        graph: which one; None for the run as a whole. names: the kernels, or the two nodes after fusion.
        bytes: that the nodes share.
    """

    kind: Literal["doctor", "unread", "scalar", "why", "apart", "measure"]
    graph: str | None = None
    names: tuple[str, ...] = ()
    bytes: int | None = None


class RunSummary(Struct, frozen=True):
    """A run: its graphs, remarks about it as a whole, why it is empty if it is, what is next.

    `problems` is what could not be read of the run itself.
    """

    run: str
    graphs: tuple[GraphSummary, ...]
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Problem, ...] = ()
    empty: Remark | None = None
    next: tuple[NextStep, ...] = ()


class DumpOutput(Output, frozen=True, kw_only=True):
    """The run that a script left, also under `probe debug`. Its `probe.json` has all that was recorded of it.

    Attributes:
        path: the run's folder.
        label, outcome, exit_status: as in `probe.json`; None where torch alone wrote the run.
    """

    verb: Literal["dump"] = "dump"
    path: Path
    label: str | None
    outcome: Outcome | None
    exit_status: int | None
    summary: RunSummary


TrustReason: TypeAlias = Literal[
    "made-here", "other-writers", "moved-and-edited", "moved", "changed", "not-recorded"
]
"""The record of dumps shows it; others may have changed it; it was moved, and its bench
file holds somebody's variants; it was moved, and is to be made again from what it names; its files are not
those that were made; nothing shows that it was made here."""


class OtherWriters(Struct, frozen=True):
    """Who else may have written a file or folder: its `owner`, or with this `mode` anybody it lets write."""

    path: Path
    owner: str | None = None
    mode: int | None = None


class RecordProblem(Struct, frozen=True):
    """Why the user's record of dumps is no proof: others may write to `path`, or it cannot be read."""

    code: Literal["other-writers", "unreadable"]
    path: Path
    error: str = ""


class MadeHere(Struct, frozen=True):
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
    problem: RecordProblem | None = None
    others: OtherWriters | None = None


class Trust(Struct, frozen=True):
    """Whether a graph's code, or a run's script, may run, and why; `report/words/runs.py` has the words.

    Attributes:
        graph: its folder; that of the run, where it is to be made again.
        others: who else may have written it. problem: why the record of dumps could not be used.
        claims: what its manifest says of the machine that made it, None without a manifest: no proof.
    """

    reason: TrustReason
    graph: Path
    others: OtherWriters | None = None
    problem: RecordProblem | None = None
    claims: tuple[tuple[str, str], ...] | None = None

    @property
    def allowed(self) -> bool:
        """Whether it may run."""
        return self.reason == "made-here"
