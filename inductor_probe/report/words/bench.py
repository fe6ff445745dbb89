"""Words for comparisons: what they say of variants, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from inductor_probe.catalogue.templates import joined, listed
from inductor_probe.model.bench import OPERATORS, BenchResult
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import PRISTINE_CALLS, Element, Variant, not_compiled, wrong_groups
from inductor_probe.report.units import counted, duration, one_word
from inductor_probe.report.words.own_call import own_sentence
from inductor_probe.report.words.remarks import sentence

_RATIO_FROM = 1.5
"""A difference of this factor or more is a ratio; percent are hard to read there."""
_MOST_CLAUSES = 3


def answers(result: BenchResult) -> list[str]:
    """Return what was measured in a few sentences without their full stops, the most important first.

    The user's own call against eager comes first, the graph itself last, and differences before what is the
    same or not decided.
    """
    ranks = ("FASTER", "SLOWER", "SAME", "UNDECIDED", "INVALID")
    own = [own_sentence(result.own, result.margin)] if result.own else []
    ranked = sorted(result.comparisons, key=lambda one: (one.baseline == OPERATORS, ranks.index(one.verdict)))
    sentences = own + [clause(comparison, result.margin) for comparison in ranked[:_MOST_CLAUSES]]
    if more := ranked[_MOST_CLAUSES:]:
        counts = [(verdict, sum(one.verdict == verdict for one in more)) for verdict in ranks]
        words = ", ".join(f"{count} {_COUNTED[verdict]}" for verdict, count in counts if count)
        sentences.append(f"{counted(len(more), 'more comparison')}: {words}")
    if not sentences and result.alone:
        first = max(result.alone, key=lambda time: time.seconds)
        sentences.append(
            f"{side_name(first.name)} takes {duration(first.seconds)} a call; nothing to compare with"
        )
    return sentences


_COUNTED = {
    "FASTER": "faster",
    "SLOWER": "slower",
    "SAME": "the same",
    "UNDECIDED": "not decided",
    "INVALID": "invalid",
}


def result_sentence(result: BenchResult) -> str:
    """Return what all comparisons say in one line, wrong variants first."""
    wrong = [wrong_sentence(variants, sentence) for variants in wrong_groups(result.variants)]
    wrong += [right] if (right := right_beside_wrong(result.variants)) else []
    return "; ".join([*wrong, *answers(result)]) + "." if wrong or answers(result) else NOTHING


NOTHING = "Every variant is correct; no times were measured."


def wrong_sentence(variants: Sequence[Variant], remark_text: Callable[[Remark], str]) -> str:
    """Return what is wrong with variants whose outputs are the same.

    `k_v2 is WRONG in 3 of 9 elements: output 0[1, 2] is 1.25, expected 1; largest error 0.25 (call_v2 too)`.
    """
    variant, *others = variants
    too = f" ({listed([other.name for other in others])} too)" if others else ""
    if not_compiled(variant):
        return f"{variant.name} {wrong_words(variant, remark_text)}{too}"
    where = f" in {variant.mismatches:,} of {variant.elements:,} elements" if variant.mismatches else ""
    return f"{variant.name} is WRONG{where}: {wrong_words(variant, remark_text)}{too}"


def wrong_words(variant: Variant, remark_text: Callable[[Remark], str]) -> str:
    """Return what is wrong with a variant: `output 0[1, 2] is 1.25, expected 1; largest error 0.25`."""
    clauses = [first] if (first := first_wrong(variant)) else []
    if variant.mismatches and variant.max_error is not None:
        clauses.append(f"largest error {variant.max_error:.3g}")
    clauses += map(remark_text, variant.remarks)
    return "; ".join(clauses) or "it does not agree with the reference"


def first_wrong(variant: Variant) -> str:
    """Return the first wrong element, and what is right there: `output 0[1, 2] is 1.25, eager 1`."""
    if variant.first_bad is None or variant.expected is None:
        return ""
    index = f"[{', '.join(map(str, variant.first_bad))}]" if variant.first_bad else ""
    expected = _element(variant.expected)
    if variant.eager is None:
        right = f"expected {expected}"
    elif (eager := _element(variant.eager)) == expected:
        right = f"eager {eager}"
    else:
        right = f"eager {eager}, in float64 {expected}"
    return f"output {variant.first_bad_output}{index} is {_element(variant.value)}, {right}"


def right_beside_wrong(variants: Iterable[Variant]) -> str:
    """Return which edited variants are right where the call itself is not: `k_v3 is right`; else nothing."""
    variants = list(variants)
    if all(variant.correct for variant in variants if variant.name in PRISTINE_CALLS):
        return ""
    names = [variant.name for variant in variants if variant.correct and not variant.unedited]
    return f"{joined(names)} {'is' if len(names) == 1 else 'are'} right" if names else ""


def _element(value: Element) -> str:
    """Nine digits distinguish any two float32 values."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def clause(comparison: Comparison, margin: float) -> str:
    """Return what a comparison says: `k_v2 is 1.9 % slower than k (1.6 to 2.2 %)`."""
    baseline, candidate = (side_name(name) for name in (comparison.baseline, comparison.candidate))
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    percent = abs(ratio - 1) * 100
    low_percent, high_percent = (low - 1) * 100, (high - 1) * 100
    # -0.04 would be -0.0
    interval = f"{round(low_percent, 1) + 0.0:+.1f} to {round(high_percent, 1) + 0.0:+.1f} %"
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
        case "UNDECIDED":
            candidate, text = "no verdict for", f"{candidate} against {baseline}"
        case _:
            candidate, text = "invalid measurement of", f"{candidate} against {baseline}"
    if len(comparison.process_ratios) == 1:  # what processes differ by is not known
        interval = f"{ratio:.2f}x"
    reason = f": {sentence(comparison.reason)}" if comparison.reason else ""
    return f"{candidate} {text} ({interval}){reason}"


def next_steps(result: BenchResult, graph: str, places: Mapping[str, str], budget: float) -> list[str]:
    """Return what to do next, as what was found calls for it; at most two steps.

    `graph` is how commands name it, `places` where each variant is defined: `output_code_bench.py:97`, and
    `budget` how many seconds were measured.
    """

    def with_place(name: str) -> str:
        return f"{name} ({places[name]})" if name in places else name

    again = one_word(f"probe bench-kernel {graph}")
    rewrite = one_word(f"probe rewrite {graph}")
    verdict = one_word(f"probe verdict {graph} --details")
    details = f"{verdict} shows where the time of a call goes" if result.overheads else ""
    compared = [pair for pair in result.comparisons if pair.baseline != OPERATORS]
    if wrong := wrong_groups(result.variants):
        names = [variant.name for variants in wrong for variant in variants]
        if "call" in names:
            return [
                f"probe why {graph} has the decisions; probe whatif with one of them turned (--scalar NODE) "
                "says whether the result is right then"
            ]
        error = not_compiled(wrong[0][0])
        place = f"{names[0]} (output_code_bench.py:{error.number('line')})" if error else with_place(names[0])
        return [f"correct {place}, then {again}"]
    if not compared:
        times = {side_name(time.name).partition(" ")[0]: time.seconds for time in result.times}
        longest = max(result.kernels, key=lambda kernel: times.get(kernel, 0.0), default="call")
        edit = f"edit {with_place(f'{longest}_v2')}, or see {rewrite} for variants, then {again}"
        if once := [time for time in result.times if time.source == "once"]:
            again += one_word(" --kernel NAME")
            return [edit, f"{again} times one of those timed in one call only ({len(once)})"]
        return [edit, details] if details else [edit]
    ranks = ("INVALID", "UNDECIDED", "FASTER", "SLOWER", "SAME")
    first = min(compared, key=lambda pair: ranks.index(pair.verdict))
    reason = first.reason
    if reason and reason.code == "one-process" and isinstance(more := reason.number("seconds"), int):
        step = f"{again}{one_word(f' --budget {more}s')} measures in several processes"
    elif reason and reason.code == "too-few-quads" and isinstance(more := reason.number("seconds"), int):
        step = f"{again}{one_word(f' --budget {math.ceil(budget + 1.5 * more)}s')} measures for longer"
    elif reason and reason.code == "too-few-processes":
        step = again + one_word(f" --processes {reason.number('processes')}")
    elif first.verdict in ("INVALID", "UNDECIDED"):
        step = "probe doctor shows what disturbs this machine; measure again when that has ended"
    elif first.verdict == "FASTER":
        step = f"{again}{one_word(' --inputs random,zeros --threads 1,2')} shows whether that holds elsewhere"
    else:
        step = f"{rewrite} lists other variants"
    return [step, details] if details else [step]


def side_name(name: str) -> str:
    """Return the name of what was timed: `k alone #2` is the second launch of k, `k #2`."""
    return name.replace(" alone", "", 1)
