"""Every loop body at hand: those of the fixtures, and those of a larger set of dumps where one is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from inductor_probe.model.formula import Formula
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.reader.ir import parse_ir
from inductor_probe.report.formula import formula_lines
from tests.conftest import DUMPS

MORE_DUMPS = "PROBE_MORE_DUMPS"
"""A folder with more dumps, in any depth, for a slower and longer look."""


@cache
def all_bodies() -> tuple[tuple[str, SchedulerNode], ...]:
    """Return the unfused nodes with a body, each with where it stands."""
    return tuple(_bodies(DUMPS))


def more_bodies(folder: Path) -> Iterator[tuple[str, SchedulerNode]]:
    yield from _bodies(folder)


def _bodies(folder: Path) -> Iterator[tuple[str, SchedulerNode]]:
    for path in sorted(folder.rglob("ir_pre_fusion.txt")):
        for top in parse_ir(path.read_text(), path).nodes:
            for node in top.leaves():
                if node.body is not None:
                    yield f"{path.parent.relative_to(folder)}/{node.name}", node


def more_dumps() -> Path | None:
    named = os.environ.get(MORE_DUMPS)
    return Path(named) if named else None


def formula_text(formula: Formula, width: int = 100) -> str:
    return "\n".join(formula_lines(formula, width))
