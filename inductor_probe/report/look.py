"""A line that deserves a look."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment


def look(text: str, indent: int = 2) -> RenderableType:
    """Return `text` behind a red `!`, its further lines under its first."""
    return _Look(text, " " * indent + "! ")


class _Look:
    """A grid of rich's would do, but a run has hundreds of looks, and it takes ten times as long."""

    def __init__(self, text: str, mark: str) -> None:
        self.text = text
        self.mark = mark

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - len(self.mark), 1)
        lines = console.render_str(self.text).wrap(console, room, overflow="ellipsis")
        for at, line in enumerate(lines):
            yield Segment(" " * len(self.mark)) if at else Segment(self.mark, console.get_style("bold red"))
            yield from line.render(console)
            yield Segment.line()
