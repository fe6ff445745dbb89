"""A line that deserves a look."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text


def look(text: str, indent: int = 2) -> Table:
    """Return `text` behind a red `!`, its further lines under its first."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(Text(" " * indent + "!", style="bold red"), text)
    return grid
