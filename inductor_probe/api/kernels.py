"""Kernels of a run or graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.ir import Dim
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.report.kernel_page import KernelPage
from inductor_probe.report.kernels import KernelTable

if TYPE_CHECKING:
    from typing_extensions import Self

TRAITS = (
    "cpp", "triton", "extern", "library", "fallback", "loops", "template", "pointwise", "reduction",
    "persistent_reduction", "split_scan", "cooperative_reduction", "foreach", "user_autotune", "scalar",
    "vectorised", "atomic", "int64", "unlinked",
)  # fmt: skip
"""What kernels can be filtered by; those of further backends and heuristics are known when they are met."""


def _largest(*sizes: tuple[Dim | None, int | None]) -> tuple[int, int]:
    """Symbolic sizes that nothing tells come before numbers, unknown ones last: neither can be compared.

    A size comes with what it was when the graph was compiled.
    """
    known = [size if recorded is None else recorded for size, recorded in sizes]
    numbers = [size for size in known if isinstance(size, int)]
    if len(numbers) == len(known):
        return (1, -sum(numbers))
    return (0, 0) if any(isinstance(size, str) for size in known) else (2, 0)


def _read(row: KernelRow) -> tuple[Dim | None, int | None]:
    return row.bytes_read, row.recorded_read


def _written(row: KernelRow) -> tuple[Dim | None, int | None]:
    return row.bytes_written, row.recorded_written


_ORDERS: dict[str, Callable[[KernelRow], Any]] = {
    "bytes": lambda row: _largest(_read(row), _written(row)),
    "reads": lambda row: _largest(_read(row)),
    "writes": lambda row: _largest(_written(row)),
    "nodes": lambda row: -len(row.nodes),
    "loads": lambda row: -(row.loads or 0),
    "calls": lambda row: -len(row.launches),
    "name": lambda row: row.name,
}
KERNEL_ORDERS = tuple(_ORDERS)


class KernelRows(tuple[KernelRow, ...], Shown):
    """Rows of `kernels`: one shows as a page, several as a table. `problems` is what could not be read."""

    problems: tuple[Problem, ...]

    def __new__(cls, rows: Iterable[KernelRow], problems: Iterable[Problem] = ()) -> Self:
        """Join the rows with what could not be read."""
        made = super().__new__(cls, rows)
        made.problems = tuple(problems)
        return made

    def only(self, *traits: str) -> KernelRows:
        """Return the kernels that have every trait: see `TRAITS`.

        Raises:
            NotFoundError: there is no such trait; near ones are offered.
        """
        known = {*TRAITS, *(trait for row in self for trait in row.traits)}
        for trait in traits:
            if trait not in known:
                raise NotFoundError(f"no kernel is ever {trait}", near_names(trait, sorted(known)))
        return KernelRows((row for row in self if set(traits) <= set(row.traits)), self.problems)

    def sorted_by(self, order: str | None) -> KernelRows:
        """Return the kernels of each graph sorted, largest first, names from a to z; as they are if None."""
        if order is None:
            return self
        graphs = {graph: at for at, graph in enumerate(dict.fromkeys(row.graph for row in self))}
        key = _ORDERS[order]
        return KernelRows(sorted(self, key=lambda row: (graphs[row.graph], key(row))), self.problems)

    def __rich__(self) -> Renderable:
        return KernelPage(self[0]) if len(self) == 1 else KernelTable(self)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.kernels import kernels_html

        return kernels_html(self)

    __repr__ = Shown.__repr__
