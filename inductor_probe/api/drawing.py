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
from inductor_probe.report.document import Document, Line, Picture
from inductor_probe.report.html import escaped, html
from inductor_probe.report.pages.nodes import node_table
from inductor_probe.report.plots.drawing import MOST_UNITS, Outline, drawing_html, outline_of, too_many
from inductor_probe.report.shown import Shown

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
        return outline_of(node_rows(graph), layouts(graph), self.around)

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return NodesOutput(rows=tuple(row for unit in self.outline.units for row in unit.rows))

    @property
    def document(self) -> Document:
        """The drawing where pictures are shown, and its nodes in a table."""
        outline = self.outline
        if len(outline.units) > MOST_UNITS:
            yield Line((too_many(outline), "dim"))
        else:
            yield Picture(lambda: self.html)
        yield from node_table([row for unit in outline.units for row in unit.rows])

    @property
    def html(self) -> str:
        """The drawing alone, with the page of each box to choose; empty where it would have too many."""
        if len(self.outline.units) > MOST_UNITS:
            return ""
        return drawing_html(self.outline, dict(self._panels()))

    def _panels(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to say about each box of the drawing, by what it is."""
        outline = self.outline
        for unit in outline.units:
            yield f"node {unit.name}", self._page(unit.name)
        for row in outline.buffers:
            yield f"buffer {row.buffer}", self._page(row.buffer)
        kernels = {unit.kernel for unit in outline.units}
        for kernel in kernel_rows(self.graph.generated):
            if kernel.name in kernels:
                yield f"kernel {kernel.name}", self._page(kernel.name)

    def _page(self, name: str) -> str:
        """Return the page of a name, or why there is none: it does not take the drawing away."""
        try:
            return html(page(self.graph, name).document)
        except ProbeError as error:
            return escaped(str(error))
