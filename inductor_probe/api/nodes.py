"""Scheduler nodes of a run or graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any, get_args

from inductor_probe.analysis.names import kernels_called
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.nodes import NodeKind, NodeRow
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.report.nodes import NodeTable

if TYPE_CHECKING:
    from typing_extensions import Self


def _points(row: NodeRow) -> tuple[int, int]:
    """Symbolic sizes come before numbers, nodes without loops last."""
    if row.ranges is None:
        return (2, 0)
    steps = [*row.ranges.iteration, *row.ranges.reduction]
    numbers = [step for step in steps if isinstance(step, int)]
    return (1, -prod(numbers)) if len(numbers) == len(steps) else (0, 0)


_ORDERS: dict[str, Callable[[NodeRow], Any]] = {
    "size": _points,
    "ops": lambda row: -row.op_count,
    "reads": lambda row: -len(row.reads),
    "users": lambda row: -len(row.users),
    "kind": lambda row: row.kind,
    "kernel": lambda row: row.link.kernel or "",
}
NODE_ORDERS = tuple(_ORDERS)
NODE_KINDS = (*get_args(NodeKind), "fused", "foreach", "unlinked", "ambiguous")
"""What nodes can be filtered by, beside the classes that inductor prints."""


class NodeRows(tuple[NodeRow, ...], Shown):
    """Rows of `nodes`. `problems` is what could not be read."""

    problems: tuple[Problem, ...]

    def __new__(cls, rows: Iterable[NodeRow], problems: Iterable[Problem] = ()) -> Self:
        """Join the rows with what could not be read."""
        made = super().__new__(cls, rows)
        made.problems = tuple(problems)
        return made

    def where(
        self,
        *,
        kind: str | None = None,
        kernel: str | None = None,
        reads: str | None = None,
        writes: str | None = None,
        op: str | None = None,
        source: str | None = None,
    ) -> NodeRows:
        """Return the nodes that all conditions hold for.

        Args:
            kind: what they do (`reduction`), their class, or `fused`, `foreach`, `unlinked`.
            kernel: the kernel or library call, or the start of its name.
            reads, writes: a buffer or input; writing includes changing it in place.
            op: an operation of the loop body (`exp`), or a reduction (`sum`).
            source: a line of the user's: `file.py:12`, `file.py`, or `12`.

        Raises:
            NotFoundError: there is no such kind, kernel, buffer or line; near names are offered.
        """
        rows = list(self)
        if kind:
            self._check("kind", kind.lower(), {*NODE_KINDS, *(trait for row in self for trait in row.traits)})
            rows = [row for row in rows if kind.lower() in row.traits]
        if reads:
            self._check("buffer", reads, {name for row in self for name in (*row.reads, *_written(row))})
            rows = [row for row in rows if reads in row.reads]
        if writes:
            self._check("buffer", writes, {name for row in self for name in (*row.reads, *_written(row))})
            rows = [row for row in rows if writes in _written(row)]
        if op:
            rows = [row for row in rows if op.removeprefix("ops.") in _operations(row)]
        if kernel:
            known = sorted({row.link.kernel for row in self if row.link.kernel})
            kernels = kernels_called(kernel, known)
            if not kernels:
                raise NotFoundError(f"no node runs in a kernel {kernel}", near_names(kernel, known))
            rows = [row for row in rows if row.link.kernel in kernels]
        if source:
            lines = {str(line) for row in self for line in row.link.sources}
            if not any(on_line(line, source) for line in lines):
                hint = near_names(source, sorted(lines))
                raise NotFoundError(f"no node is known to come from {source}", hint)
            rows = [row for row in rows if any(on_line(str(line), source) for line in row.link.sources)]
        return NodeRows(rows, self.problems)

    def _check(self, what: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        if name not in known:
            raise NotFoundError(f"no {what} is called {name}", near_names(name, known))

    def sorted_by(self, order: str | None) -> NodeRows:
        """Return the nodes of each graph sorted, largest first; as they are if None."""
        if order is None:
            return self
        graphs = {graph: at for at, graph in enumerate(dict.fromkeys(row.graph for row in self))}
        key = _ORDERS[order]
        return NodeRows(sorted(self, key=lambda row: (graphs[row.graph], key(row))), self.problems)

    def __rich__(self) -> Renderable:
        return NodeTable(self)

    __repr__ = Shown.__repr__


def on_line(place: str, wanted: str) -> bool:
    """Whether `/home/u/a.py:12` is meant by `a.py:12`, `a.py`, `12` or `:12`."""
    path, _, line = place.rpartition(":")
    file, colon, number = wanted.rpartition(":")
    if not colon:
        file, number = ("", wanted) if wanted.isdigit() else (wanted, "")
    return (not number or number == line) and (not file or path == file or path.endswith(f"/{file}"))


def _written(row: NodeRow) -> list[str]:
    return [*(buffer.name for buffer in row.writes), *row.mutates]


def _operations(row: NodeRow) -> list[str]:
    return [*(name for name, _ in row.operations), *row.reductions]
