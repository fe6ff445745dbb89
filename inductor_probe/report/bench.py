"""Bench files and what they measured, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.bench import ABLATIONS, BenchFile, BenchResult, Measurement, VariantDiff
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.facts import code_text
from inductor_probe.report.overheads import OverheadTable
from inductor_probe.report.roofline import RooflineTable
from inductor_probe.report.units import duration, shorten
from inductor_probe.report.words.bench import result_sentence, side_name, wrong_words
from inductor_probe.report.words.remarks import sentence

_STATES = {"written": "wrote", "rewritten": "wrote again", "kept": "kept your edited"}
_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNDECIDED": "yellow", "INVALID": "bold red"}
_MOST_LINES = 40
_OTHERS = 56
"""Columns that all but the names take."""


def bench_file_text(file: BenchFile, shown_path: Path) -> Text:
    """Say what happened to the bench file, which variants are in it, and which of its parts were edited."""
    text = Text.assemble(_STATES[file.state], " ", (str(shown_path), "bold"))
    if file.reread:
        text.append("\nanother program saved it meanwhile: it was read again, and what was saved stays in it")
    variants = [name for name in file.edited if name not in (*file.pristine_edits, ABLATIONS)]
    if variants:
        text.append(f"\nyours in it: {', '.join(variants)}")
    if file.pristine_edits:
        text.append("\nwarning: ", style="bold yellow")
        names = ", ".join(file.pristine_edits)
        text.append(f"{names} is not a copy to edit: what the copies are compared to was changed")
    if file.gone:
        text.append("\nwarning: ", style="bold yellow")
        text.append(f"{', '.join(file.gone)}: the graph has nothing any more that this is a copy of")
    return text


class WrittenFileText:
    """What happened to a bench file, and how the variants in it differ from what they are copies of."""

    def __init__(self, file: BenchFile, shown_path: Path) -> None:
        self.file = file
        self.shown_path = shown_path

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield bench_file_text(self.file, self.shown_path)
        yield VariantDiffs(self.file.diffs)


class VariantDiffs:
    """What each variant has that its original has not, and the other way round."""

    def __init__(self, diffs: Sequence[VariantDiff]) -> None:
        self.diffs = diffs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for diff in self.diffs:
            kind = {"edit": "", "rewrite": ", by a rewrite", "ablation": ", wrong on purpose"}[diff.kind]
            yield Text.assemble((diff.name, "bold"), f" against {diff.base}{kind}")
            for line in diff.lines[:_MOST_LINES]:
                style = {"+": "green", "-": "red"}.get(line[:1], "dim")
                yield code_text(f"  {line}", style)
            if len(diff.lines) > _MOST_LINES:
                yield Text(f"  and {len(diff.lines) - _MOST_LINES} lines more", style="dim")


class BenchTable:
    """What is wrong, each baseline above its candidate with their times, remarks, and a sentence."""

    def __init__(self, result: BenchResult) -> None:
        self.result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        result = self.result
        threads = "1 thread" if result.threads == 1 else f"{result.threads} threads"
        processes = "1 process" if result.processes == 1 else f"{result.processes} processes"
        yield Text.assemble((result.graph, "bold"), f": {result.inputs}")
        yield Text(f"{result.values} values, {result.data} data, {threads}, {processes}", style="dim")
        for variant in result.variants:
            if not variant.correct:
                wrong = wrong_words(variant, sentence)
                yield Text.assemble((f"{variant.name}: WRONG: ", "bold red"), wrong, "; not timed")
        if same := untimed_copies(result):
            yield Text(f"checked, and not timed since nobody edited them: {', '.join(same)}", style="dim")
        if result.comparisons or result.alone:
            yield Columns(_COLUMNS, list(self._rows(options.max_width)))
        for comparison in result.comparisons:
            for remark in comparison.remarks:
                yield Text.assemble(("remark: ", "yellow"), sentence(remark))
            if comparison.reason:
                sides = f"{side_name(comparison.candidate)} against {side_name(comparison.baseline)}"
                verdict = (f"{comparison.verdict}: ", _STYLES[comparison.verdict])
                yield Text.assemble(verdict, f"{sides}: {sentence(comparison.reason)}")
        if len(result.comparisons) > 1:
            yield Text(
                f"the intervals hold for all {len(result.comparisons)} comparisons together with 95 %",
                style="dim",
            )
        if result.ablations:
            yield from _ablations(result)
        if result.resources:
            yield Text("what Triton kernels take", style="bold")
            yield _resources(result, options.max_width)
        if result.overheads:
            yield Text("where the time of a compiled call goes", style="bold")
            yield OverheadTable(result.overheads)
        if result.roofline:
            yield Text("kernels against the roofline of this machine", style="bold")
            yield RooflineTable(result.roofline, result.roofline_rows)
        yield Text(result_sentence(result))

    def _rows(self, room: int) -> Iterator[list[Cell]]:
        most = max(room - _OTHERS, 18)
        for found in self.result.comparisons:
            yield [*_times(found.baseline, most), "", "", ""]
            interval = f"{found.low:.3f} to {found.high:.3f}"
            verdict = (found.verdict, _STYLES[found.verdict])
            yield [*_times(found.candidate, most), f"{found.ratio:.3f}x", interval, verdict]
        for each in self.result.alone:
            yield [*_times(each, most), "", "", ""]


def untimed_copies(result: BenchResult) -> list[str]:
    """Return the copies that nobody edited, and that were not timed for it."""
    timed = {side_name(found.candidate).partition(" ")[0] for found in result.comparisons}
    return [
        each.name for each in result.variants if each.unedited and each.correct and each.name not in timed
    ]


_LEFT_OUT = {
    "no_epilogue": "without its epilogue",
    "no_reduction": "without its reduction",
    "no_loads": "without loads either",
    "store_only": "stores only",
}


def _ablations(result: BenchResult) -> Iterator[Text | Columns]:
    """Say what the parts of kernels cost, by copies that leave them out."""
    yield Text("what parts cost (copies that are wrong on purpose: no improvements)", style="bold")
    rows: list[list[Cell]] = []
    of: str | None = None
    for ablation in result.ablations:
        what, found = ablation.left_out, ablation.comparison
        if found.baseline.name != of:
            of = found.baseline.name
            rows.append([of, duration(found.baseline.median), "100 %", ""])
        share, interval = f"{found.ratio * 100:.0f} %", f"{found.low * 100:.0f} to {found.high * 100:.0f} %"
        rows.append([f"  {_LEFT_OUT.get(what, what)}", duration(found.candidate.median), share, interval])
    yield Columns(
        (Column(""), Column("median", right=True), Column("of it", right=True), Column("interval")), rows
    )


def _resources(result: BenchResult, room: int) -> Columns:
    same = {each.name for each in result.variants if each.unedited}
    rows: list[list[Cell]] = []
    for name, each in result.resources:
        if name not in same:
            spills = (str(each.spills), "yellow" if each.spills else "")
            rows.append(
                [shorten(name, max(room - _OTHERS, 18)), str(each.registers), spills, str(each.shared)]
            )
    return Columns(_RESOURCES, rows)


_RESOURCES = (
    Column("", folds=False),
    Column("registers", right=True, folds=False),
    Column("spills", right=True, folds=False),
    Column("shared bytes", right=True, folds=False),
)
_COLUMNS = (
    Column("", folds=False),
    Column("median", right=True, folds=False),
    Column("MAD", right=True, folds=False),
    Column("ratio", right=True, folds=False),
    Column("interval", folds=False),
    Column("verdict", folds=False),
)


def _times(found: Measurement, most: int) -> list[Cell]:
    name, head = found.name, most // 3  # the end of a name tells kernels and copies apart
    shown = name if len(name) <= most else f"{name[:head]}..{name[head + 2 - most :]}"
    return [shown, duration(found.median), duration(found.mad)]
