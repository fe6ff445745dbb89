"""What max-autotune considered for a graph."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_probe.analysis.templates import linked_tunings
from inductor_probe.model.span import Problem
from inductor_probe.model.templates import Tuning
from inductor_probe.reader.template_choices import read_tunings
from inductor_probe.reader.template_table import tunings_to_csv
from inductor_probe.report.page_list import PageList
from inductor_probe.report.shown import Renderable, Shown
from inductor_probe.report.templates import TuningTable, tunings_json

if TYPE_CHECKING:
    from typing_extensions import Self

    from inductor_probe.api.graph import Graph


class Tunings(tuple[Tuning, ...], Shown):
    """Operations that were autotuned, each with every choice. `problems` is what could not be read."""

    problems: tuple[Problem, ...]

    def __new__(cls, tunings: Iterable[Tuning], problems: Iterable[Problem] = ()) -> Self:
        """Join the tunings with what could not be read."""
        made = super().__new__(cls, tunings)
        made.problems = tuple(problems)
        return made

    @property
    def json(self) -> list[dict[str, Any]]:
        """The tunings with stable keys, ready for `json.dumps`."""
        return tunings_json(self)

    @property
    def csv(self) -> str:
        """The tunings as a small table, which `reader.template_table.tunings_from_csv` reads back."""
        return tunings_to_csv(self)

    def __rich__(self) -> Renderable:
        return PageList([TuningTable(tuning) for tuning in self])

    __repr__ = Shown.__repr__


def tunings(target: str | Path | None = None) -> Tunings:
    """Return what was autotuned in the graph that `target` names; the latest run's only graph if None.

    Raises:
        NotFoundError: no such graph. ProbeError: the run has several graphs.
    """
    from inductor_probe.api.verbs import open_graph

    return tunings_of(open_graph(target))


def tunings_of(graph: Graph) -> Tunings:
    """Return what was autotuned in a graph; empty where nobody wrote it down."""
    found = read_tunings(graph.path)
    return Tunings(linked_tunings(graph.generated, found.tunings), found.problems)
