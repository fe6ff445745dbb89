"""Words for what was measured: remarks on samples, reasons of verdicts, and what a comparison says."""

from __future__ import annotations

from collections.abc import Callable

from inductor_probe.model.bench import BenchResult, Comparison, Measurement
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Element, Variant
from inductor_probe.report.units import duration

_TIMES = 1.5
"""Beyond so many times as long, percent are hard to read."""
_CLAUSES = 3
_ABOVE_COPY = {
    "indirect": "it reads less than counted: its indices are loaded",
    "last-cache": "its data fit in the last cache, the copy's did not",
    "smaller-cache": "its data fit in a smaller cache than the copy's, or the machine was busy then",
    "fewer-bytes": "it reads less than counted (parts of a buffer), or the bytes are wrong",
}
_BELOW_COPY = {
    "indirect": "it reaches less than counted (its indices are loaded), or waits for each load",
    "arithmetic": "bound by arithmetic, by one thread or by dependent steps, or it moves more than counted",
}


def _bimodal(remark: Remark) -> str:
    numbers = remark.scalars
    share, name = numbers["share"], remark.subject.name
    low, high = (float(numbers[key]) * 1e6 for key in ("low_s", "high_s"))
    return (
        f"{name} is bimodal in process {numbers['process']}: {share:.0%} of its blocks are near "
        f"{low:.4g} us, {1 - float(share):.0%} near {high:.4g} us"
    )


def _drift(remark: Remark) -> str:
    change = float(remark.scalars.get("change") or 0)
    way = "slower" if change > 0 else "faster"
    name = remark.subject.name
    return f"times drift: {name} got {abs(change):.1%} {way} within a process; both sides share it"


def _autocorrelation(remark: Remark) -> str:
    numbers = remark.scalars
    return f"successive quads correlate: {numbers['autocorrelation']:.2f} in process {numbers['process']}"


def _processes_differ(remark: Remark) -> str:
    return f"processes differ: ratios {', '.join(f'{ratio:.3f}' for _, ratio in remark.numbers)}"


def _guard(remark: Remark) -> str:
    numbers = remark.scalars
    return f"{numbers['baseline']} took {numbers['low']:.3f} to {numbers['high']:.3f}x its own time"


def _disturbed(remark: Remark) -> str:
    numbers = remark.scalars
    return f"the machine is busy: {numbers['disturbed']} of {numbers['quads']} quads were disturbed"


def _above_copy(remark: Remark) -> str:
    reason = _ABOVE_COPY[str(remark.scalars.get("reason"))]
    return f"{remark.scalars.get('share'):.0%} of what a copy reaches: {reason}"


def _below_copy(remark: Remark) -> str:
    numbers = remark.scalars
    if numbers["reason"] == "launch":
        reason = f"launch-bound: {float(numbers['launch_s']) * 1e6:.2g} us is what starting it takes"
    else:
        reason = _BELOW_COPY[str(numbers["reason"])]
    return f"under 1% of what a copy reaches: {reason}"


def _above_matmul(remark: Remark) -> str:
    return (
        f"{remark.scalars.get('share'):.0%} of what a matrix product reaches: it suits the machine better "
        "than the square one that was measured, the machine was busy then, or the count is not of what it "
        "computes"
    )


BENCH_WORDS: dict[str, Callable[[Remark], str]] = {
    "bimodal-samples": _bimodal,
    "drift": _drift,
    "autocorrelation": _autocorrelation,
    "processes-differ": _processes_differ,
    "one-process": lambda remark: (
        f"only one process was run: at least {remark.scalars.get('fewest')} are needed"
    ),
    "guard-outside-margin": _guard,
    "disturbed-quads": _disturbed,
    "processes-disagree": lambda _: "processes disagree on which is faster",
    "too-few-quads": lambda remark: f"needs about {remark.scalars.get('seconds')} s more, or more processes",
    "too-few-processes": (
        lambda remark: f"processes differ too much: needs about {remark.scalars.get('processes')} of them"
    ),
    "near-margin": lambda _: "too near the margin to tell",
    "guards-timed-alone": (
        lambda _: "guards were timed by themselves: beside the rest of a call they are too little to tell"
    ),
    "above-copy-rate": _above_copy,
    "below-copy-rate": _below_copy,
    "above-matmul-rate": _above_matmul,
    "matmul-not-measured": (
        lambda remark: f"no matrix product of {remark.scalars.get('dtype')}: {remark.scalars.get('error')}"
    ),
    "roofline-not-measured": lambda remark: f"the roofline was not measured: {remark.scalars.get('error')}",
}


def result_sentence(result: BenchResult) -> str:
    """Say what all comparisons found in one sentence, what differs first."""
    wrong = [variant.name for variant in result.variants if not variant.correct]
    told = [found for found in result.comparisons if found.verdict in ("FASTER", "SLOWER")]
    same = [found for found in result.comparisons if found.verdict == "SAME"]
    open_ = [found for found in result.comparisons if found.verdict in ("UNDECIDED", "INVALID")]
    said = [clause(found, result.processes) for found in told[-_CLAUSES:]]
    if len(told) > _CLAUSES:
        said.append(f"{len(told) - _CLAUSES} more differ")
    if len(same) == 1:
        said.append(clause(same[0], result.processes, result.margin))
    elif same:
        said.append(f"{len(same)} others take the same time within {result.margin * 100:.3g} %")
    if len(open_) == 1:
        said.append(clause(open_[0], result.processes))
    elif open_:
        said.append(f"{len(open_)} comparisons are not decided")
    if wrong:
        said.append(f"{_listed(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong and not timed")
    if not said and result.alone:
        first = result.alone[0]
        said.append(f"{side_name(first)} takes {duration(first.median)} a call, and was compared to nothing")
    return "; ".join(said) + "." if said else "Nothing was compared."


def wrong_words(variant: Variant, remark_text: Callable[[Remark], str]) -> str:
    """Say what is wrong with a variant.

    `3 of 9 elements are wrong, the largest error is 0.25; the first, output 0[1, 2], is 1.25 instead of 1`.
    """
    said = []
    if variant.mismatches:
        error = "" if variant.max_error is None else f", the largest error is {variant.max_error:.3g}"
        said.append(f"{variant.mismatches:,} of {variant.elements:,} elements are wrong{error}")
    if variant.first_bad is not None and variant.expected is not None:
        index = f"[{', '.join(map(str, variant.first_bad))}]" if variant.first_bad else ""
        values = f"{_element(variant.value)} instead of {_element(variant.expected)}"
        said.append(f"the first, output {variant.first_bad_output}{index}, is {values}")
    said += map(remark_text, variant.remarks)
    return "; ".join(said) or "it does not agree with the reference"


def _element(value: Element) -> str:
    """Nine digits tell float32 values apart."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def clause(found: Comparison, processes: int, margin: float = 0.0) -> str:
    """Say what one comparison found: `k_v2 is 1.9 % slower than k (1.6 to 2.2 %, 3 processes, 412 quads)`."""
    a, b = side_name(found.baseline), side_name(found.candidate)
    low, high = (found.low - 1) * 100, (found.high - 1) * 100
    percent, off = f"{low:+.1f} to {high:+.1f} %", abs(found.ratio - 1) * 100
    match found.verdict:
        case "SLOWER" if found.ratio < _TIMES:
            said, sure = f"is {off:.1f} % slower than {a}", f"{low:.1f} to {high:.1f} %"
        case "SLOWER":
            said, sure = f"takes {found.ratio:.2f}x as long as {a}", f"{found.low:.2f} to {found.high:.2f}x"
        case "FASTER" if found.ratio > 1 / _TIMES:
            said, sure = f"is {off:.1f} % faster than {a}", f"{-high:.1f} to {-low:.1f} % less time"
        case "FASTER":
            said = f"is {1 / found.ratio:.2f}x as fast as {a}"
            sure = f"{1 / found.high:.2f} to {1 / found.low:.2f}x"
        case "SAME":
            said, sure = f"takes the same time as {a} within {margin * 100:.3g} %", percent
        case _:
            said, sure = f"against {a} is {found.verdict}", percent
    left_out = f", {found.excluded} disturbed ones left out" if found.excluded else ""
    return f"{b} {said} ({sure}, {_counted(processes, 'process')}, {found.quads} quads{left_out})"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}es"


def side_name(found: Measurement) -> str:
    """Return the name without `alone`, where it is clear from the other one."""
    return found.name.removesuffix(" alone")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
