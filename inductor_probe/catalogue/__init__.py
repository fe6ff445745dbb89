"""The catalogue: each cause for which torch decides is one entry, and all about causes is made of that.

A module a kind of decision, with its outcomes, operands and causes as data (`entries.py` has the records):
the sentences of `probe why`, what is a missed optimisation, what changes it, `probe explain`, the page of
causes in the documentation, the JSON Schema, the completion of `--kind`, and what a recorder may write down.
A new cause is one entry, and a program in `tests/proving_ground`.

What was decided here:

- A kind is imported when something of it is first asked for: a verb that shows no decision loads none.
- It lies below `analysis`, `capture` and `report`, and knows decisions alone. A condition that needs the
  graph is a name here, and a function in `analysis/causes/conditions.py`.
- A cause in a file is text: one that this version has no entry for is shown with its code and operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module

from inductor_probe.catalogue.entries import FLIP, OF_ANY_KIND, TYPES, Cause, Kind, Operand
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.decision import Decision, DecisionKind
from inductor_probe.model.decision import Operand as Value
from inductor_probe.model.remark import RemarkKind

KINDS: Mapping[DecisionKind, str] = {
    "layout": "layout",
    "copy": "copies",
    "concatenation": "concatenation",
    "casts": "casts",
    "arguments": "arguments",
    "divisions": "divisions",
    "realization": "realization",
    "vectorisation": "vectorisation",
    "fallback": "fallback",
    "reduction": "reduction",
    "index-width": "index_width",
    "threads": "threads",
    "rewrite": "rewrite",
    "cudagraphs": "cudagraphs",
    "freezing": "freezing",
    "fusion": "fusion",
    "loops": "loops",
    "tiling": "tiling",
    "configs": "configs",
}
"""Each kind of decision and its module."""


@cache
def kind_of(code: DecisionKind) -> Kind:
    """Return a kind of decision."""
    kind: Kind = import_module(f"{__name__}.{KINDS[code]}").KIND
    return kind


@cache
def causes_of(kind: DecisionKind) -> Mapping[str, Cause]:
    """Return the causes of a kind by their codes."""
    return {cause.code: cause for cause in kind_of(kind).causes}


def kinds_with(code: str) -> tuple[DecisionKind, ...]:
    """Return the kinds that have a cause; raise NotFoundError, with near names, where none has."""
    kinds = tuple(kind for kind in KINDS if code in causes_of(kind))
    if not kinds:
        raise NotFoundError(f"no cause has the code {code}", near_names(code, codes()))
    return kinds


def check_kinds(kinds: Iterable[str]) -> None:
    """Raise NotFoundError, with near names, where one of them is no kind of decision."""
    for kind in kinds:
        if kind not in KINDS:
            raise NotFoundError(f"unknown kind of decision {kind}", near_names(kind, KINDS))


def remark_of(decision: Decision) -> RemarkKind:
    """Return LLVM's word for a decision: that of its cause, else of its outcome."""
    cause = causes_of(decision.kind).get(decision.cause)
    if cause is not None and cause.remark is not None:
        return cause.remark
    outcomes = kind_of(decision.kind).outcomes
    return next((one.remark for one in outcomes if one.code == decision.outcome), "analysis")


def codes(kinds: Iterable[DecisionKind] = tuple(KINDS)) -> tuple[str, ...]:
    """Return the codes of all causes of some kinds, each once."""
    return tuple(dict.fromkeys(code for kind in kinds for code in causes_of(kind)))


@cache
def causes_by_test(kind: DecisionKind, at: str = "") -> Mapping[str, str]:
    """Return the causes that a function or a file of torch decides by a test, by its text; of any without."""
    return {
        test: cause.code
        for cause in kind_of(kind).causes
        if not at or at in cause.at.split(":")
        for test in ((cause.test,) if isinstance(cause.test, str) else cause.test)
    }


def faults_of(decision: Decision) -> Iterator[str]:
    """Yield what of a decision its entry does not have: cause, outcome, an operand, or its type."""
    declared = _declared(decision.kind, decision.cause)
    what = f"{decision.kind}: {decision.cause}"
    if declared is None:
        yield f"{what} is not in the catalogue"
        return
    cause = causes_of(decision.kind).get(decision.cause)
    if cause is not None and decision.outcome not in cause.outcomes.split():
        yield f"{what} does not lead to {decision.outcome}"
    for name, value in decision.operands:
        operand = declared.get(name)
        if operand is None:
            yield f"{what} has no operand {name}"
        elif not _is_of_type(value, operand):
            yield f"{what}: {name} is {value!r}, not of type {operand.type}"


@cache
def _declared(kind: DecisionKind, code: str) -> Mapping[str, Operand] | None:
    of_kind, cause = kind_of(kind), causes_of(kind).get(code)
    if cause is not None:
        operands = of_kind.operands_of(cause)
    elif code in OF_ANY_KIND:
        operands = (*of_kind.operands, FLIP)
    else:
        return None
    return {operand.name: operand for operand in operands}


def _is_of_type(value: Value, operand: Operand) -> bool:
    return type(value) in TYPES[operand.type]
