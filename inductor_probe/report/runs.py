"""Runs on disk: a table, and what is removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.runs import Removal, RunFacts
from inductor_probe.report.columns import Cell, Column, Columns, not_shown
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.remarks import sentence
from inductor_probe.report.words.runs import blocker_text

_WIDE = 110
_ROOMY = 90
_STAMP = len("run_2026_01_31_12_00_00")
_STYLES = {"failed": "red", "interrupted": "red", "empty": "yellow", "running": "green"}
_AGES = ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class RunsTable:
    """A row per run, then why runs are empty or failed. `now`: seconds since the epoch."""

    def __init__(self, runs: Sequence[RunFacts], root: Path, now: float) -> None:
        self.runs = runs
        self.root = root
        self.now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.runs:
            yield Text(f"no run below {self.root}")
            return
        wide = options.max_width >= _WIDE
        names = _names(self.runs, self.root, wide)
        # Names are there to be copied: columns stand closer before one of them is shortened.
        yield self._table(names, wide, gap=2 if options.max_width >= _ROOMY else 1)
        if not wide and any(run.cases for run in self.runs):
            yield not_shown(["cases"], options.max_width)
        for run in self.runs:
            if run.remark:
                yield Text.assemble(
                    ("! ", "bold red"), (names[run.path], "bold"), f": {sentence(run.remark)}"
                )

    def _table(self, names: dict[Path, str], wide: bool, gap: int) -> Columns:
        known = any(run.scenario for run in self.runs)
        told = any(run.state not in ("ok", "unknown") for run in self.runs)
        columns = [
            Column("run", path=True),
            *([Column("scenario")] if known else []),
            *([Column("cases")] if known and wide else []),
            Column("torch", folds=False),
            Column("device", folds=False),
            Column("graphs", right=True, folds=False),
            Column("size", right=True, folds=False),
            Column("age", right=True, folds=False),
            *([Column("state", folds=False)] if told else []),
        ]
        rows: list[list[Cell]] = []
        for run in self.runs:
            state = "-" if run.state == "unknown" else run.state
            rows.append(
                [
                    (names[run.path], "bold"),
                    *([run.scenario or "-"] if known else []),
                    *([", ".join(run.cases) or "-"] if known and wide else []),
                    (run.torch or "?").partition("+")[0],
                    ", ".join(run.devices) or "-",
                    str(run.graphs),
                    bytes_text(run.size),
                    age_text(self.now - run.made),
                    *([(state, _STYLES.get(state, ""))] if told else []),
                ]
            )
        return Columns(columns, rows, gap=gap)


class RemovalText:
    """What goes, or went, and what is kept because of what."""

    def __init__(self, removals: Sequence[Removal], verb: str) -> None:
        self.removals = removals
        self.verb = verb

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        going = [removal for removal in self.removals if not removal.blockers]
        for removal in going:
            files = counted(len(removal.files) + len(removal.beside), "file")
            yield Text(f"{self.verb} {removal.run} ({files}, {bytes_text(removal.size)})")
        for removal in self.removals:
            if removal.blockers:
                blockers = "; ".join(map(blocker_text, removal.blockers))
                yield Text.assemble((f"kept {removal.run}: ", "bold yellow"), blockers)


def age_text(seconds: float) -> str:
    """`3 h`, `2 d`: the largest unit that fits."""
    for length, unit in _AGES:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "0 s"


def _names(runs: Sequence[RunFacts], root: Path, wide: bool) -> dict[Path, str]:
    """Return what to call each run: something that means it, and it alone, to every verb.

    That is its label; else, in one tree, its folder's name, in a narrow terminal the start of it; else the
    way to it, as short as it still leads to one run only.
    """
    labels = Counter(run.label for run in runs)
    starts = Counter(run.name[:_STAMP] for run in runs)
    below = Counter(folder for run in runs for folder in (run.path, *run.path.parents))
    one_tree = len({run.path.parent for run in runs}) == 1
    names = {}
    for run in runs:
        if run.label and labels[run.label] == 1:
            names[run.path] = run.label
        elif one_tree:
            short = run.name[:_STAMP]
            names[run.path] = run.name if wide or starts[short] > 1 else short
        else:
            place = run.path
            while place.parent != root and below[place.parent] == 1:
                place = place.parent
            names[run.path] = str(place.relative_to(root) if place.is_relative_to(root) else place)
    return names
