"""The sentence of each remark, and repeated ones folded into one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from inductor_probe.harness.remarks import TYPES as HARNESS_CODES
from inductor_probe.harness.remarks import sentence_of
from inductor_probe.model.remark import Remark, RemarkKind, by_cost
from inductor_probe.report.words import kernels, launches, layouts, runs
from inductor_probe.report.words.bench import BENCH_WORDS
from inductor_probe.report.words.machine import MACHINE_WORDS, machine_sentence
from inductor_probe.report.words.subjects import MOST_NAMED, names


def _harness_sentence(remark: Remark) -> str:
    """Bench files print the same sentences, and stand alone: `harness/remarks.py` has them."""
    return sentence_of(remark.code, remark.subject.name, dict(remark.numbers))


_UNNAMED = frozenset((*kernels.SENTENCES, *launches.SENTENCES))
"""Words that do not say which kernel they are about: on its own page that is said already."""
REMARK_WORDS: dict[str, Callable[[Remark], str]] = {
    **dict.fromkeys(HARNESS_CODES, _harness_sentence),
    **BENCH_WORDS,
    **dict.fromkeys(MACHINE_WORDS, machine_sentence),
    "reported": lambda remark: str(remark.number("text")),
}
for _sentences in (kernels.SENTENCES, launches.SENTENCES, layouts.SENTENCES, runs.SENTENCES):
    REMARK_WORDS.update((str(code), words) for code, words in _sentences.items())
_NAMES = ("buffer", "written")
"""Values that are names: remarks that differ in nothing else are one line."""


def sentence(remark: Remark, about: str | None = None) -> str:
    """Return what a remark says; one about the kernel `about` does not name it again."""
    try:
        text = REMARK_WORDS[remark.code](remark)
    except (KeyError, ValueError, TypeError, IndexError):  # of a file whose remark has other values
        values = ", ".join(f"{name} {value}" for name, value in remark.numbers)
        return f"{remark.code} ({values})"
    if remark.code in _UNNAMED and remark.subject.type == "kernel" and remark.subject.name != about:
        place = f"{remark.evidence[0]}: " if remark.code in launches.SENTENCES and remark.evidence else ""
        return f"{place}{names(remark)}: {text}"
    return text


def folded(remarks: Iterable[Remark], about: str | None = None) -> list[tuple[RemarkKind, str]]:
    """Return kind and text of a line for each remark, hazards first, then most bytes at stake.

    The kernels and the layers of a network share one: `triton_poi_fused_add_0, triton_poi_fused_mul_1 and 3
    more: indices are 64 bits wide`; `op3 reads buf1 non-contiguously (...); the same: op9 (buf7), op15
    (buf13) and 9 more`.
    """
    groups: dict[tuple[object, ...], list[Remark]] = {}
    for remark in sorted(dict.fromkeys(remarks), key=by_cost):
        numbers = tuple((name, value) for name, value in remark.numbers if name not in _NAMES)
        key = (remark.code, remark.kind, remark.knowledge, remark.subject.type, numbers)
        groups.setdefault(key, []).append(remark)
    merged = [(_merged(members), members) for members in groups.values()]
    merged.sort(key=lambda pair: by_cost(pair[0]))
    return [(one.kind, _line(one, members, about)) for one, members in merged]


def _merged(remarks: list[Remark]) -> Remark:
    """Return one remark about the subjects of all."""
    first, *others = remarks
    also = (*first.also, *(subject for remark in others for subject in remark.subjects))
    costs = [remark.cost for remark in remarks]
    return replace(first, also=also, cost=None if None in costs else sum(filter(None, costs)))


def _line(merged: Remark, remarks: list[Remark], about: str | None) -> str:
    first, *others = remarks
    if not others or merged.subject.type == "kernel":
        return sentence(merged, about)
    named = [f"{other.subject.name} ({other.number('buffer')})" for other in others[:MOST_NAMED]]
    more = len(others) - len(named)
    return f"{sentence(first)}; the same: {', '.join(named)}{f' and {more} more' if more else ''}"
