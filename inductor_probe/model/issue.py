"""What PyTorch's template for bugs of torch.compile asks for, of what was found out here."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from inductor_probe.model.cause import Cause

MOST_LINES = 20
"""Of a program that stands open in an issue; a longer one is folded, with how to make it shorter."""


class IssueProgram(Struct, frozen=True):
    """The program of an issue.

    Attributes:
        kind: `script`: that of the user; `reduced`: what `probe reduce` made of it; `graph`: the operators
            of a graph of it, as FX has them.
        name: of its file. text: the program. lines: of code in it.
    """

    kind: Literal["script", "reduced", "graph"]
    name: str
    text: str
    lines: int


class IssueValue(Struct, frozen=True):
    """An element in eager, compiled, and in float64, as texts."""

    name: str
    eager: str
    compiled: str
    reference: str


class Issue(Struct, frozen=True, kw_only=True):
    """A bug, as its report says it.

    Attributes:
        title: in a line. expected, actual: a sentence each; more of `actual` are further lines.
        program: None where the run has neither a script nor a graph. keep: what `probe reduce` is to keep of
            it; empty where the program is short already.
        values: of what is wrong. wrong, runs: how many of how many runs showed it; 0 where it is no question.
        causes: decisions with what they rest on, and what changes them. turns: changes that were tried, and
            what came of each.
        versions: of torch and what took part, and the processor or GPU. command: what found it out.
        bisector: the command of torch's own bisector; empty where nothing is wrong.
        secrets: names of the machine and the user, which stand nowhere in the report.
    """

    title: str
    expected: str
    actual: tuple[str, ...]
    program: IssueProgram | None
    keep: str = ""
    values: tuple[IssueValue, ...] = ()
    wrong: int = 0
    runs: int = 0
    causes: tuple[Cause, ...] = ()
    turns: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    command: str = ""
    bisector: str = ""
    secrets: tuple[str, ...] = ()
