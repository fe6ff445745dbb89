"""What `probe dump` shows of each graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inductor_probe.model.ir import Dim
from inductor_probe.model.manifest import Outcome
from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import Problem


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """One row of the table.

    Attributes:
        graph, case: names. why: it was compiled, None when not recorded. guard: for a recompile, the first
            guard that failed, in dynamo's words.
        nodes_before, nodes_after: top-level scheduler nodes before and after fusion.
        kernels: generated kernels by backend. externs: library calls.
        buffers, buffer_bytes: what the wrapper allocates, views and reuse not counted; text when symbolic.
        recorded_bytes: `buffer_bytes` with the sizes of the compile, where they are symbolic and recorded.
        remarks: about its compile, layouts and kernels; hazards first, then most bytes at stake.
        problems: what could not be read of it.
    """

    graph: str
    case: str | None
    why: Literal["first", "recompile", "backward"] | None
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


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to look into next, because of what the run has.

    Attributes:
        kind: `doctor`: nothing was compiled; `unread`: parts of the dump could not be read; `scalar`: kernels
            with scalar loops; `apart`: nodes that share memory and were not fused; `measure`: none of these.
        graph: which one; None for the run as a whole.
        names: the kernels, or the two nodes after fusion.
        bytes: that the nodes share.
    """

    kind: Literal["doctor", "unread", "scalar", "apart", "measure"]
    graph: str | None = None
    names: tuple[str, ...] = ()
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run: its graphs, remarks about it as a whole, why it is empty if it is, what is next.

    `problems` is what could not be read of the run itself.
    """

    run: str
    graphs: tuple[GraphSummary, ...]
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Problem, ...] = ()
    empty: Remark | None = None
    next: tuple[NextStep, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DumpOutput(Output):
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
