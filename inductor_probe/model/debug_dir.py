"""What lies in a `torch_compile_debug` tree, and one graph of it as read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from inductor_probe.model.code import Kernel, OutputCode
from inductor_probe.model.decision import Decision, Decisions
from inductor_probe.model.fx import FxGraph, Provenance, Runnable
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.manifest import CompileFailure, GraphRecord, Manifest
from inductor_probe.model.record import Compared
from inductor_probe.model.span import Problem

TREE = "torch_compile_debug"
"""Name of the folder that torch puts its runs into."""


PACKAGE_NAME = "aoti_package.json"
"""In the folder of a graph that was unpacked from a package of AOTInductor: which package, compiled for what.

A package has the code of a graph, and neither its IR nor its FX graph."""


class GraphDir(Struct, frozen=True):
    """A graph's folder, not read yet. `order` is the counter after the dot: the order of compilation.

    `process` is what to add to its name where graphs of several processes are read as one dump: `@rank1`.
    """

    path: Path
    order: int
    kind: str | None
    process: str = ""

    @property
    def name(self) -> str:
        """Name of the folder: `model__0_inference_0.0`."""
        return self.path.name

    @property
    def in_package(self) -> bool:
        """Whether it is from a package of AOTInductor, which has code alone."""
        return (self.path / PACKAGE_NAME).is_file()


class DebugDir(Struct, frozen=True):
    """One `run_*` directory: its graphs in the order they were compiled, and its manifest if it has one.

    `empty_graphs`: folders that inductor made and left empty, as it does for a graph that computes nothing.
    `cached`: the run itself dumped nothing; the graphs are those that it provably took from inductor's cache.
    """

    path: Path
    graphs: tuple[GraphDir, ...]
    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()
    cached: bool = False
    empty_graphs: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.path.name


class FileRead(Struct, frozen=True):
    """A file of a dump that was read: how many lines it has, and how many of them were not understood."""

    path: Path
    lines: int
    unread: int


class CompiledGraph(Compared, frozen=True, dict=True):
    """Everything read of one graph. A part that is missing or unreadable is empty and in `problems`.

    `pre` and `post` are the scheduler's nodes before and after fusion; `fx` is the FX graph that was lowered,
    `fx_before` the one before inductor's passes. `nodes_before` counts the nodes before fusion, also where
    `pre` was not read. `derived` holds what `analysis.graph.once_per_graph` worked out about the graph; a
    changed copy (`structs.replace`) begins with none of it. `read_decisions` reads what was recorded of the
    compiler's decisions, a file that is opened only when `decisions` is asked for. `gpu` is that of the
    manifest: the name of the machine's first, or the figures of the one that was simulated. `failures` are
    why its compile failed, if it did: what torch had not written by then is no problem.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("read_decisions",)

    folder: GraphDir
    torch_version: str | None = None
    pre: tuple[SchedulerNode, ...] = ()
    post: tuple[SchedulerNode, ...] = ()
    code: OutputCode | None = None
    fx: FxGraph | None = None
    record: GraphRecord | None = None
    fx_before: FxGraph | None = None
    provenance: Provenance | None = None
    runnable: Runnable | None = None
    nodes_before: int = 0
    files: tuple[FileRead, ...] = ()
    problems: tuple[Problem, ...] = ()
    gpu: GpuTarget | str | None = None
    failures: tuple[CompileFailure, ...] = ()
    read_decisions: Callable[[], Decisions | None] | None = None

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What was worked out about this graph so far."""
        return {}

    @property
    def name(self) -> str:
        """Name of the graph's folder, with the process in a dump of several."""
        return self.folder.name + self.folder.process

    @property
    def decisions(self) -> Decisions | None:
        """What inductor decided and why, read when first asked for; None where nothing was recorded."""
        if "decisions" not in self.derived:
            self.derived["decisions"] = self.read_decisions() if self.read_decisions else None
        decisions: Decisions | None = self.derived["decisions"]
        return decisions

    @property
    def decided(self) -> tuple[Decision, ...]:
        """The decisions; none where nothing was recorded."""
        return self.decisions.decisions if self.decisions else ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The generated kernels; none without a wrapper."""
        return self.code.kernels if self.code else ()

    @property
    def nodes(self) -> tuple[SchedulerNode, ...]:
        """The nodes that were generated code for; those before fusion when the later file is missing."""
        return self.post or self.pre
