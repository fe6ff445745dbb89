"""Pages below each other."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text


class PageList:
    """Several pages, set off from each other by an empty line."""

    def __init__(self, pages: Sequence[RenderableType]) -> None:
        self.pages = pages

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for at, page in enumerate(self.pages):
            if at:
                yield Text()
            yield page
