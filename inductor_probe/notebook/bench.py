"""What timing found: the table and its sentence, and the samples behind each comparison."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from rich.console import RenderableType

from inductor_probe.model.bench import BenchFile, BenchResult
from inductor_probe.model.timing import Process
from inductor_probe.notebook.code import difference
from inductor_probe.notebook.page import folded, page
from inductor_probe.notebook.rich_html import rich_html
from inductor_probe.notebook.samples import figure_svg, samples_figure

_MOST_PLOTS = 6
_NO_MATPLOTLIB = '<div class="ip-dim">with matplotlib installed, the samples would be plotted here</div>'


def bench_html(
    table: RenderableType, result: BenchResult, processes: Sequence[Process], file: BenchFile | None
) -> str:
    """Return the table, plots of at most six comparisons, and how each variant differs from the original."""
    diffs = [
        folded(f"{diff.name} against {diff.base}", difference(diff.lines))
        for diff in (file.diffs if file else ())
        if diff.lines
    ]
    return page(rich_html(table), _plots(result, processes), *diffs)


def _plots(result: BenchResult, processes: Sequence[Process]) -> str:
    shown = result.comparisons[:_MOST_PLOTS]
    if not shown or not processes:
        return ""
    if find_spec("matplotlib") is None:
        return _NO_MATPLOTLIB
    svg = figure_svg(samples_figure(shown, processes, result.margin))
    return f'<div class="ip-figure">{svg}</div>'
