"""A graph as a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.names import resolve
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.api.show import page
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.nodes import NodesOutput
from inductor_probe.model.output import Output
from inductor_probe.notebook.outline import Outline, outline
from inductor_probe.notebook.shown import Renderable, Shown

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk


class Drawing(Shown):
    """A graph, or what is around one name in it: a drawing in a notebook, a table of nodes as text."""

    def __init__(self, graph: GraphOnDisk, around: str | None = None) -> None:
        self.graph = graph
        self.around = around
        if around is not None and not self.outline.units:
            subject = resolve(graph.generated, around, ("node", "buffer", "kernel"))
            raise NotFoundError(
                f"no node of {graph.name} has to do with {around}", f"probe show {subject.name}"
            )

    @cached_property
    def outline(self) -> Outline:
        """What is drawn."""
        graph = self.graph.generated
        return outline(node_rows(graph), layouts(graph), self.around)

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return NodesOutput(rows=tuple(row for unit in self.outline.units for row in unit.rows))

    def __rich__(self) -> Renderable:
        from inductor_probe.report.nodes import NodeTable

        return NodeTable([row for unit in self.outline.units for row in unit.rows])

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.drawing import MOST_UNITS, drawing_html

        panels = dict(self._panels()) if len(self.outline.units) <= MOST_UNITS else {}
        return drawing_html(self.outline, panels)

    def _panels(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to say about each box of the drawing, by what it is."""
        found = self.outline
        for unit in found.units:
            yield f"node {unit.name}", self._page(unit.name)
        for row in found.buffers:
            yield f"buffer {row.buffer}", self._page(row.buffer)
        kernels = {unit.kernel for unit in found.units}
        for kernel in kernel_rows(self.graph.generated):
            if kernel.name in kernels:
                yield f"kernel {kernel.name}", self._page(kernel.name)

    def _page(self, name: str) -> str:
        """Return the page of a name, or why there is none: it does not take the drawing away."""
        from inductor_probe.notebook.page import escaped

        try:
            return page(self.graph, name).html
        except ProbeError as error:
            return escaped(str(error))
