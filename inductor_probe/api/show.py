"""A page about a graph, or about something in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.rows import Rows
from inductor_probe.errors import NotFoundError
from inductor_probe.files import read_text
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.kernels import KernelRow
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
from inductor_probe.report.document import Document, apart
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk

_WIDTH = 100
"""Columns of a formula in JSON."""
_MOST_GRAPHS = 3
"""Graphs that are shown as pages when all of them are asked for."""


class Page(Shown):
    """One page.

    Args:
        record: what it tells.
        graph: what was read of the graph that it is about.
        raw: show the dumped text of loop bodies instead of formulas.
        code: show the text of kernels.
    """

    def __init__(
        self, record: PageRecord, graph: CompiledGraph, *, raw: bool = False, code: bool = False
    ) -> None:
        self.record = record
        self.graph = graph
        self.raw = raw
        self.code = code

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
    def output(self) -> ShowOutput:
        """The page as the record that `--json` prints."""
        return ShowOutput(pages=(self.shown,))

    @cached_property
    def lines(self) -> Mapping[str, Sequence[tuple[int, str]]]:
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

    def annotated(self, *, line_directives: bool = True) -> str:
        """Return the text of the kernel that the page is about: see `Graph.annotate`.

        Raises:
            NotFoundError: the page is not about a kernel.
        """
        from inductor_probe.analysis.annotation.annotate import annotate

        if not isinstance(self.record, KernelRow):
            raise NotFoundError("the page is not about a kernel", "probe kernels lists them")
        return annotate(self.graph, self.record.name, line_directives=line_directives)

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
    def output(self) -> ShowOutput:
        """The pages as the record that `--json` prints."""
        return ShowOutput(pages=tuple(page.shown for page in self), problems=self.problems)

    def _view(self) -> Document:
        if self.outline is not None:
            from inductor_probe.report.pages.runs import summary_page

            return summary_page(self.outline)
        return apart(page.document for page in self)


def pages_of(run: RunOnDisk, pages: Sequence[Page], problems: Iterable[Problem]) -> Pages:
    """Join pages about graphs of a run; more than three about graphs as such show as one table."""
    made = Pages(pages, problems)
    if len(pages) > _MOST_GRAPHS and all(isinstance(page.record, GraphPage) for page in pages):
        made.outline = run.summary
    return made


def page(graph: GraphOnDisk, name: str | None, *, raw: bool = False, code: bool = False) -> Page:
    """Return the page about `name` in `graph`, about the graph itself without a name.

    Raises:
        NotFoundError: the graph has nothing of that name. ProbeError: several kernels start so.
    """
    if name is None or name == graph.name:
        from inductor_probe.analysis.pages import graph_page
        from inductor_probe.analysis.run_remarks import cut_short
        from inductor_probe.analysis.summary import summarise

        run = graph.run.debug_dir
        (summary,) = summarise(run, [graph.generated]).graphs
        if run.manifest and (remark := cut_short(run.manifest, run.name)):
            summary = replace(summary, remarks=(remark, *summary.remarks))
        return Page(graph_page(graph.generated, summary), graph.generated, raw=raw, code=code)
    from inductor_probe.analysis.pages import page_of

    try:
        record = page_of(graph.generated, name)
    except NotFoundError:  # a node that fusion or dead code removed is in the other file only
        record = page_of(graph.compiled, name)
    if isinstance(record, TracePage):  # from your line on: what came before is part of the answer
        record = page_of(graph.compiled, name)
    return Page(record, graph.generated, raw=raw, code=code)
