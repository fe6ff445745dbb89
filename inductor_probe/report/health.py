"""What was seen of the machine, as a table."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from inductor_probe.model.health import Level, MachineHealth
from inductor_probe.report.units import counted
from inductor_probe.report.words.health import text_and_remedy

_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "error": "bold red"}


class HealthText:
    """A row for each subject, the worst diagnostic about it first, then whether the machine is fit."""

    def __init__(self, health: MachineHealth) -> None:
        self.health = health

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        order, diagnostics = list(_STYLES), self.health.diagnostics
        subjects = list(dict.fromkeys(each.about for each in diagnostics))
        shown: tuple[str, str] | None = None
        for diagnostic in sorted(
            diagnostics, key=lambda each: (subjects.index(each.about), -order.index(each.level))
        ):
            sentence, remedy = text_and_remedy(diagnostic)
            text = Text(sentence)
            if remedy is not None:
                text = Text.assemble(text, "; ", (remedy, "cyan"))
            repeated = shown == (diagnostic.level, diagnostic.about)
            shown = (diagnostic.level, diagnostic.about)
            level = Text("" if repeated else diagnostic.level, style=_STYLES[diagnostic.level])
            grid.add_row(level, Text("" if repeated else diagnostic.about, style="dim"), text)
        yield grid
        yield Text()
        yield self._sum()

    def _sum(self) -> Text:
        levels = [diagnostic.level for diagnostic in self.health.diagnostics]
        warnings = f"; {counted(levels.count('warning'), 'warning')} above" if "warning" in levels else ""
        if self.health.fit:
            return Text.assemble(("fit", "bold green"), f": nothing that is needed is missing{warnings}")
        missing = {each.about: None for each in self.health.diagnostics if each.level == "error"}
        return Text.assemble(("not fit", "bold red"), f": see {', '.join(missing)}{warnings}")
