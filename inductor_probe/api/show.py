"""Pages about a graph, or about something in it, and a drawing of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.rows import Rows
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import read_text
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.nodes import NodesOutput
from inductor_probe.model.output import Output
from inductor_probe.model.pages import (
    BufferPage,
    GraphPage,
    NodePage,
    NodePart,
    PageRecord,
    ShownPage,
    ShowOutput,
    TracePage,
)
from inductor_probe.model.runs import RunSummary
from inductor_probe.model.span import Problem
from inductor_probe.report.document import Document, Picture, apart, by_graph
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
    from inductor_probe.report.plots.outline import Outline

_WIDTH = 100
"""Columns of a formula in JSON."""
_MOST_GRAPHS = 3
"""Graphs that are shown as pages when all of them are asked for."""


class Page(Shown, Struct, frozen=True, dict=True):
    """One page about `graph`: `raw` shows loop bodies as dumped, not formulas, `code` the text of kernels."""

    record: PageRecord
    graph: CompiledGraph
    raw: bool = False
    code: bool = False

    @property
    def shown(self) -> ShownPage:
        """The record with the text beside it, as `probe show --json` prints them."""
        from inductor_probe.report.formula import formula_lines

        if isinstance(self.record, KernelRow):
            text = {self.record.name: tuple(self.record.source.split("\n"))} if self.code else {}
        elif self.raw:
            text = {node: tuple(line for _, line in lines) for node, lines in self.lines.items()}
        else:
            parts = [(part.row.node, part.formula) for part in self._parts() if part.formula]
            text = {node: tuple(formula_lines(formula, _WIDTH)) for node, formula in parts}
        return ShownPage(self.record, text)

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return ShowOutput(pages=(self.shown,))

    @cached_property
    def lines(self) -> Mapping[str, Sequence[tuple[int, str]]]:
        """The dumped text of the nodes on the page, as numbered lines by node."""
        texts: dict[Path, list[str]] = {}
        bodies: dict[str, Sequence[tuple[int, str]]] = {}
        for part in self._parts():
            span = part.body or part.row.span
            if span is None:
                continue
            if span.path not in texts:
                texts[span.path] = read_text(span.path).split("\n")
            lines = enumerate(texts[span.path][span.first - 1 : span.last], start=span.first)
            bodies[part.row.node] = tuple(lines)
        return bodies

    def annotated(self, *, line_directives: bool = True) -> str:
        """Return the text of the kernel that the page is about: see `Graph.annotate`."""
        from inductor_probe.analysis.annotation.annotate import annotate
        from inductor_probe.report.pages.why import cause_sentence

        if not isinstance(self.record, KernelRow):
            raise NotFoundError("the page is not about a kernel", "probe kernels lists them")
        return annotate(
            self.graph, self.record.name, line_directives=line_directives, sentence=cause_sentence
        )

    def _parts(self) -> Sequence[NodePart]:
        match self.record:
            case NodePage(parts=parts):
                return parts
            case BufferPage(producer=NodePart() as part):
                return (part,)
        return ()

    @property
    def document(self) -> Document:
        """The page."""
        from inductor_probe.report.pages.show import page_blocks

        return page_blocks(self.record, lambda: self.lines, raw=self.raw, code=self.code)


class Pages(Rows[Page]):
    """Pages about a name that several graphs have. Pages about many graphs as such show as one table."""

    noun = "page"
    nothing = "the run has no graphs"
    outline: RunSummary | None = None
    """What is shown in place of the pages: the graphs in a table."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return ShowOutput(pages=tuple(page.shown for page in self), problems=self.problems)

    def _view(self) -> Document:
        if self.outline is not None:
            from inductor_probe.report.pages.runs import summary_page

            return summary_page(self.outline)
        if all(isinstance(page.record, GraphPage) for page in self):  # which begin with their names
            return apart(page.document for page in self)
        return by_graph((page.graph.name, page.document) for page in self)

    @classmethod
    def of_run(cls, run: RunOnDisk, pages: Iterable[Page], problems: Iterable[Problem]) -> Pages:
        """Join pages about graphs of a run; more than three about graphs as such show as one table."""
        self = cls(pages, problems)
        if len(self) > _MOST_GRAPHS and all(isinstance(page.record, GraphPage) for page in self):
            self.outline = run.summary
        return self


def page(graph: GraphOnDisk, name: str | None, *, raw: bool = False, code: bool = False) -> Page:
    """Return the page about `name` in `graph`, about the graph itself without a name: see `Session.pages`."""
    from inductor_probe.analysis.pages import graph_page, page_of

    if name is None or name == graph.name:
        from inductor_probe.analysis.run_remarks import cut_short
        from inductor_probe.analysis.summary import summarise

        run = graph.run.debug_dir
        (summary,) = summarise(run, [graph.generated]).graphs
        if remark := cut_short(run):
            summary = replace(summary, remarks=(remark, *summary.remarks))
        return Page(graph_page(graph.generated, summary), graph.generated, raw=raw, code=code)
    try:
        record = page_of(graph.generated, name)
    except NotFoundError:  # a node that fusion or dead code removed is in the other file only
        record = page_of(graph.compiled, name)
    if isinstance(record, TracePage):  # from your line on: what came before is part of the answer
        record = page_of(graph.compiled, name)
    return Page(record, graph.generated, raw=raw, code=code)


class Drawing(Shown):
    """A graph, or what is around one name in it: a drawing in a notebook, a table of nodes as text."""

    def __init__(self, graph: GraphOnDisk, around: str | None = None) -> None:
        self.graph = graph
        self.around = around
        if around is not None and not self.outline.units:
            from inductor_probe.analysis.names import resolve

            subject = resolve(graph.generated, around, ("node", "buffer", "kernel"))
            raise NotFoundError(
                f"no node of {graph.name} has to do with {around}", f"probe show {subject.name}"
            )

    @cached_property
    def outline(self) -> Outline:
        """What is drawn; of a graph of many nodes neighbours are folded."""
        from inductor_probe.analysis.layouts import layouts
        from inductor_probe.analysis.nodes import node_rows
        from inductor_probe.report.plots.outline import MOST_UNITS, outline_of

        rows = node_rows(self.graph.generated)
        seconds = self.graph.node_seconds
        return outline_of(rows, layouts(self.graph.generated), self.around, seconds=seconds, most=MOST_UNITS)

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return NodesOutput(rows=tuple(row for unit in self.outline.units for row in unit.rows))

    @property
    def document(self) -> Document:
        """The drawing where pictures are shown, and its nodes in a table."""
        from inductor_probe.report.pages.nodes import node_table

        yield Picture(lambda: self.html)
        yield from node_table([row for unit in self.outline.units for row in unit.rows])

    @property
    def html(self) -> str:
        """The drawing alone, with the page of each box to choose."""
        from inductor_probe.analysis.causes.causes import graph_causes
        from inductor_probe.analysis.kernels import kernel_rows
        from inductor_probe.report.html import html
        from inductor_probe.report.pages.nodes import node_table
        from inductor_probe.report.plots.drawing import drawing_html
        from inductor_probe.report.plots.outline import missed_of

        outline = self.outline
        kernels = {unit.kernel for unit in outline.units}
        boxes = [("node", unit.name) for unit in outline.units]
        boxes += [("buffer", row.buffer) for row in outline.buffers]
        boxes += [("kernel", row.name) for row in kernel_rows(self.graph.generated) if row.name in kernels]
        folded = {unit.name: html(node_table(unit.rows)) for unit in outline.units if len(unit.parts) > 1}
        panels = {f"{kind} {name}": folded.get(name) or self._page(name) for kind, name in boxes}
        return drawing_html(outline, panels, missed_of(outline, graph_causes(self.graph.compiled).causes))

    def _page(self, name: str) -> str:
        """Return the page of a name, or why there is none: it does not take the drawing away."""
        from inductor_probe.report.html import escaped, html

        try:
            return html(page(self.graph, name).document)
        except ProbeError as error:
            return escaped(str(error))
