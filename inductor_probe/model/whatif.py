"""Two ways to compile a graph: what differs, whether it is right, and how long both take."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.model.bench import BenchResult
from inductor_probe.model.diff import FactChange, GraphDiff
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem

NotTimed: TypeAlias = Literal["same-code", "no-code", "inputs-differ", "constants-differ"]
"""Why two graphs are not timed: names and spelling aside their code is the same; one has none; one could not
take the inputs of the other; or their constants are not the same."""


@dataclass(frozen=True, slots=True)
class GraphWhatIf:
    """A graph of A and its partner in B.

    Attributes:
        diff: what changed between them, decisions of the compiler among it.
        result: both timed in turns on the inputs of A; names in it are those of A's bench file, in which
            `call_v3` is the compiled call of B, and `k_v3` the kernel of B that does the work of `k`. None
            where they were not timed.
        not_timed: why; None where they were.
        subjects: inputs or constants that differ, where that is why.
        file: the program with the code of both, beside A's `output_code.py`; its samples are beside it.
        ran: for A and B, the file with the code that was timed, and its sha256.
    """

    diff: GraphDiff
    result: BenchResult | None = None
    not_timed: NotTimed | None = None
    subjects: tuple[str, ...] = ()
    file: Path | None = None
    ran: tuple[tuple[Path, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class WhatIfOutput(Output):
    """Two runs, graph by graph.

    Attributes:
        a, b: folders of the runs. environment: what was set otherwise in B.
        graphs: pairs of graphs that compute the same. only_a, only_b: names of graphs without a partner.
        summary: a sentence for each pair.
    """

    verb: Literal["whatif"] = "whatif"
    a: Path
    b: Path
    environment: tuple[FactChange, ...] = ()
    graphs: tuple[GraphWhatIf, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
