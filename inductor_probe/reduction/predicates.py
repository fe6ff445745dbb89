"""What is to stay so: the predicates of `--keep`, of which `probe expect` is the language."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.model.expectation import EXPECTATION_KINDS, Expectation, expectation_of

PredicateKind: TypeAlias = Literal["expect", "fails", "recompiles", "wrong", "slow", "run"]
PREDICATE_KINDS: tuple[PredicateKind, ...] = get_args(PredicateKind)
_FORM = re.compile(r"(?P<negated>not )?\s*(?P<kind>\w+)(?:\s*:\s*(?P<text>.+))?", re.DOTALL)
_SLOW = re.compile(r">?=?\s*(?P<ratio>\d+(?:\.\d+)?)\s*(?:than eager)?")
_WITH_DECISIONS = ("cause", "no-copy", "vectorised")
_EXAMPLES = {
    "expect": "expect: --kernels 3",
    "slow": "slow: >=1.5 than eager",
    "run": "run: ./shows_it.sh",
}


class Predicate(Struct, frozen=True):
    """One of those that have to hold.

    Attributes:
        text: as it was written. negated: of `expect`: what is expected is known not to be so.
        expected: of `expect`, all of them. ratio: of `slow`, how many times as long as eager it takes.
        operator: of `wrong`: the one that is; the most wrong one if empty.
        command: of `run`; `{}` in it is the script, else it is the last word.
    """

    text: str
    kind: PredicateKind
    negated: bool = False
    expected: tuple[Expectation, ...] = ()
    ratio: float = 1.0
    operator: str = ""
    command: tuple[str, ...] = ()

    @property
    def is_built(self) -> bool:
        """Whether kernels have to be there: g++ compiles them."""
        return self.kind in ("wrong", "slow")

    @property
    def asks_decisions(self) -> bool:
        """Whether the recorders have to run."""
        return self.negated or any(one.kind in _WITH_DECISIONS for one in self.expected)


def predicate_of(text: str) -> Predicate:
    """Return a predicate: `wrong`, `not expect: --fused aten.roll+aten.tanh`.

    Raises:
        ProbeError: it means nothing.
    """
    match = _FORM.fullmatch(text.strip())
    kind = next((one for one in PREDICATE_KINDS if match and one == match["kind"]), None)
    if match is None or kind is None:
        known = [_EXAMPLES.get(one, one) for one in PREDICATE_KINDS]
        raise ProbeError(f"nothing is meant by --keep {text!r}", near_names(text, known))
    rest, example = (match["text"] or "").strip(), _EXAMPLES.get(kind, kind)
    wrong = ProbeError(f"invalid --keep {text!r}", f"write --keep {shlex.quote(example)}")
    if (bool(rest) != (kind in _EXAMPLES) and kind != "wrong") or (match["negated"] and kind != "expect"):
        raise wrong
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise wrong from error
    if kind == "expect":
        return Predicate(text, kind, bool(match["negated"]), expected=_expectations(words, wrong))
    if kind == "run":
        if Path(words[0]).is_file():  # it runs in another folder
            words[0] = str(Path(words[0]).absolute())
        return Predicate(text, kind, command=tuple(words))
    if kind != "slow":
        return Predicate(text, kind, operator=rest)
    speed = _SLOW.fullmatch(rest)
    if speed is None or float(speed["ratio"]) <= 1.0:
        raise wrong
    return Predicate(text, kind, ratio=float(speed["ratio"]))


def _expectations(words: list[str], wrong: ProbeError) -> tuple[Expectation, ...]:
    """Return what words of `probe expect` say: `--kernels 3 --no-extern`."""
    expected: list[Expectation] = []
    place = 0
    while place < len(words):
        name, _, value = words[place].removeprefix("--").partition("=")
        kind = next((one for one in EXPECTATION_KINDS if one == name), None)
        if kind is None or not words[place].startswith("--"):
            raise ProbeError(
                f"nothing is expected by {words[place]}",
                near_names(name, [f"--{one}" for one in EXPECTATION_KINDS]),
            )
        place += 1
        if not value and place < len(words) and not words[place].startswith("--"):
            value, place = words[place], place + 1
        expected.append(expectation_of(kind, value))
    if not expected:
        raise wrong
    return tuple(expected)
