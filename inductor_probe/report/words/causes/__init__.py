"""The words of each kind of decision: a module a kind, a line here. `sentences.py` makes texts of them."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.model.decision import DecisionKind
from inductor_probe.report.words.causes import (
    configs,
    copies,
    cudagraphs,
    fallback,
    freezing,
    fusion,
    index_width,
    layout,
    loops,
    realization,
    reduction,
    rewrite,
    threads,
    tiling,
    vectorisation,
)
from inductor_probe.report.words.causes.rows import KindWords

WORDS: Mapping[DecisionKind, KindWords] = {
    "layout": layout.WORDS,
    "copy": copies.WORDS,
    "realization": realization.WORDS,
    "vectorisation": vectorisation.WORDS,
    "fallback": fallback.WORDS,
    "reduction": reduction.WORDS,
    "index-width": index_width.WORDS,
    "threads": threads.WORDS,
    "rewrite": rewrite.WORDS,
    "cudagraphs": cudagraphs.WORDS,
    "freezing": freezing.WORDS,
    "fusion": fusion.WORDS,
    "loops": loops.WORDS,
    "tiling": tiling.WORDS,
    "configs": configs.WORDS,
}
