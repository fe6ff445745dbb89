"""Words for comparisons: what they say of variants, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable

from inductor_probe.model.bench import BenchResult, Comparison, Measurement
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Element, Variant
from inductor_probe.report.units import counted, duration
from inductor_probe.report.words.templates import joined

_RATIO_FROM = 1.5
"""A difference of this factor or more is a ratio; percent are hard to read there."""
_MOST_CLAUSES = 3


def result_sentence(result: BenchResult) -> str:
    """Return what all comparisons say in one sentence, differences first."""
    wrong = [variant.name for variant in result.variants if not variant.correct]
    differ = [one for one in result.comparisons if one.verdict in ("FASTER", "SLOWER")]
    same = [one for one in result.comparisons if one.verdict == "SAME"]
    undecided = [one for one in result.comparisons if one.verdict in ("UNDECIDED", "INVALID")]
    clauses = [clause(comparison, result.processes) for comparison in differ[-_MOST_CLAUSES:]]
    if len(differ) > _MOST_CLAUSES:
        clauses.append(f"{len(differ) - _MOST_CLAUSES} more differ")
    if len(same) == 1:
        clauses.append(clause(same[0], result.processes, result.margin))
    elif same:
        clauses.append(f"{len(same)} others take the same time within {result.margin * 100:.3g} %")
    if len(undecided) == 1:
        clauses.append(clause(undecided[0], result.processes))
    elif undecided:
        clauses.append(f"{len(undecided)} comparisons are not decided")
    if wrong:
        clauses.append(f"{joined(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong and not timed")
    if not clauses and result.alone:
        first = result.alone[0]
        clauses.append(f"{side_name(first)} takes {duration(first.median)} per call; nothing to compare with")
    return "; ".join(clauses) + "." if clauses else "Nothing was compared."


def wrong_words(variant: Variant, remark_text: Callable[[Remark], str]) -> str:
    """Return what is wrong with a variant.

    `3 of 9 elements are wrong, the largest error is 0.25; the first, output 0[1, 2], is 1.25 instead of 1`.
    """
    clauses = []
    if variant.mismatches:
        error = "" if variant.max_error is None else f", the largest error is {variant.max_error:.3g}"
        clauses.append(f"{variant.mismatches:,} of {variant.elements:,} elements are wrong{error}")
    if variant.first_bad is not None and variant.expected is not None:
        index = f"[{', '.join(map(str, variant.first_bad))}]" if variant.first_bad else ""
        values = f"{_element(variant.value)} instead of {_element(variant.expected)}"
        clauses.append(f"the first, output {variant.first_bad_output}{index}, is {values}")
    clauses += map(remark_text, variant.remarks)
    return "; ".join(clauses) or "it does not agree with the reference"


def _element(value: Element) -> str:
    """Nine digits distinguish any two float32 values."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def clause(comparison: Comparison, processes: int, margin: float = 0.0) -> str:
    """Return what a comparison says: `k_v2 is 1.9 % slower than k (1.6 to 2.2 %, 3 processes, 412 quads)`."""
    baseline, candidate = side_name(comparison.baseline), side_name(comparison.candidate)
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    percent = abs(ratio - 1) * 100
    low_percent, high_percent = (low - 1) * 100, (high - 1) * 100
    interval = f"{low_percent:+.1f} to {high_percent:+.1f} %"
    match comparison.verdict:
        case "SLOWER" if ratio < _RATIO_FROM:
            text = f"is {percent:.1f} % slower than {baseline}"
            interval = f"{low_percent:.1f} to {high_percent:.1f} %"
        case "SLOWER":
            text, interval = f"takes {ratio:.2f}x as long as {baseline}", f"{low:.2f} to {high:.2f}x"
        case "FASTER" if ratio > 1 / _RATIO_FROM:
            text = f"is {percent:.1f} % faster than {baseline}"
            interval = f"{-high_percent:.1f} to {-low_percent:.1f} % less time"
        case "FASTER":
            text = f"is {1 / ratio:.2f}x as fast as {baseline}"
            interval = f"{1 / high:.2f} to {1 / low:.2f}x"
        case "SAME":
            text = f"takes the same time as {baseline} within {margin * 100:.3g} %"
        case _:
            text = f"against {baseline} is {comparison.verdict}"
    excluded = f", {comparison.excluded} disturbed ones left out" if comparison.excluded else ""
    measured = f"{counted(processes, 'process', 'processes')}, {comparison.quads} quads{excluded}"
    return f"{candidate} {text} ({interval}, {measured})"


def side_name(measurement: Measurement) -> str:
    """Return the name without `alone`, where the other side shows that."""
    return measurement.name.removesuffix(" alone")
