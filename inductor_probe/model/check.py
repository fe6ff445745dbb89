"""Whether a dump is whole and understood."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inductor_probe.model.span import Problem


@dataclass(frozen=True, slots=True)
class GraphCheck:
    """What was read of one graph.

    Attributes:
        graph: its folder.
        nodes: unfused scheduler nodes that code was generated for.
        kernels: generated kernels defined in the wrapper; library calls are not among them.
        launches: calls of those kernels.
        lines, unread_lines: of all its files; unread are those that no known form took.
        unlinked: nodes whose kernel could not be proved.
        notes: what torch did not write, and what to know of that; nothing that was not read.
        problems: what is missing, damaged or not understood.
    """

    graph: Path
    nodes: int
    kernels: int
    launches: int
    lines: int
    unread_lines: int
    unlinked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class LogCheck:
    """What was read of a run's compiler logs."""

    run: Path
    lines: int
    unread_lines: int
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class DumpCheck:
    """The graphs below the paths that were given, their runs' logs, and problems of the runs themselves.

    `empty_graphs` are folders that inductor left empty because the graph computes nothing: no problem.
    """

    graphs: tuple[GraphCheck, ...]
    logs: tuple[LogCheck, ...] = ()
    run_problems: tuple[Problem, ...] = ()
    empty_graphs: tuple[Path, ...] = ()

    @property
    def nodes(self) -> int:
        """Unfused nodes of all graphs."""
        return sum(graph.nodes for graph in self.graphs)

    @property
    def kernels(self) -> int:
        """Generated kernels of all graphs."""
        return sum(graph.kernels for graph in self.graphs)

    @property
    def launches(self) -> int:
        """Launches of generated kernels in all graphs."""
        return sum(graph.launches for graph in self.graphs)

    @property
    def lines(self) -> int:
        """Lines of everything that was read."""
        return sum(part.lines for part in self._parts)

    @property
    def unread_lines(self) -> int:
        """Lines that no known form took."""
        return sum(part.unread_lines for part in self._parts)

    @property
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
    def whole(self) -> bool:
        """Whether everything is there, read and linked."""
        return not self.problems and not self.unread_lines and not self.unlinked_nodes
