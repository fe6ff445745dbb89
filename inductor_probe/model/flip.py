"""A decision of the compiler turned by name: which one, about what, and what became of it.

A `Flip` is what `--scalar op0` of `probe dump` asks for. `capture/flips/` turns the decision at the function
of torch that takes it, for that subject only, and writes down in the manifest what came of it (`FlipResult`).
The text of a flip is that of its option without the dashes, and is read by one function:

    scalar op0                      no-fuse op3,op4             layout buf3=channels_last
    realize add_3                   threads 1                   split buf2=4
    scalar model__0_forward_1.0:op0             in that graph only; in each graph that has op0 without it

Subjects are scheduler nodes, buffers and FX nodes. A fused node (`op3_op4`) is all of its nodes. Names are
those of the dump that they were read in; `origins` keep what they mean there, since a value that is realised,
or inlined, numbers all later buffers and nodes anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.model.decision import Decision, DecisionKind, Operand, Outcome, TorchFrame

FlipKind: TypeAlias = Literal[
    "vectorise", "scalar", "fuse", "no-fuse", "layout", "realize", "inline", "reduction-hint", "split",
    "persistent", "looped", "index-dtype", "threads",
]  # fmt: skip
FLIP_KINDS: tuple[FlipKind, ...] = get_args(FlipKind)

FlipOutcome: TypeAlias = Literal["applied", "already-so", "refused", "not-met"]
"""What became of a flip: the decision was turned; torch decided so by itself; torch could not; or no such
decision was taken about the subject."""

FlipReason: TypeAlias = Literal[
    "no-graph", "compile-failed", "no-subject", "same-subject", "inlined-by-flip", "without-node",
    "extern-kernel", "other-device", "no-reduction", "not-decided", "not-fusable", "same-node",
    "dtype-not-vectorisable", "no-contiguous-loop", "a-view", "not-a-value", "needed-as-buffer",
    "layout-fixed", "layout-required", "layout-of-another-rank", "reduction-not-split",
    "welford-parts-in-cpp", "too-many-parts", "tile-not-known", "indices-exceed-int32", "little-work",
]  # fmt: skip
"""Why a flip was refused or not met; `operands` of the `FlipResult` go with it.

- not met: `no-graph`: near (names of graphs). `compile-failed`: torch failed before it was decided.
  `no-subject`: subject, near (names that there are). `same-subject`: node: both names mean it.
  `inlined-by-flip`: subject, flip: another flip of the same dump took its buffer away. `without-node`:
  subject: an FX node whose value is in no buffer.
  `extern-kernel`: subject, kernel: it calls a function of a library or of ATEN. `other-device`: subject
  (none: all of the graph), device, language: of the only kernels of which it is decided. `no-reduction`:
  subject. `not-decided`: `decision` is the last one of the kind about it, where there is one.
- `not-fusable`: `decision` kept the pair apart. `same-node`: they were joined in another way than as a pair.
- `dtype-not-vectorisable`: dtypes. `no-contiguous-loop`: torch finds no loop to vectorise.
- `a-view`, `not-a-value`: it has no value in a loop. `needed-as-buffer`: buffer; `decision` realised it.
- `layout-fixed`: buffer: of an extern kernel, or within another. `layout-required`: buffer, function: it is
  made in order to have certain strides. `layout-of-another-rank`: dimensions.
- `reduction-not-split`: type. `welford-parts-in-cpp`: parts: its C++ backend combines none of mean and
  variance in one pass. `too-many-parts`: parts, elements, threshold: a part of fewer elements is no
  reduction. `tile-not-known`: elements. `indices-exceed-int32`: elements.
- `little-work`: threads, min_chunk_size: torch divides no loop among that many.
"""


class _Form(NamedTuple):
    """What a kind takes: how many subjects (`()`: none is needed), and which values."""

    subjects: tuple[int, ...]
    values: tuple[str, ...] | type[int] | None
    decides: DecisionKind
    example: str


_FORMS: Mapping[FlipKind, _Form] = {
    "vectorise": _Form((1,), None, "vectorisation", "op0"),
    "scalar": _Form((1,), None, "vectorisation", "op0"),
    "fuse": _Form((2,), None, "fusion", "op3,op4"),
    "no-fuse": _Form((2,), None, "fusion", "op3,op4"),
    "layout": _Form((1,), ("channels_last", "contiguous"), "layout", "buf3=channels_last"),
    "realize": _Form((1,), None, "realization", "add_3"),
    "inline": _Form((1,), None, "realization", "buf2"),
    "reduction-hint": _Form((0, 1), ("INNER", "OUTER", "OUTER_TINY", "DEFAULT"), "reduction", "buf2=INNER"),
    "split": _Form((0, 1), int, "reduction", "buf2=4"),
    "persistent": _Form((0, 1), None, "reduction", "op2"),
    "looped": _Form((0, 1), None, "reduction", "op2"),
    "index-dtype": _Form((0, 1), ("int32", "int64"), "index-width", "op2=int64"),
    "threads": _Form((0, 1), int, "threads", "op0=1"),
}
_OPPOSITES: Mapping[FlipKind, FlipKind] = {
    "scalar": "vectorise", "no-fuse": "fuse", "inline": "realize", "looped": "persistent",
}  # fmt: skip
CHANNELS_LAST_RANKS = (4, 5)
"""Numbers of dimensions that have a channels-last order: images and volumes, with a batch."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_NODES = re.compile(r"op\d+(_op\d+)+")


class Flip(Struct, frozen=True):
    """A decision to turn.

    Attributes:
        kind: what it is to be. subjects: whom it is about, a side of a pair each; empty for every subject of
            which torch decides it. value: of a kind that has several.
        graph: the only graph in which it is turned; None: in each that has the subjects.
        origins: of each subject, the FX nodes that it means in the dump that its name is from, as far as it
            was looked up there (`analysis/flips.py`); the first one is whose value it holds.
    """

    kind: FlipKind
    subjects: tuple[str, ...] = ()
    value: str | None = None
    graph: str | None = None
    origins: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        text = self.argument
        return f"{self.kind} {text}" if text else self.kind

    @property
    def argument(self) -> str:
        """What stands after the name of its option: `buf3=channels_last`; empty where nothing does."""
        subjects = ",".join(self.subjects)
        scope = f"{self.graph}:" if self.graph is not None else ""
        if self.value is None:
            return f"{scope}{subjects}"
        return f"{scope}{subjects}={self.value}" if subjects else f"{scope}{self.value}"

    @property
    def option(self) -> str:
        """As it is written on the command line: `--layout buf3=channels_last`."""
        return f"--{self}"

    @property
    def decides(self) -> DecisionKind:
        """The kind of decision that it turns."""
        return _FORMS[self.kind].decides

    @property
    def question(self) -> tuple[FlipKind, frozenset[str], str | None]:
        """What is asked about whom: flips of one question, each with another answer, cannot hold at once."""
        return _OPPOSITES.get(self.kind, self.kind), frozenset(self.subjects), self.graph

    @property
    def nodes(self) -> tuple[frozenset[str], ...]:
        """The unfused nodes of each subject: `op3_op4` has two."""
        return tuple(
            frozenset(subject.split("_")) if _NODES.fullmatch(subject) else frozenset([subject])
            for subject in self.subjects
        )


class FlipResult(Struct, frozen=True):
    """What became of a flip in a graph.

    Attributes:
        flip: as it was asked for. graph: its name; None where no graph was compiled that it could be about.
        outcome: see `FlipOutcome`. reason: why, unless it was applied; None of what is so already.
        times: how often it was turned: torch takes some decisions more than once. place: the function of
            torch that takes it.
        subjects: names of what was turned, in this graph. before, after: what torch chose, and what it is
            now, where both are known.
        operands: of the reason. decision: what torch decided about the subject, where that is the reason.
    """

    flip: Flip
    graph: str | None
    outcome: FlipOutcome
    reason: FlipReason | None = None
    times: int = 0
    place: TorchFrame | None = None
    subjects: tuple[str, ...] = ()
    before: Outcome | None = None
    after: Outcome | None = None
    operands: tuple[tuple[str, Operand], ...] = ()
    decision: Decision | None = None


def at_once(flips: Iterable[Flip]) -> tuple[Flip, ...]:
    """Return flips that are to hold at once, each one time.

    Raises:
        ProbeError: two of them turn a decision to different sides.
    """
    of: dict[object, Flip] = {}
    for flip in flips:
        other = of.setdefault(flip.question, flip)
        if (other.kind, other.value) != (flip.kind, flip.value):
            raise ProbeError(f"{other.option} and {flip.option} cannot hold at once", "leave one of them out")
    return tuple(of.values())


def instead(flips: Iterable[Flip], others: Iterable[Flip]) -> tuple[Flip, ...]:
    """Return flips with others, which have the last word where both are about the same."""
    last = tuple(others)
    questions = {flip.question for flip in last}
    return (*(flip for flip in flips if flip.question not in questions), *last)


def parse_flip(text: str) -> Flip:
    """Return the flip that a text spells: `layout buf3=channels_last`, with or without dashes before it.

    Raises:
        ProbeError: there is no such kind, or it takes other subjects or values.
    """
    kind, _, argument = text.strip().removeprefix("--").partition(" ")
    if kind not in FLIP_KINDS:
        raise ProbeError(f"no decision is turned by {kind!r}", near_names(kind, FLIP_KINDS))
    return flip_of(kind, argument.strip())


def example_of(kind: FlipKind) -> str:
    """`--fuse op3,op4`."""
    return f"--{kind} {_FORMS[kind].example}"


def flip_of(kind: FlipKind, argument: str) -> Flip:
    """Return the flip of an option and its argument: of `layout` and `buf3=channels_last`.

    Raises:
        ProbeError: the kind takes other subjects or values.
    """
    form, written = _FORMS[kind], f"--{kind} {argument}".rstrip()
    scope, colon, rest = argument.rpartition(":")
    named, equals, value = rest.partition("=")
    if form.values is not None and not equals:
        # `--split 4` has no subject: what stands alone is the value.
        named, value = "", named
    elif form.values is None and equals:
        raise ProbeError(f"--{kind} takes no value: {argument}", f"for example {example_of(kind)}")
    subjects = tuple(named.split(",")) if named else ()
    if len(subjects) not in form.subjects or not all(map(_NAME.fullmatch, subjects)):
        counts = " or ".join(
            ("no name", "one name", "two names, with a comma between")[n] for n in form.subjects
        )
        raise ProbeError(f"invalid {written}: it takes {counts}", f"for example {example_of(kind)}")
    if len(set(subjects)) != len(subjects):
        raise ProbeError(f"{written} names {subjects[0]} twice")
    if form.values is int and not (value.isdecimal() and 0 < int(value) < 2**31):
        raise ProbeError(
            f"invalid {written}: expected a number over 0, not {value!r}",
            f"for example {example_of(kind)}",
        )
    if isinstance(form.values, tuple) and value not in form.values:
        raise ProbeError(f"invalid {written}: no value {value!r}", near_names(value, form.values))
    return Flip(kind, subjects, value if form.values is not None else None, scope if colon else None)
