"""What inductor decided while it compiled a graph, as it was recorded where torch decided it.

A `Decision` is recorded (`capture/recorders/`), kept with the graph (`store/decisions.py`) and read back. It
says what torch chose, the cause as a code, and the operands that torch compared; it holds no sentence
(`catalogue/`), and nothing that was not seen in torch while it decided.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from inductor_probe.model.span import Problem, Span

DECISIONS_NAME = "probe_decisions.jsonl"
"""In a graph's folder: one decision a line."""

CauseCode: TypeAlias = str
"""Of an entry in the catalogue; of another version, or of a test that no entry has, any text."""
DecisionKind: TypeAlias = Literal[
    "vectorisation", "fallback", "realization", "threads", "fusion", "reduction", "index-width", "layout",
    "copy", "concatenation", "casts", "arguments", "divisions",
    "loops",
    "rewrite", "cudagraphs", "freezing", "tiling", "configs",
]  # fmt: skip
Outcome: TypeAlias = Literal[
    "vectorised", "underfilled", "scalar", "half-width", "masked-tail", "scalar-tail", "lane-by-lane",
    "transposed", "extern", "realised", "inlined", "contiguous", "parallel", "one-thread",
    "fused", "refused", "postponed", "not-tried", "undone",
    "unrolled", "split", "not-split", "two-passes", "one-pass", "persistent", "looped",
    "cooperative", "not-cooperative", "split-scan", "whole-scan",
    "INNER", "OUTER", "OUTER_TINY", "DEFAULT",
    "int32", "int64",
    "channels-last", "permuted", "padded", "inside-another", "in-place", "unchanged",
    "in-order", "reordered", "merged", "separate", "divided",
    "replaced", "removed", "folded", "not-replaced",
    "copied", "not-copied", "element-by-element", "in-parts", "rounding-left-out",
    "next-function", "divides-64-bit", "divides-32-bit",
    "captured", "partitioned", "skipped", "at-run-time", "frozen", "not-frozen",
    "one-d-tiles", "two-d-tiles", "three-d-tiles", "four-d-tiles",
    "one-config", "several-configs",
]  # fmt: skip
QUESTIONS: tuple[frozenset[Outcome], ...] = (
    frozenset({"vectorised", "underfilled", "scalar"}),
    frozenset({"masked-tail", "scalar-tail"}),
    frozenset({"lane-by-lane", "transposed"}),
    frozenset({"in-order", "reordered"}),
    frozenset({"merged", "separate"}),
    frozenset({"divided"}),
    frozenset({"unrolled", "split", "not-split"}),
    frozenset({"two-passes", "one-pass"}),
    frozenset({"persistent", "looped"}),
    frozenset({"cooperative", "not-cooperative"}),
    frozenset({"split-scan", "whole-scan"}),
    frozenset({"INNER", "OUTER", "OUTER_TINY", "DEFAULT"}),
    frozenset({"replaced"}),
    frozenset({"removed"}),
    frozenset({"folded"}),
    frozenset({"not-replaced"}),
)
"""Outcomes between which torch chooses at one place, of the kinds that decide more than once of a subject."""
SubjectType: TypeAlias = Literal["node", "buffer", "fx", "graph"]
Operand: TypeAlias = bool | int | float | str | tuple[str, ...]
"""What torch compared. A symbolic size is its text."""

DECISION_KINDS: tuple[DecisionKind, ...] = tuple(
    kind for group in get_args(DecisionKind) for kind in (get_args(group) or (group,))
)


class TorchFrame(Struct, frozen=True):
    """A function in torch's sources: `file` below the folder that holds torch, `line` in it.

    `line` is the call in progress. Of the function that decided, it is where that begins if the line of the
    decision itself could not be seen.
    """

    file: str
    function: str
    line: int


class TorchTest(Struct, frozen=True):
    """A test that torch made when it decided, as it was seen there.

    Attributes:
        place: the line of the test. text: the test as it is written there.
        truth: what came out. values: the two operands of a comparison, or the value that was tested.
    """

    place: TorchFrame
    text: str
    truth: bool
    values: tuple[bool | int | float | str, ...] = ()


class Decision(Struct, frozen=True):
    """One choice of the compiler.

    Attributes:
        number: its place in the order in which torch decided, from 1.
        kind: what was decided.
        subject_type: what the names in `subjects` are.
        subjects: what it was decided about. A decision about one thing has one group: a fused node is the
            names of the unfused nodes in it (`(("op0", "op1"),)`). One about a pair has two groups.
        outcome: what torch chose. cause: why. operands: what the cause rests on, with the thresholds.
        place: the function of torch that decided, None where that was not recorded. stack: what called it,
            innermost first.
        speculative: torch tried this, and did not keep it, or did it once more.
        times: how often torch asked; the last answer is kept.
        tests: those of torch that decided, where the function that decides was watched.
        knowledge: `recorded` while torch decided; else `read` in a log of torch's or the IR, or `inferred`.
        span: the line of that log.
    """

    number: int
    kind: DecisionKind
    subject_type: SubjectType
    subjects: tuple[tuple[str, ...], ...]
    outcome: Outcome
    cause: CauseCode
    operands: tuple[tuple[str, Operand], ...]
    place: TorchFrame | None
    stack: tuple[TorchFrame, ...] = ()
    speculative: bool = False
    times: int = 1
    tests: tuple[TorchTest, ...] = ()
    knowledge: Literal["recorded", "read", "inferred"] = "recorded"
    span: Span | None = None

    @property
    def question(self) -> frozenset[Outcome]:
        """The outcomes that torch chose among, as far as its kind has several choices: see `QUESTIONS`."""
        return next((question for question in QUESTIONS if self.outcome in question), frozenset())

    @property
    def names(self) -> tuple[str, ...]:
        """All that it is about, whatever group it is in."""
        return tuple(name for group in self.subjects for name in group)

    @property
    def step(self) -> int | None:
        """Which fusion of its graph it is, from 1; None where it is none, or that is not known."""
        step = self.operand("step") if self.outcome == "fused" else None
        return step if isinstance(step, int) else None

    def operand(self, name: str) -> Operand | None:
        """Return the operand called `name`, None where the decision has none."""
        return dict(self.operands).get(name)


class DecisionsHeader(Struct, frozen=True):
    """First line of the file. `recorders`: the kinds of decisions that were recorded on that torch."""

    format: int
    torch: str
    recorders: tuple[DecisionKind, ...]


class Decisions(Struct, frozen=True):
    """What was recorded of a graph.

    `complete` is False where the file was cut short or cannot be read; `problems` say where.
    """

    torch: str
    recorders: tuple[DecisionKind, ...]
    decisions: tuple[Decision, ...]
    complete: bool = True
    problems: tuple[Problem, ...] = ()
