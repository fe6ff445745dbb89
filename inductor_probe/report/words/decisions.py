"""Sentences of decisions, made of their entries in the catalogue.

`op0 is scalar: its loop x2 has 3 steps, fewer than 4 (a quarter of a vector of 16), and ...`. A
code without an entry is shown with its operands: `op0 is scalar: too-deep (depth 3)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inductor_probe.catalogue import causes_of, kind_of
from inductor_probe.catalogue.entries import OF_ANY_KIND, By, Source
from inductor_probe.catalogue.templates import MOST_SUBJECTS, fill, joined, listed
from inductor_probe.model.cause import TURN, Change
from inductor_probe.model.decision import Decision, DecisionKind, Operand, TorchFrame, TorchTest
from inductor_probe.model.setting import CONFIG, Setting
from inductor_probe.report.units import bytes_text

_MISSING = (KeyError, ValueError, TypeError, IndexError)
"""What a template raises over operands that it does not have: of another torch, or a damaged file."""


_MOST_VALUES = 6
"""Values of a list of operands that are shown; `--json` has all."""


def sentence(decision: Decision, names: Sequence[str] = ()) -> str:
    """Return what was decided, why, and its code; `names` are what its sides are called, else their nodes."""
    try:
        outcome = fill(_outcome_sentence(decision), _values(decision, names))
    except _MISSING:
        outcome = f"{_named(tuple(names) or names_of(decision))}: {decision.kind} {decision.outcome}"
    cause = cause_sentence(decision, names)
    return f"{outcome}: {cause}{'' if cause.startswith(decision.cause) else code_text(decision)}"


def code_text(decision: Decision) -> str:
    """` [few-shared-bytes]`, behind what it is the code of; nothing of a code that is shown as it is."""
    known = decision.cause in OF_ANY_KIND or decision.cause in causes_of(decision.kind)
    return f" [{decision.cause}]" if known else ""


def cause_sentence(decision: Decision, names: Sequence[str] = ()) -> str:
    """Return why it was decided so; `names` as for `sentence`."""
    try:
        if text := _of_any_kind(decision):
            return text
        return fill(causes_of(decision.kind)[decision.cause].sentence, _values(decision, names))
    except _MISSING:
        return _coded(decision)


def short_cause(decision: Decision) -> str:
    """Return the cause in a few words: `inner range 3 < 16/4 with 2 operations`."""
    try:
        if text := _of_any_kind(decision):
            return text
        return fill(causes_of(decision.kind)[decision.cause].short, _values(decision))
    except _MISSING:
        return _coded(decision)


def _of_any_kind(decision: Decision) -> str:
    """`asked for by --scalar op0`, or a test as torch has it: of causes that decisions of each kind have."""
    if decision.cause == "turned":
        return f"asked for by --{decision.operand('flip')}"
    if decision.cause != "unlisted-test":
        return ""
    return test_text(decision.tests[-1]) if decision.tests else "which test of torch's decided was not seen"


def test_text(test: TorchTest) -> str:
    """`op_num < 10 is true (2, 10)`; of a value that is no number its truth alone."""
    values = [value for value in test.values if not isinstance(value, bool)]
    shown = f" ({', '.join(f'{value:g}' if isinstance(value, float) else str(value) for value in values)})"
    return f"{test.text} is {str(test.truth).lower()}{shown if values else ''}"


def tests_texts(decision: Decision) -> list[str]:
    """Return the tests because of which torch decided so: comparisons of numbers first, the last before."""
    latest = reversed(decision.tests)
    return [*map(test_text, sorted(latest, key=lambda test: not {*map(type, test.values)} <= {int, float}))]


def change_text(change: Change, decision: Decision) -> str:
    """Return what to change, its present value, what it does, and whether results differ by that."""
    values = {**_values(decision), **dict(change.operands)}
    if change.code == TURN:
        return f"probe whatif SCRIPT {values['option']}: for this alone"
    try:
        effect = fill(_effect(decision, change.code), values)
    except _MISSING:
        effect = "" if change.setting else change.code
    differs = " [results may differ]" if change.differs else ""
    if change.setting is None:
        return f"{effect}{differs}"
    return f"{setting_text(change.setting)}{': ' if effect else ''}{effect}{differs}"


def setting_text(setting: Setting) -> str:
    """`torch._inductor.config.cpp.simdlen = None (1 in this dump)`."""
    present = {None: "its value is not in this dump", "default": "not set in this dump"}
    offered = "" if setting.offered is None else f" = {setting.offered}"
    return f"{setting.name}{offered} ({present.get(setting.value, f'{setting.value} in this dump')})"


def short_setting(setting: Setting) -> str:
    """`cpp.simdlen = None`, for a line in a table."""
    name = setting.name.removeprefix(f"{CONFIG}.")
    return name if setting.offered is None else f"{name} = {setting.offered}"


def short_change(change: Change) -> str:
    """`--scalar op0`, or `source`, of a change that is no setting, for a line in a table."""
    return str(dict(change.operands)["option"]) if change.code == TURN else "source"


def place_text(decision: Decision) -> str:
    """`TilingSelect.select_tiling (torch/_inductor/codegen/cpp.py:4080)`: the test, where it was seen."""
    place = decision.tests[-1].place if decision.tests else decision.place
    return _frame(place) if place is not None else ""


def operand_texts(decision: Decision) -> list[str]:
    """`range 3`, `size (4, 3, 8)`: what torch compared, and what else was recorded with it.

    The function that asked is the place where the decision was taken, mostly: it is said once.
    """
    return [
        f"{name.replace('_', ' ')} {_text(_operand(name, value))}"
        for name, value in decision.operands
        if value != () and not (name == "function" and decision.place and value == decision.place.function)
    ]


def kind_words(kind: DecisionKind) -> str:
    """`loop order` for `loop-order`."""
    return kind.replace("-", " ")


def names_of(decision: Decision) -> tuple[str, ...]:
    """Return what the sides of a decision are called: a fused node by the names of its nodes, `op3_op4`."""
    return tuple("_".join(group) for group in decision.subjects)


def _outcome_sentence(decision: Decision) -> str:
    cause = causes_of(decision.kind).get(decision.cause)
    if cause is not None and decision.outcome in cause.outcome_words:
        return cause.outcome_words[decision.outcome]
    sentences = {outcome.code: outcome.sentence for outcome in kind_of(decision.kind).outcomes}
    return sentences[decision.outcome]


def _effect(decision: Decision, code: str) -> str:
    changes = causes_of(decision.kind)[decision.cause].changes
    effects = {one.code: one.effect for one in changes if isinstance(one, By | Source)}
    return effects[code]


def _values(decision: Decision, names: Sequence[str] = ()) -> dict[str, Any]:
    operands = {name: _operand(name, value) for name, value in decision.operands}
    sides = tuple(names or names_of(decision)) or ("the kernel",)
    values: dict[str, Any] = {
        "subject": _named(sides if len(decision.subjects) != 1 or names else decision.subjects[0]),
        "n": len(sides) if len(decision.subjects) != 1 or names else len(decision.subjects[0]),
        "first": sides[0],
        "second": sides[-1],
        "others": _named(sides[1:]) if len(sides) > 1 else None,
        "function": decision.place.function if decision.place else None,
        **operands,
    }
    return {**values, **kind_of(decision.kind).derived(operands)}


def _named(names: Sequence[str]) -> str:
    rest = [f"{len(names) - MOST_SUBJECTS} more"] if len(names) > MOST_SUBJECTS else []
    return joined([*names[:MOST_SUBJECTS], *rest]) if names else "?"


def _operand(name: str, value: Operand) -> Any:
    if name.endswith("bytes") and isinstance(value, int) and not isinstance(value, bool):
        return bytes_text(value)
    return value


def _text(value: Any) -> str:
    """Return an operand as text: of a list of names the first ones, an empty text as `-`."""
    if isinstance(value, tuple):
        if len({*value}) == 1 and len(value) > 1 and not value[0].isdecimal():
            return f"{len(value)} times {value[0] or '-'}"
        values = listed([item or "-" for item in value], _MOST_VALUES)
        return values if len(value) == 1 else f"({values})"
    return str(value)


def _coded(decision: Decision) -> str:
    """`few-shared-bytes (shared bytes 4, threshold 10)`."""
    operands = ", ".join(operand_texts(decision))
    return f"{decision.cause} ({operands})" if operands else decision.cause


def _frame(frame: TorchFrame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})"
