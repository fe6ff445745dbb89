"""The samples of a comparison as a plot: how both sides scatter, and where their ratio lies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from statistics import quantiles
from typing import TYPE_CHECKING

from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.timing import Process, Quad
from inductor_probe.report.visible import visible
from inductor_probe.report.words.bench import side_name
from inductor_probe.report.wrapping import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#010203"
"""Stands for the colour of the text around the plot, which is not known before it is shown."""
_A, _B, _BAND = "#8a919c", "#3b82f6", "#8a919c"
_VERDICTS: dict[Verdict, str] = {
    "FASTER": "#3fa35b",
    "SLOWER": "#e5534b",
    "SAME": "#3b82f6",
    "UNDECIDED": "#c69026",
    "INVALID": "#e5534b",
}
_NAME = 60
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
}


def samples_figure(comparisons: Sequence[Comparison], processes: Sequence[Process], margin: float) -> Figure:
    """Plot comparisons below each other: on the left times a call of both sides, on the right their ratio.

    On the right are the quads of each process, the median of each (a dot), the interval (a bar), and the
    margin within which times count as the same (grey).

    Args:
        comparisons: what the verdict rests on; at least one.
        processes: the samples.
        margin: see `BenchSettings.margin`.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib as mpl  # noqa: PLC0415 - only when a plot is drawn
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10.2, 2.5 * len(comparisons)), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.subplots(len(comparisons), 2, squeeze=False)
        for (left, right), comparison in zip(axes, comparisons, strict=True):
            quads = [(process, _quads(process, comparison)) for process in processes]
            used = [of_process for _, of_process in quads if of_process]
            for axis in (left, right):
                axis.patch.set_alpha(0)
            _times(left, comparison, [quad for of_process in used for quad in of_process])
            _ratios(right, comparison, used, margin)
    return figure


def figure_svg(figure: Figure) -> str:
    """Return a figure as SVG that takes the colour of the text around it, fit to stand in HTML."""
    import matplotlib as mpl  # noqa: PLC0415 - only when a plot is drawn

    file = StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(file, format="svg", transparent=True)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    for part in ("metadata", "style"):
        svg = re.sub(rf"<{part}.*?</{part}>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace(" xlink:href=", " href=")
    return svg.replace(_INK, "currentColor")


def _quads(process: Process, comparison: Comparison) -> list[Quad]:
    """Return the undisturbed quads of a comparison in one process; all of them where none is."""
    selected = [
        quad
        for series in process.comparisons
        if (series.baseline, series.candidate) == (comparison.baseline, comparison.candidate)
        for quad in series.quads
        if not quad.guard
    ]
    return [quad for quad in selected if quad.disturbed is None] or selected


def _times(axes: Axes, comparison: Comparison, quads: Sequence[Quad]) -> None:
    sides = (
        (comparison.baseline, _A, [time * 1e6 for quad in quads for time in quad.samples("A")]),
        (comparison.candidate, _B, [time * 1e6 for quad in quads for time in quad.samples("B")]),
    )
    low, high = _range([time for *_, times in sides for time in times])
    bins = [low + (high - low) * step / 40 for step in range(41)]
    for side, colour, times in sides:
        inside = [min(max(time, low), high) for time in times]
        axes.hist(inside, bins=bins, color=colour, alpha=0.55, label=visible(shorten(side_name(side), _NAME)))
    axes.set_xlabel("microseconds a call, of every block (the ends hold what is beyond)")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.5)
    axes.legend(loc="upper left", frameon=False, fontsize=8)


def _ratios(axes: Axes, comparison: Comparison, processes: Sequence[Sequence[Quad]], margin: float) -> None:
    colour = _VERDICTS[comparison.verdict]
    axes.axvspan(1 / (1 + margin), 1 + margin, color=_BAND, alpha=0.25, linewidth=0)
    axes.axvline(1, color=_INK, linewidth=0.6)
    ratios = [[math.exp(quad.score) for quad in quads] for quads in processes]
    for number, scores in enumerate(ratios, start=1):
        axes.plot(
            scores,
            [number + 0.22 * math.sin(12.9898 * number) for number in range(len(scores))],
            "|",
            color=_B,
            alpha=0.35,
            markersize=5,
        )
    for number, ratio in enumerate(comparison.process_ratios, start=1):
        axes.plot([ratio], [number], "o", color=_B, markersize=6)
    axes.plot([comparison.low, comparison.high], [0, 0], color=colour, linewidth=6, solid_capstyle="butt")
    axes.plot([comparison.ratio], [0], "D", color=_INK, markersize=5)
    every = [ratio for scores in ratios for ratio in scores]
    low, high = _range(every, parts=10)
    low, high = min(low, comparison.low, 1 / (1 + 2 * margin)), max(high, comparison.high, 1 + 2 * margin)
    axes.set_xlim(low - (high - low) * 0.05, high + (high - low) * 0.05)
    axes.set_ylim(-0.8, len(ratios) + 0.7)
    axes.set_yticks(
        range(len(ratios) + 1), ["interval", *(f"process {number}" for number in range(1, len(ratios) + 1))]
    )
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"ratio of times (grey: the same within {margin * 100:.3g} %)")
    axes.set_title(f"{comparison.verdict}  {comparison.ratio:.3f}x", color=colour, fontsize=10, loc="right")


def _range(values: Iterable[float], parts: int = 50) -> tuple[float, float]:
    """Return where all but the first and the last of so many equal parts of the samples are.

    A few that took ten times as long would hide the rest.
    """
    times = sorted(values)
    if len(times) < 2:
        return (times[0] * 0.99, times[0] * 1.01) if times else (0.0, 1.0)
    cuts = quantiles(times, n=parts)
    low, high = cuts[0], cuts[-1]
    room = (high - low) * 0.1 or low * 0.01 or 1.0
    return low - room, high + room
