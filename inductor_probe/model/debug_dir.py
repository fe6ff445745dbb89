"""What lies in a `torch_compile_debug` tree, and one graph of it as read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inductor_probe.model.code import OutputCode
from inductor_probe.model.fx import FxGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.manifest import GraphRecord, Manifest
from inductor_probe.model.provenance import Provenance
from inductor_probe.model.span import Problem


@dataclass(frozen=True, slots=True)
class GraphDir:
    """A graph's folder, not read yet. `order` is the counter after the dot: the order of compilation."""

    path: Path
    order: int
    kind: str | None

    @property
    def name(self) -> str:
        """Name of the folder: `model__0_inference_0.0`."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class DebugDir:
    """One `run_*` directory: its graphs in the order they were compiled, and its manifest if it has one."""

    path: Path
    graphs: tuple[GraphDir, ...]
    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """Everything read of one graph. A part that is missing or unreadable is empty and in `problems`.

    `pre` and `post` are the scheduler's nodes before and after fusion.
    """

    folder: GraphDir
    torch_version: str | None
    pre: tuple[SchedulerNode, ...]
    post: tuple[SchedulerNode, ...]
    code: OutputCode | None
    fx: FxGraph | None
    record: GraphRecord | None
    provenance: Provenance | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """Name of the graph's folder."""
        return self.folder.name

    @property
    def nodes(self) -> tuple[SchedulerNode, ...]:
        """The nodes that were generated code for; those before fusion when the later file is missing."""
        return self.post or self.pre
