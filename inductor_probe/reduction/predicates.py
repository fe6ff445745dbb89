"""What is to stay so: the predicates of `--keep`, of which `probe expect` is the language."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.model.expectation import EXPECTATION_KINDS, Expectation, expectation_of
from inductor_probe.model.flip import FLIP_KINDS, Flip, flip_of

PredicateKind: TypeAlias = Literal["expect", "fails", "recompiles", "wrong", "slow", "run"]
PREDICATE_KINDS: tuple[PredicateKind, ...] = get_args(PredicateKind)
_FORM = re.compile(r"(?P<negated>not )?\s*(?P<kind>\w+)(?:\s*:\s*(?P<text>.+))?", re.DOTALL)
_SLOW = re.compile(r">?=?\s*(?P<ratio>\d+(?:\.\d+)?)\s*(?:than (?:eager|(?P<other>-.+)))?", re.DOTALL)
_WITH_DECISIONS = ("cause", "no-copy", "vectorised")
_EXAMPLES = {
    "expect": "expect: --kernels 3",
    "slow": "slow: >=1.5 than eager",
    "run": "run: ./shows_it.sh",
}


class OtherWay(Struct, frozen=True):
    """How a script is run to compare its time: with settings, variables, decisions turned, another build."""

    settings: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    flips: tuple[Flip, ...] = ()
    python: Path | None = None


class Predicate(Struct, frozen=True):
    """One of those that have to hold.

    Attributes:
        text: as it was written. negated: of `expect`: what is expected is known not to be so.
        expected: of `expect`, all of them. ratio: of `slow`, how many times as long it takes
            as the script does the `other` way; as eager, if that is None.
        operator: of `wrong`: the one that is; the most wrong one if empty.
        command: of `run`; `{}` in it is the script, else it is the last word.
    """

    text: str
    kind: PredicateKind
    negated: bool = False
    expected: tuple[Expectation, ...] = ()
    ratio: float = 1.0
    other: OtherWay | None = None
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


class Shown(Struct, frozen=True):
    """What a script showed.

    Attributes:
        holds: whether all predicates hold. says: a sentence for each that was asked.
        failure: of a compile: stage, exception, message without what varies.
        causes: operators that are wrong; causes of decisions that are not as expected.
    """

    holds: bool
    says: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()


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
    other = _other_way(shlex.split(speed["other"]), wrong) if speed["other"] else None
    return Predicate(text, kind, ratio=float(speed["ratio"]), other=other)


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield options with their values, empty where they have none: `--kernels 3 --no-extern`.

    Raises:
        ProbeError: a word is neither.
    """
    place = 0
    while place < len(words):
        name, _, value = words[place].partition("=")
        if not name.startswith("--"):
            raise ProbeError(f"nothing is meant by {words[place]}", "options begin with --")
        place += 1
        if not value and place < len(words) and not words[place].startswith("--"):
            value, place = words[place], place + 1
        yield name.removeprefix("--"), value


def _other_way(words: list[str], wrong: ProbeError) -> OtherWay:
    """Return what words of `probe whatif` say, or a build of torch: `--set X=Y --python PATH`."""
    named: dict[str, list[tuple[str, str]]] = {"set": [], "env": []}
    flips, python = list[Flip](), None
    for name, value in _pairs(words):
        kind = next((one for one in FLIP_KINDS if one == name), None)
        if kind is not None:
            flips.append(flip_of(kind, value))
        elif name in named and "=" in value:
            named[name].append((value.partition("=")[0], value.partition("=")[2]))
        elif name == "python" and value:
            python = Path(value).absolute()
        else:
            raise wrong
    return OtherWay(tuple(named["set"]), tuple(named["env"]), tuple(flips), python)


def _expectations(words: list[str], wrong: ProbeError) -> tuple[Expectation, ...]:
    """Return what words of `probe expect` say: `--kernels 3 --no-extern`."""
    expected: list[Expectation] = []
    for name, value in _pairs(words):
        kind = next((one for one in EXPECTATION_KINDS if one == name), None)
        if kind is None:
            known = [f"--{one}" for one in EXPECTATION_KINDS]
            raise ProbeError(f"nothing is expected by --{name}", near_names(f"--{name}", known))
        expected.append(expectation_of(kind, value))
    if not expected:
        raise wrong
    return tuple(expected)
