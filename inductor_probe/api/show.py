"""A page about a graph, or about something in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.pages import (
    BufferPage,
    GraphPage,
    NodePage,
    NodePart,
    PageRecord,
    ShownPage,
    TracePage,
)
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.reader.text import read_text
from inductor_probe.report.page_list import PageList

if TYPE_CHECKING:
    from typing_extensions import Self

    from inductor_probe.api.graph import Graph
    from inductor_probe.report.node_page import Lines

_WIDTH = 100
"""Columns of a formula in JSON."""
_MOST_GRAPHS = 3
"""Graphs that are shown as pages when all of them are asked for."""


class Page(Shown):
    """One page. `record` is what it tells, as a record.

    Args:
        record: see `record`.
        graph: the graph it is about.
        raw: show the dumped text of loop bodies instead of formulas.
        code: show the text of kernels.
    """

    def __init__(self, record: PageRecord, graph: Graph, *, raw: bool = False, code: bool = False) -> None:
        self.record = record
        self.graph = graph
        self.raw = raw
        self.code = code

    @property
    def shown(self) -> ShownPage:
        """What `probe show --json` prints of it, as a record."""
        from inductor_probe.report.formula import formula_lines

        if isinstance(self.record, KernelRow):
            text = {self.record.name: tuple(self.record.source.split("\n"))} if self.code else {}
        elif self.raw:
            text = {node: tuple(line for _, line in lines) for node, lines in self.lines.items()}
        else:
            parts = [(part.row.node, part.formula) for part in self._parts() if part.formula]
            text = {node: tuple(formula_lines(formula, _WIDTH)) for node, formula in parts}
        return ShownPage(self.record, text)

    @cached_property
    def lines(self) -> Lines:
        """The dumped text of the nodes on the page, as numbered lines by node."""
        texts: dict[Path, list[str]] = {}
        found: dict[str, Sequence[tuple[int, str]]] = {}
        for part in self._parts():
            span = part.body or part.row.span
            if span is None:
                continue
            if span.path not in texts:
                texts[span.path] = read_text(span.path).split("\n")
            lines = enumerate(texts[span.path][span.first - 1 : span.last], start=span.first)
            found[part.row.node] = tuple(lines)
        return found

    def _parts(self) -> Sequence[NodePart]:
        match self.record:
            case NodePage(parts=parts):
                return parts
            case BufferPage(producer=NodePart() as part):
                return (part,)
        return ()

    def __rich__(self) -> Renderable:
        match self.record:
            case NodePage():
                from inductor_probe.report.node_page import NodePageText

                return NodePageText(self.record, self.lines if self.raw else None)
            case BufferPage():
                from inductor_probe.report.buffer_page import BufferPageText

                return BufferPageText(self.record, self.lines if self.raw else None)
            case TracePage():
                from inductor_probe.report.trace_page import TracePageText

                return TracePageText(self.record)
            case KernelRow():
                from inductor_probe.report.kernel_page import KernelPage

                return KernelPage(self.record, code=self.code)
            case GraphPage():
                from inductor_probe.report.graph_page import GraphPageText

                return GraphPageText(self.record)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.page import page

        return page(self.html)

    @property
    def html(self) -> str:
        """What a notebook shows, without the frame and the style around it."""
        from inductor_probe.notebook.pages import page_html

        return page_html(self.record, self.lines, raw=self.raw, text=self.code)


class Pages(tuple[Page, ...], Shown):
    """Pages about a name that several graphs have. `problems` is what could not be read.

    Pages about many graphs as such show as one table.
    """

    problems: tuple[Problem, ...]

    def __new__(cls, pages: Iterable[Page], problems: Iterable[Problem] = ()) -> Self:
        """Join the pages with what could not be read."""
        made = super().__new__(cls, pages)
        made.problems = tuple(problems)
        return made

    @property
    def is_outline(self) -> bool:
        """Whether they show as one table."""
        return len(self) > _MOST_GRAPHS and all(isinstance(found.record, GraphPage) for found in self)

    def __rich__(self) -> Renderable:
        if self.is_outline:
            from inductor_probe.report.summary import SummaryTable

            return SummaryTable(self[0].graph.run.summary)
        return PageList(self)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.page import page

        return super()._repr_html_() if self.is_outline else page(*(found.html for found in self))

    __repr__ = Shown.__repr__


def page(graph: Graph, name: str | None, *, raw: bool = False, code: bool = False) -> Page:
    """Return the page about `name` in `graph`, about the graph itself without a name."""
    if name is None or name == graph.name:
        from inductor_probe.analysis.pages.graph import graph_page
        from inductor_probe.analysis.run_remarks import cut_short
        from inductor_probe.analysis.summary import summarise

        run = graph.run.debug_dir
        (summary,) = summarise(run, [graph.generated]).graphs
        if run.manifest and (remark := cut_short(run.manifest, run.name)):
            summary = replace(summary, remarks=(remark, *summary.remarks))
        return Page(graph_page(graph.generated, summary), graph, raw=raw, code=code)
    from inductor_probe.analysis.pages.of_name import page_of

    try:
        record = page_of(graph.generated, name)
    except NotFoundError:  # a node that fusion or dead code removed is in the other file only
        record = page_of(graph.compiled, name)
    if isinstance(record, TracePage):  # from your line on: what came before is part of the answer
        record = page_of(graph.compiled, name)
    return Page(record, graph, raw=raw, code=code)


def pages(graphs: Sequence[Graph], name: str | None, *, raw: bool = False, code: bool = False) -> Pages:
    """Return a page for each of `graphs` that has `name`.

    Raises:
        NotFoundError: none has it.
        ProbeError: several kernels start so.
    """
    found: list[Page] = []
    missing: ProbeError | None = None
    for graph in graphs:
        try:
            found.append(page(graph, name, raw=raw, code=code))
        except NotFoundError as error:
            missing = missing or error
    if missing is not None and not found:
        if len(graphs) == 1:
            raise missing
        raise NotFoundError(
            f"none of the {len(graphs)} graphs of {graphs[0].run.path} has {name}", missing.hint
        )
    return Pages(found, (problem for graph in graphs for problem in graph.generated.problems))
