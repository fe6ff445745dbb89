"""Plots of samples: what is drawn is what was measured, and names in it are only text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from inductor_probe.bench.verdict import conclude
from inductor_probe.model.bench import BenchResult, Measurement
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.timing import Process, Series
from inductor_probe.report.html import html
from inductor_probe.report.pages.bench import bench_page
from inductor_probe.report.plots.samples import figure_svg, samples_figure
from tests.bench.simulated import series
from tests.builders import bench_result
from tests.report.harmless import checked

MARGIN = 0.01


def process(found: Series) -> Process:
    return Process("g", ("k",), "4 float32", "random", "warm", 1, "baseline", 0, (), {}, (), (), (found,))


def measured(ratio: float, name: str = "k_v2", disturbed: int = 0) -> tuple[Comparison, list[Process]]:
    made = [replace(each, candidate=name) for each in series(ratio, disturbed=disturbed)]
    return conclude(made, MARGIN), [process(each) for each in made]


def result(*comparisons: Comparison) -> BenchResult:
    times = [
        Measurement(name, 1e-4, 1e-6, 9, "quads")
        for pair in comparisons
        for name in (pair.baseline, pair.candidate)
    ]
    return bench_result(*comparisons, graph="g", inputs="4 float32", margin=MARGIN, times=tuple(times))


def lines(axes: object, marker: str) -> list[Sequence[float]]:
    return [np.asarray(line.get_xdata()) for line in axes.lines if line.get_marker() == marker]  # type: ignore[attr-defined]


def test_medians_interval_and_margin_are_where_the_verdict_has_them() -> None:
    found, processes = measured(1.08)
    assert found.verdict == "SLOWER"
    (_, right) = samples_figure([found], processes, MARGIN).axes
    assert [float(x[0]) for x in lines(right, "o")] == list(found.process_ratios)
    assert [float(x[0]) for x in lines(right, "D")] == [found.ratio]
    bars = [np.asarray(line.get_xdata()) for line in right.lines if line.get_linewidth() == 6]
    assert [bar.tolist() for bar in bars] == [[found.low, found.high]]
    (band,) = right.patches
    assert band.get_x() == 1 / (1 + MARGIN)
    assert band.get_x() + band.get_width() == pytest.approx(1 + MARGIN)
    low, high = right.get_xlim()
    assert low < 1 / (1 + MARGIN)
    assert found.high < high
    assert "SLOWER" in right.get_title(loc="right")


def test_quads_are_those_that_count() -> None:
    found, processes = measured(1.08, disturbed=5)
    (left, right) = samples_figure([found], processes, MARGIN).axes
    assert sum(len(x) for x in lines(right, "|")) == found.quads
    heights = sum(patch.get_height() for patch in left.patches if hasattr(patch, "get_height"))
    assert heights == 4 * found.quads  # two samples of each side, none cut off at the ends


def test_each_comparison_has_its_row_and_its_own_samples() -> None:
    first, processes = measured(1.08)
    second, others = measured(0.9, "k_v3")
    both = [
        replace(a, comparisons=(*a.comparisons, *b.comparisons))
        for a, b in zip(processes, others, strict=True)
    ]
    figure = samples_figure([first, second], both, MARGIN)
    assert len(figure.axes) == 4
    assert [float(x[0]) for x in lines(figure.axes[3], "o")] == list(second.process_ratios)


def test_a_plot_takes_the_colours_around_it_and_names_in_it_are_text() -> None:
    evil = "k_<script>alert(1)</script>$\\alpha_v2"
    found, processes = measured(1.08, evil)
    svg = figure_svg(samples_figure([found], processes, MARGIN))
    text = checked(svg).text
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "<script>alert(1)</script>$\\alpha" in text
    assert "http" not in svg


def test_a_result_shows_table_and_plot() -> None:
    found, processes = measured(1.0)
    page = checked(html(bench_page(result(found), processes)))
    assert [tag for tag, _ in page.elements].count("svg") == 1
    assert found.verdict in page.text
    without = checked(html(bench_page(result(found))))
    assert "svg" not in [tag for tag, _ in without.elements]


def test_without_matplotlib_the_table_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inductor_probe.report.pages.bench.find_spec", lambda name: None)
    found, processes = measured(1.08)
    page = checked(html(bench_page(result(found), processes)))
    assert "with matplotlib installed" in page.text
    assert "svg" not in [tag for tag, _ in page.elements]
