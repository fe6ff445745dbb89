"""Objects that show themselves as text in a Python prompt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import StringIO
from typing import Any

from rich.console import RenderableType as Renderable

from inductor_probe.report.visible import VisibleConsole

__all__ = ["Renderable", "Shown", "plain_console", "to_text"]

_NOTEBOOK_WIDTH = 140


def plain_console(**options: Any) -> VisibleConsole:
    """Return a console that takes text as it is: `[s77, s27]` is a size here, not rich markup.

    In a notebook it writes to its file like anywhere else, where rich's own would show everything there.
    """
    return VisibleConsole(markup=False, highlight=False, emoji=False, force_jupyter=False, **options)


def to_text(renderable: Renderable, width: int = _NOTEBOOK_WIDTH) -> str:
    """Render without colours for `width` columns; a longer line of code stays whole."""
    file = StringIO()
    plain_console(file=file, width=width, color_system=None).print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


class Shown(ABC):
    """Gives an object its looks from one rich renderable."""

    @abstractmethod
    def __rich__(self) -> Renderable:
        """Return what is shown."""

    def __repr__(self) -> str:
        return to_text(self.__rich__())
