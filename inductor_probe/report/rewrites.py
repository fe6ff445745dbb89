"""The named rewrites, each with what it applies to in a graph."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.bench import RewriteRow
from inductor_probe.report.facts import code_text
from inductor_probe.report.units import counted

_MOST_SPECS = 6


class RewriteTable:
    """A paragraph for each rewrite: its form, what it does, and specs that make variants of the graph."""

    def __init__(self, rows: Sequence[RewriteRow]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.rows:
            yield Text.assemble((row.name, "bold"), f":{row.arguments}")
            yield Text(f"    {row.help}")
            for spec in row.specs[:_MOST_SPECS]:
                yield code_text(f"    {spec!r}" if " " in spec else f"    {spec}", "green")
            if len(row.specs) > _MOST_SPECS:
                yield Text(
                    f"    and {counted(len(row.specs) - _MOST_SPECS, 'more spec')}: --json", style="dim"
                )
            if not row.specs:
                yield Text("    applies to nothing in this graph", style="dim")
