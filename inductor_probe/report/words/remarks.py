"""The sentence of each remark, and repeated ones folded into one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inductor_probe.harness.remarks import TYPES as HARNESS_CODES
from inductor_probe.harness.remarks import sentence_of
from inductor_probe.model.remark import Remark, by_cost
from inductor_probe.report.words import layouts
from inductor_probe.report.words.bench import BENCH_WORDS
from inductor_probe.report.words.machine import MACHINE_WORDS, machine_sentence


def _harness_sentence(remark: Remark) -> str:
    """Bench files print the same sentences, and stand alone: `harness/remarks.py` has them."""
    return sentence_of(remark.code, remark.subject.name, dict(remark.numbers))


def _launch_mismatch(remark: Remark) -> str:
    place = f"{remark.evidence[0]}: " if remark.evidence else ""
    return f"{place}{remark.subject.name}: {remark.number('text')}"


REMARK_WORDS: dict[str, Callable[[Remark], str]] = {
    **dict.fromkeys(HARNESS_CODES, _harness_sentence),
    **BENCH_WORDS,
    **dict.fromkeys(MACHINE_WORDS, machine_sentence),
    "launch-mismatch": _launch_mismatch,
    "reported": lambda remark: str(remark.number("text")),
    "noncontiguous-access": layouts.noncontiguous_access,
    "short-contiguous-runs": layouts.short_contiguous_runs,
    "layout-change": layouts.layout_change,
}
_NAMES = ("buffer", "written")
"""Values that are names: remarks that differ in nothing else are one line."""
_MOST_NAMED = 3


def sentence(remark: Remark) -> str:
    """Return what a remark says."""
    guess = " (inferred from the IR: no kernel is linked)" if remark.knowledge == "inferred" else ""
    try:
        return f"{REMARK_WORDS[remark.code](remark)}{guess}"
    except (KeyError, ValueError, TypeError, IndexError):  # of a file whose remark has other values
        values = ", ".join(f"{name} {value}" for name, value in remark.numbers)
        return f"{remark.code} ({values})"


def folded_sentences(remarks: Iterable[Remark]) -> list[str]:
    """Return a line for each remark, most bytes at stake first; the layers of a network share one.

    `op3 reads buf1 non-contiguously (...); the same: op9 (buf7), op15 (buf13) and 9 more`.
    """
    groups: dict[tuple[object, ...], list[Remark]] = {}
    for remark in sorted(dict.fromkeys(remarks), key=by_cost):
        numbers = tuple((name, value) for name, value in remark.numbers if name not in _NAMES)
        groups.setdefault((remark.code, remark.kind, remark.knowledge, numbers), []).append(remark)
    costs = {key: _total(members) for key, members in groups.items()}
    ordered = sorted(groups, key=lambda key: 1 if costs[key] is None else -(costs[key] or 0))
    return [_folded(groups[key]) for key in ordered]


def _total(remarks: Iterable[Remark]) -> int | None:
    costs = [remark.cost for remark in remarks]
    return None if None in costs else sum(filter(None, costs))


def _folded(remarks: list[Remark]) -> str:
    first, *others = remarks
    if not others:
        return sentence(first)
    named = [f"{other.subject.name} ({other.number('buffer')})" for other in others[:_MOST_NAMED]]
    more = len(others) - len(named)
    return f"{sentence(first)}; the same: {', '.join(named)}{f' and {more} more' if more else ''}"
