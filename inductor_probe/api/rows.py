"""Rows that show themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.report.layouts import LayoutPage, LayoutTable

if TYPE_CHECKING:
    from typing_extensions import Self


class LayoutRows(tuple[LayoutRow, ...], Shown):
    """Rows of `layouts`: one shows as a page, several as a table. `problems` is what could not be read."""

    problems: tuple[Problem, ...]

    def __new__(cls, rows: Iterable[LayoutRow], problems: Iterable[Problem] = ()) -> Self:
        """Join the rows with what could not be read."""
        made = super().__new__(cls, rows)
        made.problems = tuple(problems)
        return made

    def __rich__(self) -> Renderable:
        return LayoutPage(self[0]) if len(self) == 1 else LayoutTable(self)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.layouts import layouts_html

        return layouts_html(self)

    __repr__ = Shown.__repr__
