"""What `probe dump` shows of each graph."""

from __future__ import annotations

from dataclasses import dataclass

from inductor_probe.model.ir import Dim
from inductor_probe.model.remark import Remark


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """One row of the table.

    Attributes:
        graph, case: names. why: `first`, `recompile: <guard>`, `backward`, or None when not recorded.
        nodes_before, nodes_after: top-level scheduler nodes before and after fusion.
        kernels: generated kernels by backend. externs: library calls.
        buffers, buffer_bytes: what the wrapper allocates, views and reuse not counted; text when symbolic.
        looks: what deserves a look, a sentence each.
        remarks: about its layouts, most bytes at stake first.
    """

    graph: str
    case: str | None
    why: str | None
    nodes_before: int
    nodes_after: int
    kernels: tuple[tuple[str, int], ...]
    externs: int
    buffers: int
    buffer_bytes: Dim
    looks: tuple[str, ...]
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run: its graphs, what deserves a look in the run as a whole, and why it is empty if it is."""

    run: str
    graphs: tuple[GraphSummary, ...]
    looks: tuple[str, ...] = ()
    empty: str | None = None
