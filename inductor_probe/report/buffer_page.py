"""One buffer on one page: its layout, and what computes it."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from inductor_probe.model.pages import BufferPage
from inductor_probe.report.chain import chain
from inductor_probe.report.facts import facts
from inductor_probe.report.formula import FormulaText
from inductor_probe.report.layouts import LayoutPage
from inductor_probe.report.node_page import Lines, raw_text
from inductor_probe.report.nodes import does


class BufferPageText:
    """A buffer on a page. With `raw` the dumped text stands where else the formula does."""

    def __init__(self, page: BufferPage, raw: Lines | None = None) -> None:
        self.page = page
        self.raw = raw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield LayoutPage(self.page.row)
        part = self.page.producer
        if part is None:
            return
        yield Text.assemble((f"computed by {part.row.node}", "bold"), "  ", (does(part.row), "cyan"))
        yield facts([("links", chain(part.row.link))])
        if self.raw is not None:
            yield raw_text(self.raw.get(part.row.node, ()))
        elif part.formula is not None:
            yield Padding(FormulaText(part.formula), (0, 0, 0, 2))
