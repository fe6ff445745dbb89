"""Words for kernels: their loop nests and the remarks about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inductor_probe.model.code import NestFeature
from inductor_probe.model.remark import Remark, RemarkCode
from inductor_probe.report.units import bytes_text
from inductor_probe.report.words.subjects import MOST_NAMED, names, verb

FEATURES: Mapping[NestFeature, str] = {
    "indirect-load": "indirect loads",
    "atomic-add": "atomic adds",
    "random-number": "random numbers",
    "division-in-index": "% or / in an index",
    "float64": "64-bit floats",
    "reversed-access": "reversed accesses",
    "strided-access": "strided accesses",
}


def _scalar_loops(remark: Remark) -> str:
    scalar, nests = remark.number("scalar"), remark.number("nests")
    nest = "loop nest" if nests == 1 else "loop nests"
    text = f"{scalar} of {nests} {nest} {'is' if scalar == 1 else 'are'} scalar"
    return f"{text}{_cost(remark)}; the dump does not record why"


def _int64_indices(remark: Remark) -> str:
    return f"indices are 64 bits wide{_cost(remark)}"


def _reduction_hint(remark: Remark) -> str:
    return f"reduction hint {remark.number('hint')}{_cost(remark)}"


def _unaligned_pointers(remark: Remark) -> str:
    pointers = remark.names("pointers")
    count = f"{len(pointers)} of {remark.number('of')} pointers"
    are = "is" if len(pointers) == 1 else "are"
    return f"{count} {are} not promised to be aligned to 16 bytes{_cost(remark)}: {', '.join(pointers)}"


def _fallback(remark: Remark) -> str:
    nodes = names(remark)
    subjects = f"{len(remark.subjects)} nodes ({nodes})" if len(remark.subjects) > MOST_NAMED else nodes
    kernel = remark.number("kernel") or "a library kernel"
    cost = f" ({bytes_text(remark.cost)} read and written)" if remark.cost is not None else ""
    return f"{subjects} {verb(remark, 'falls')} back to {kernel}{cost}"


def _cost(remark: Remark) -> str:
    if remark.cost is None:
        return ""
    does = "kernel reads and writes" if len(remark.subjects) == 1 else "kernels read and write"
    return f" ({does} {bytes_text(remark.cost)})"


SENTENCES: Mapping[RemarkCode, Callable[[Remark], str]] = {
    "scalar-loops": _scalar_loops,
    "int64-indices": _int64_indices,
    "reduction-hint": _reduction_hint,
    "unaligned-pointers": _unaligned_pointers,
    "no-launch": lambda _: "the wrapper has no launch of it",
    "no-node": lambda _: "no scheduler node is linked to it",
    "fallback": _fallback,
}
