"""Whether a dump is whole and understood."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.output import Output
from inductor_probe.model.portable import Portability
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import Problem


class FileCheck(Struct, frozen=True):
    """What became of the lines of a kind of file; each line is counted in one of the last five.

    Attributes:
        kind: name of the file, or a part of it: `C++ kernels in output_code.py`.
        files: how many of the kind. lines: in all of them. read: what they say is in a record.
        checked: parsed, and found complete as far as torch guarantees it; no record holds them.
        comments: comments and empty lines, which hold nothing to check.
        counted: neither read nor checked. unread: in no known form.
    """

    kind: str
    files: int
    lines: int
    read: int = 0
    checked: int = 0
    comments: int = 0
    counted: int = 0
    unread: int = 0


class GraphCheck(Struct, frozen=True):
    """What was read of one graph.

    Attributes:
        graph: its folder.
        nodes: unfused scheduler nodes that code was generated for.
        kernels: generated kernels defined in the wrapper; library calls are not among them.
        launches: calls of those kernels.
        files: what became of the lines of each of its files.
        unopened: files in its folder that are neither read nor checked.
        unlinked: nodes whose kernel could not be proved.
        remarks: what torch did not write; nothing that was not read.
        problems: what is missing, damaged or not understood.
    """

    graph: Path
    nodes: int
    kernels: int
    launches: int
    files: tuple[FileCheck, ...]
    unopened: tuple[Path, ...] = ()
    unlinked: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Problem, ...] = ()


class LogCheck(Struct, frozen=True):
    """What was read of a run's compiler logs."""

    run: Path
    files: tuple[FileCheck, ...]
    problems: tuple[Problem, ...] = ()


class DumpCheck(Struct, frozen=True):
    """The graphs below the paths that were given, their runs' logs, and problems of the runs themselves.

    `empty_graphs` are folders that inductor left empty because the graph computes nothing: no problem.
    """

    graphs: tuple[GraphCheck, ...]
    logs: tuple[LogCheck, ...] = ()
    run_problems: tuple[Problem, ...] = ()
    empty_graphs: tuple[Path, ...] = ()

    @property
    @written
    def nodes(self) -> int:
        """Unfused nodes of all graphs."""
        return sum(graph.nodes for graph in self.graphs)

    @property
    @written
    def kernels(self) -> int:
        """Generated kernels of all graphs."""
        return sum(graph.kernels for graph in self.graphs)

    @property
    @written
    def launches(self) -> int:
        """Launches of generated kernels in all graphs."""
        return sum(graph.launches for graph in self.graphs)

    @property
    @written
    def files(self) -> tuple[FileCheck, ...]:
        """What became of the lines of each kind of file, all graphs and logs together."""
        kinds = grouped((file for part in self._parts for file in part.files), lambda file: file.kind)
        return tuple(_added(kind, files) for kind, files in kinds.items())

    @property
    def total(self) -> FileCheck:
        """What became of all lines."""
        return _added("all", self.files)

    @property
    @written
    def lines(self) -> int:
        """Lines of everything that was read, checked or counted."""
        return self.total.lines

    @property
    @written
    def unread_lines(self) -> int:
        """Lines that no known form took."""
        return self.total.unread

    @property
    @written
    def unopened(self) -> tuple[Path, ...]:
        """Files in the graphs' folders that are neither read nor checked."""
        return tuple(path for graph in self.graphs for path in graph.unopened)

    @property
    @written
    def unlinked_nodes(self) -> int:
        """Nodes whose kernel could not be proved."""
        return sum(len(graph.unlinked) for graph in self.graphs)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is missing, damaged or not understood."""
        return (*self.run_problems, *(problem for part in self._parts for problem in part.problems))

    @property
    def _parts(self) -> tuple[GraphCheck | LogCheck, ...]:
        return (*self.graphs, *self.logs)

    @property
    @written
    def sound(self) -> bool:
        """Whether nothing is missing, damaged, not understood or not linked, as far as is known."""
        return not self.problems and not self.unread_lines and not self.unlinked_nodes

    @property
    @written
    def whole(self) -> bool:
        """Whether it is sound, and everything in the graphs' folders was read or checked."""
        return self.sound and not self.total.counted and not self.unopened


def _added(kind: str, files: Sequence[FileCheck]) -> FileCheck:
    counts = [name for name in FileCheck.__struct_fields__ if name != "kind"]
    return FileCheck(kind, **{name: sum(getattr(file, name) for file in files) for name in counts})


class CheckOutput(Output, frozen=True, kw_only=True):
    """What became of every line. Its problems are all that its parts have.

    Attributes:
        check: of dumps. portable: of artifacts, with `--portable`, what each assumes of the machine.
    """

    verb: Literal["check"] = "check"
    check: DumpCheck | None = None
    portable: tuple[Portability, ...] = ()
