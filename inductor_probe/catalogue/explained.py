"""Entries of the catalogue as records that can be printed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inductor_probe.catalogue import KINDS, check_kinds, codes, kind_of
from inductor_probe.catalogue.entries import OF_ANY_KIND, By, Cause, Kind, Outcome, Source, Turn, always
from inductor_probe.catalogue.templates import in_prose
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.explanation import (
    ExplainedChange,
    ExplainedOperand,
    ExplainedOutcome,
    Explanation,
)
from inductor_probe.model.flip import example_of
from inductor_probe.model.setting import CONFIG


def explanations(code: str | None = None, kinds: Collection[DecisionKind] = ()) -> Iterator[Explanation]:
    """Yield what a code means in each kind that has it, of some kinds or of all; without a code all of them.

    Raises:
        NotFoundError: no entry has the code, or there is no such kind; near ones are offered.
    """
    check_kinds(kinds)
    chosen = [kind for kind in KINDS if not kinds or kind in kinds]
    known = (*codes(chosen), *(() if kinds else OF_ANY_KIND))
    code = code.strip("[]").lower() if code is not None else None
    if code is not None and code not in known:
        of_kinds = f" of {', '.join(chosen)}" if kinds else ""
        raise NotFoundError(f"no cause{of_kinds} has the code {code}", near_names(code, known))
    for kind in chosen:
        of_kind = kind_of(kind)
        yield from (_explanation(of_kind, cause) for cause in of_kind.causes if code in (None, cause.code))
    if not kinds:
        yield from (
            Explanation(any_code, None, "", (), sentence)
            for any_code, sentence in OF_ANY_KIND.items()
            if code in (None, any_code)
        )


def _explanation(kind: Kind, cause: Cause) -> Explanation:
    file, _, function = cause.at.partition(":")
    return Explanation(
        code=cause.code,
        kind=kind.code,
        decides=kind.decides,
        outcomes=tuple(_outcome(one, cause) for one in kind.outcomes if one.code in cause.outcomes.split()),
        sentence=in_prose(cause.sentence),
        short=in_prose(cause.short),
        file=f"torch/_inductor/{file}",
        function=function,
        tests=(cause.test,) if isinstance(cause.test, str) else cause.test,
        operands=tuple(
            ExplainedOperand(one.name, one.type, one.meaning, one.unit) for one in kind.operands_of(cause)
        ),
        changes=tuple(map(_change, cause.changes)),
        example=cause.example,
    )


def _outcome(outcome: Outcome, cause: Cause) -> ExplainedOutcome:
    sentence = cause.outcome_words.get(outcome.code, outcome.sentence)
    return ExplainedOutcome(outcome.code, cause.remark or outcome.remark, in_prose(sentence))


def _change(change: By | Source | Turn) -> ExplainedChange:
    sometimes = change.applies is not always
    match change:
        case By(code=name, value=value, effect=effect, differs=differs):
            tried = value if isinstance(value, str) else None
            return ExplainedChange("setting", f"{CONFIG}.{name}", tried, in_prose(effect), differs, sometimes)
        case Source(code=name, effect=effect, differs=differs):
            return ExplainedChange("source", name, None, in_prose(effect), differs, sometimes)
        case Turn(flip=flip):
            return ExplainedChange("flip", example_of(flip), sometimes=sometimes)
