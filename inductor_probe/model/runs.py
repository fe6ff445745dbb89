"""Runs as they lie on disk, and what would be removed of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.model.codec import written
from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark

RunState: TypeAlias = Literal["ok", "failed", "interrupted", "running", "empty", "unknown", "graphs"]
"""`empty`: nothing was dumped, `why` says why. `running`: its process is still there. `unknown`: torch made
it alone, so nothing tells how the script ended. `graphs`: folders of graphs outside of any run."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run on disk, as far as it can be told without reading its graphs.

    Attributes:
        label, scenario, cases: as `probe dump` wrote them down; `cases` are those of its graphs.
        torch: version. devices: of its nodes, without an index.
        graphs: how many. size: bytes on disk, its trace log for tlparse included.
        made: seconds since the epoch.
        why: why it is empty, or how its script ended; None for a run that is neither empty nor failed.
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
    why: Remark | None = None

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


@dataclass(frozen=True, slots=True)
class Blocker:
    """What stands against removing a run: of which `subject`, a path in it as a rule.

    For `behind-link` that is where the run lies, for `in-archive` the archive, for `still-made` the process,
    for `record-unreadable` the error of reading the record of what was made here, for `more` how many more.
    """

    code: BlockerCode
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Removal:
    """What removing a run takes away. `blockers`: why it is not removed; none if it can be.

    `files` and `folders` are relative to `run`, the run's own folder left out; `beside` is its trace log.
    """

    run: Path
    files: tuple[str, ...]
    folders: tuple[str, ...]
    beside: tuple[Path, ...]
    size: int
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True)
class RemovalResult:
    """What was to be removed, and whether it was."""

    removal: Removal
    removed: bool


@dataclass(frozen=True, kw_only=True)
class RunsOutput(Output):
    """Runs on disk, oldest first; with `--rm`, what was to be removed of which.

    Attributes:
        removals: one for each of `rows` with `--rm`, also where nothing was removed.
    """

    verb: Literal["runs"] = "runs"
    rows: tuple[RunFacts, ...]
    removals: tuple[RemovalResult, ...] = ()
