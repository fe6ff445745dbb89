"""Verdicts below each other as a plot: where each ratio of times lies, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inductor_probe.model.report import ReportVerdict
from inductor_probe.report.html import escaped
from inductor_probe.report.units import three_digits
from inductor_probe.report.wrapping import shorten

_WIDE, _ROW, _NAME, _RIGHT, _TOP = 960, 26, 330, 190, 20
_LETTERS = 46
_COLOURS = {"FASTER": "green", "SLOWER": "red", "INVALID": "red", "SAME": "cyan", "UNDECIDED": "yellow"}


def intervals_svg(verdicts: Sequence[ReportVerdict]) -> str:
    """Return verdicts as SVG on a logarithmic scale: on the left of the line is faster."""
    ends = [value for one in verdicts for value in (one.comparison.low, one.comparison.high) if value > 0]
    furthest = max([1.1, *(max(value, 1 / value) for value in ends if math.isfinite(value))])
    high = _TOP + _ROW * len(verdicts) + 20
    shapes = [*_axis(furthest, high)]
    for number, verdict in enumerate(verdicts):
        shapes += _row(verdict, _TOP + _ROW * number + _ROW / 2, furthest)
    return f'<svg class="ip-plot" viewBox="0 0 {_WIDE} {high}" role="img">{"".join(shapes)}</svg>'


def _x(ratio: float, furthest: float) -> float:
    middle, half = _NAME + (_WIDE - _NAME - _RIGHT) / 2, (_WIDE - _NAME - _RIGHT) / 2
    share = math.log(ratio) / math.log(furthest) if ratio > 0 else -1.0
    return middle + half * max(-1.0, min(1.0, share))


def _axis(furthest: float, high: int) -> Iterator[str]:
    for ratio in (1 / furthest, 1 / math.sqrt(furthest), 1.0, math.sqrt(furthest), furthest):
        x = _x(ratio, furthest)
        dash = "" if ratio == 1 else ' stroke-dasharray="2 4"'
        yield f'<path class="ip-tie" d="M{x:.1f} {_TOP}V{high - 18}"{dash}></path>'
        text = "same time" if ratio == 1 else f"{three_digits(ratio)}x"
        yield f'<text class="ip-small" x="{x:.1f}" y="{high - 4}" text-anchor="middle">{text}</text>'
    yield f'<text class="ip-small" x="{_NAME}" y="12">faster</text>'
    yield f'<text class="ip-small" x="{_WIDE - _RIGHT}" y="12" text-anchor="end">slower</text>'


def _row(verdict: ReportVerdict, y: float, furthest: float) -> Iterator[str]:
    one = verdict.comparison
    colour = _COLOURS[one.verdict]
    low, middle, high = (_x(value, furthest) for value in (one.low, one.ratio, one.high))
    name = escaped(shorten(verdict.name, _LETTERS))
    title = escaped(f"{verdict.name} against {verdict.against}\n{verdict.graph}".strip())
    yield f'<g class="ip-{colour}"><title>{title}</title><text x="0" y="{y + 4:.1f}">{name}</text>'
    wide = max(high - low, 1.5)
    yield f'<rect class="ip-range" x="{low:.1f}" y="{y - 4:.1f}" width="{wide:.1f}" height="8" rx="2"></rect>'
    yield f'<rect class="ip-dot" x="{middle - 1.5:.1f}" y="{y - 7:.1f}" width="3" height="14"></rect>'
    text = f"{one.verdict} {three_digits(one.low)}x to {three_digits(one.high)}x"
    yield f'<text class="ip-verdict" x="{_WIDE}" y="{y + 4:.1f}" text-anchor="end">{text}</text></g>'
