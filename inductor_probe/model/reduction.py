"""The smallest program that still shows something, and how it was come by."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from inductor_probe.model.output import Output

REDUCED_HEAD = "Reduced by probe reduce from "
"""How the first line of a program begins that was reduced; the name of its script follows."""


class TriedGraph(Struct, frozen=True):
    """A graph of the script, asked whether it shows what is to stay so.

    Attributes:
        name: dynamo's compile id. nodes: of its graph. says: a sentence for each predicate that was asked.
    """

    name: str
    nodes: int
    holds: bool
    says: tuple[str, ...] = ()


class ReduceOutput(Output, frozen=True, kw_only=True):
    """A program that was reduced.

    Attributes:
        keep: what had to stay so. holds: whether the program that was written shows it, asked alone.
        script: that was reduced. file: the program; None where no graph showed it. text: of the file.
        graph: which one. graphs: all that were asked.
        nodes, left: calls of torch in the graph, and in the program.
        asked: programs that were compiled. known: that were known by their text.
        says: what the program shows, a sentence for each predicate.
        over_budget: there was more to try. back: how many of the last steps did not show it alone, and are
            left out. ending: how the script ended, where that was not well.
    """

    verb: Literal["reduce"] = "reduce"
    keep: tuple[str, ...]
    holds: bool
    script: Path
    file: Path | None = None
    text: str = ""
    graph: str = ""
    graphs: tuple[TriedGraph, ...] = ()
    nodes: int = 0
    left: int = 0
    asked: int = 0
    known: int = 0
    says: tuple[str, ...] = ()
    over_budget: bool = False
    back: int = 0
    ending: str = ""
    seconds: float = 0.0
