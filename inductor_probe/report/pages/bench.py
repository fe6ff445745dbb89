"""What bench-kernel and verdict show: the answer, times and verdicts, what explains them, and warnings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from inductor_probe.model.bench import ABLATIONS, CALL, BenchFile, BenchResult, Measurement, VariantDiff
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Process, not_compiled, wrong_groups
from inductor_probe.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Fold,
    Heading,
    Line,
    Name,
    Picture,
    Table,
)
from inductor_probe.report.pages.call_parts import call_parts_sentence, call_parts_table
from inductor_probe.report.pages.overheads import (
    number_columns,
    overhead_sentence,
    overhead_table,
    rate_sentence,
    roofline_table,
)
from inductor_probe.report.units import counted, duration
from inductor_probe.report.words.bench import NOTHING, answers, right_beside_wrong, side_name, wrong_sentence
from inductor_probe.report.words.own_call import how_timed, own_remark, why_no_own_call
from inductor_probe.report.words.remarks import sentence

AS_PYTHON = "the steps of the C++ wrapper, in Python"
_STATES = {"written": "wrote", "rewritten": "wrote again", "kept": "kept your edits in"}
_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNDECIDED": "yellow", "INVALID": "bold red"}
_MOST_LINES = 40
_MOST_PLOTS = 6
_MOST_ROWS = 12
_MOST_RATES = 2
_MOST_WRONG = 3
_MOST_NAMED = 2
_MOST_ERROR_LINES = 3
_ERROR_CODE = re.compile(r"\s*\d* \|")
_ERROR_LINE = re.compile(r"\s*\d+ \|")
_NAME = Column("", fold="middle")
_ONLY_IN_DETAILS = ("autocorrelation", "processes-differ", "baseline-offset", "disturbance-shift")
"""Remarks that change nothing for who reads the verdict: the interval counts them."""
_LARGE_DRIFT = 0.1
_OF_CHECKS = ("range-exceeded", "call-varies", "rounded-otherwise", "rounded-as-eager", "integers-tied")
"""Remarks on checks that say how much `correct` is worth."""
_OF_OVERHEADS = ("kernels-exceed-call",)
"""Remarks on overheads that say which of two times to believe."""


def bench_file_lines(file: BenchFile, path: Path) -> Iterator[Line]:
    """Say what happened to the bench file, which variants are in it, and which of its parts were edited.

    `path` is how the file is named.
    """
    yield Line([_STATES[file.state], " ", (str(path), "bold")])
    if file.reread:
        yield Line("another program saved it, too: it was read again, and what was saved stays in it")
    if variants := [name for name in file.edited if name not in (*file.pristine_edits, ABLATIONS)]:
        yield Line(f"edited: {', '.join(variants)}")
    warning = ("warning: ", "bold yellow")
    if names := ", ".join(file.pristine_edits):
        yield Line([warning, f"{names} is not a copy to edit: what the copies are compared to was changed"])
    if names := ", ".join(file.gone):
        yield Line([warning, f"{names}: the graph has nothing any more that this is a copy of"])


def written_file(file: BenchFile, path: Path) -> Iterator[Block]:
    """Say what happened to a bench file, and how its variants differ from what they are copies of."""
    yield from bench_file_lines(file, path)
    yield from variant_diffs(file.diffs)


def variant_diffs(diffs: Sequence[VariantDiff]) -> Iterator[Block]:
    """Yield what each variant has that its original has not, and the other way round."""
    for diff in diffs:
        kind = {"edit": "", "rewrite": ", by a rewrite", "ablation": ", wrong on purpose"}[diff.kind]
        yield Heading([(diff.name, "bold"), f" against {diff.base}{kind}"], 2)
        if diff.lines:
            yield Code("\n".join(diff.lines[:_MOST_LINES]), "diff", 2)
        if len(diff.lines) > _MOST_LINES:
            yield Line((f"and {counted(len(diff.lines) - _MOST_LINES, 'line')} more", "dim"), 2)


class _Part(Struct, frozen=True):
    """A part of the report that is folded, or shown with `--details`."""

    title: str
    inside: Callable[[], Document]


def renamed(value: Any, name: Callable[[str], str]) -> Any:
    """Return a record in which each text is what `name` makes of it, wherever it stands."""
    if isinstance(value, str):
        return name(value)
    if isinstance(value, tuple):
        return tuple(renamed(part, name) for part in value)
    if isinstance(value, Struct):
        parts = {field: renamed(part, name) for field, part in asdict(value).items()}
        return replace(value, **parts)
    return value


def bench_page(
    result: BenchResult, samples: Sequence[Process] = (), *, details: bool = False
) -> Iterator[Block]:
    """Yield the answer, the table, what follows from it, and warnings.

    The tables behind it are folded, which a terminal leaves out; with `details` they are shown. `samples` are
    drawn where a picture can be shown.
    """
    if any(warning.code == "wrapper-as-python" for warning in result.warnings):
        result = renamed(result, lambda name: AS_PYTHON if name == CALL else name)
    yield from _answer(result, _MOST_WRONG if not details else len(result.variants))
    if rows := _comparisons(result):
        verdicts = (Column("interval", fold="never"), Column("verdict", fold="never"))
        most = None if details else _MOST_ROWS
        yield Line()
        yield Table(
            (_NAME, *number_columns(_time_title(result), "ratio"), *verdicts),
            rows,
            0,
            most,
            "--details shows them",
        )
    if result.ablations:
        yield Line()
        yield Heading(("what parts cost (copies that are wrong on purpose: no improvements)", "bold"), 2)
        yield _ablations(result)
    yield Line()
    yield from _consequences(result)
    yield Line((_how_measured(result), "dim"))
    if details and result.command[:1] == ("probe",):
        yield Line((f"command: {shlex.join(result.command)}", "dim"))
    for warning in _warnings(result, details=details):
        yield Line([("warning: ", "yellow"), warning])
    for part in _parts(result):
        if details:
            yield Line()
            yield Heading((part.title, "bold"), 2)
            yield from part.inside()
        else:
            yield Fold(part.title, part.inside)
    if samples and result.comparisons:
        yield Picture(lambda: samples_html(result, samples))


def _answer(result: BenchResult, most: int) -> Iterator[Block]:
    """Yield a sentence for each thing that was found out, the first as a title."""
    wrong = wrong_groups(result.variants)
    sentences: list[tuple[str, str]] = []
    for variants in wrong[:most]:
        sentences.append((f"{wrong_sentence(variants, sentence)}; not timed.", "bold red"))
    if len(wrong) > most:
        sentences.append((f"and {counted(len(wrong) - most, 'more wrong variant')}: --details", "bold red"))
    if right := right_beside_wrong(result.variants):
        sentences.append((f"{right}.", "bold"))
    sentences += [(f"{text}.", "bold") for text in answers(result)]
    of_own = len(wrong[:most]) + (len(wrong) > most) + bool(right) if result.own else -1
    for number, text in enumerate(sentences or [(NOTHING, "bold")]):
        yield Line(text) if number else Heading(text)
        error = not_compiled(wrong[number][0]) if number < min(len(wrong), most) else None
        if error and (code := _error_code(str(error.number("message") or ""), error.number("line"))):
            yield Code(code, indent=4)
        if result.own and number == of_own:
            yield Line((f"{how_timed(result.own)}.", "dim"))
    if result.no_own:
        yield Line((f"{why_no_own_call(result.no_own)}.", "dim"))


def _error_code(message: str, line: object) -> str:
    """Return the lines of a compiler that show the code, numbered as in the bench file.

    `  24 | x = tmp9;` and `     |     ^~~~`, with what the compiler suggests; not the files that include it.
    """
    lines = [text for text in message.splitlines() if _ERROR_CODE.match(text)]
    return "\n".join(
        _ERROR_LINE.sub(lambda match: f"{line} |".rjust(len(match[0])), text)
        for text in lines[:_MOST_ERROR_LINES]
    )


def _how_measured(result: BenchResult) -> str:
    facts = [
        f"{result.graph}: {result.inputs}",
        f"{result.values} values",
        f"{result.data} data",
        counted(result.threads, "thread"),
        counted(result.processes, "process", "processes"),
        f"margin {result.margin * 100:.3g} %",
        *([f"measured for {duration(result.measured)}"] if result.measured else []),
        *([f"torch {result.torch}"] if result.torch else []),
    ]
    return ", ".join(facts)


def _consequences(result: BenchResult) -> Iterator[Block]:
    """Yield what the times say of the call and its longest kernels, and what was not timed."""
    if result.own and result.own.parts:
        yield Line(call_parts_sentence(result.own.parts))
    if result.overheads:
        warm = "" if result.data == "warm" else "With warm data: "
        yield Line(warm + overhead_sentence(result.overheads))
    rows = sorted(result.roofline_rows, key=lambda row: -row.seconds)
    for row in rows[:_MOST_RATES]:
        if text := rate_sentence(row):
            yield Line(f"{text}.")
    unedited = {variant.name for variant in result.variants if variant.unedited}
    for name, resources in result.resources:
        if resources.spills and name not in unedited:
            words = counted(resources.spills, "register")
            yield Line(f"{name} spills {words} a thread to memory.")
    if same := untimed_copies(result):
        names = ", ".join(same) if len(same) <= _MOST_NAMED else counted(len(same), "copy", "copies")
        yield Line((f"correct, and not timed since unedited: {names}", "dim"))


def _warnings(result: BenchResult, *, details: bool) -> list[str]:
    """Return what spoils the times, one line for each kind of it: the most extreme."""
    checked = [remark for variant in result.variants for remark in variant.remarks]
    remarks = [*result.warnings, *(remark for remark in checked if remark.code in _OF_CHECKS)]
    compared = (remark for comparison in result.comparisons for remark in comparison.remarks)
    by_code = grouped(compared, lambda remark: remark.code)
    texts = [own_remark(remark) for remark in result.own.remarks] if result.own else []
    texts += dict.fromkeys(map(sentence, remarks))
    for code, same in by_code.items():
        if details:
            texts += dict.fromkeys(map(sentence, same))
        elif code not in _ONLY_IN_DETAILS and any(map(_matters, same)):
            more = f" (and {counted(len(same) - 1, 'more comparison')})" if len(same) > 1 else ""
            texts.append(sentence(max(same, key=_size)) + more)
    if not details and result.overheads:
        remarks = [*result.overheads.remarks]
        texts += [sentence(one) for one in remarks if one.kind == "hazard" or one.code in _OF_OVERHEADS]
    return texts


def _matters(remark: Remark) -> bool:
    """Whether it changes how a time is read: a drift of a few percent does not, as ratios are of turns."""
    return remark.code != "drift" or _size(remark) >= _LARGE_DRIFT


def _size(remark: Remark) -> float:
    """Return how extreme a remark is among those of its code: its largest number."""
    return max((abs(value) for _, value in remark.numbers if isinstance(value, int | float)), default=0.0)


def _parts(result: BenchResult) -> Iterator[_Part]:
    """Yield what explains the times."""
    warm = "" if result.data == "warm" else ", with warm data"
    if result.own and (parts := result.own.parts):
        yield _Part(f"what a call of {result.own.name} consists of", lambda: call_parts_table(parts))
    if overheads := result.overheads:
        yield _Part(f"where the time of a compiled call goes{warm}", lambda: overhead_table(overheads))
    if roofline := result.roofline:
        rows = result.roofline_rows
        yield _Part(
            f"kernels against the roofline of this machine{warm}", lambda: roofline_table(roofline, rows)
        )
    if result.resources:
        yield _Part("what Triton kernels take", lambda: [_resources(result)])
    if result.comparisons:
        yield _Part("what the ratios rest on", lambda: _evidence(result))


def _evidence(result: BenchResult) -> Iterator[Block]:
    """Yield the ratio of each process, and how many samples count."""
    rows: list[list[Cell]] = [
        [
            Name(side_name(comparison.candidate)),
            Name(side_name(comparison.baseline)),
            ", ".join(f"{ratio:.3f}" for ratio in comparison.process_ratios),
            f"{comparison.quads:,}",
            f"{comparison.excluded:,}",
        ]
        for comparison in result.comparisons
    ]
    columns = (Column("ratio by process"), *number_columns("rounds", "left out"))
    yield Table((_NAME, Column("against", fold="middle"), *columns), rows)
    yield Line(("a round times both in turns; it is left out where other programs ran on its core", "dim"))
    if (number := len(result.comparisons)) > 1:
        yield Line((f"the intervals hold for all {number} comparisons at once with 95 %", "dim"))


def samples_html(result: BenchResult, samples: Sequence[Process]) -> str:
    """Return the samples of comparisons as a picture; a line in its place without matplotlib."""
    if find_spec("matplotlib") is None:
        return '<div class="ip-dim">with matplotlib installed, the samples would be plotted here</div>'
    from inductor_probe.report.plots.samples import figure_svg, samples_figure  # noqa: PLC0415 - only HTML shows it

    svg = figure_svg(samples_figure(result.comparisons[:_MOST_PLOTS], samples, result.margin))
    return f'<div class="ip-figure">{svg}</div>'


def _comparisons(result: BenchResult) -> list[list[Cell]]:
    """Return a row for each baseline, its candidates below it; what was compared to nothing comes last."""
    by_baseline = grouped(result.comparisons, lambda comparison: comparison.baseline)
    rows: list[list[Cell]] = []
    for baseline, comparisons in by_baseline.items():
        rows.append([*_time(result.time(baseline)), "", "", ""])
        for comparison in comparisons:
            several = len(comparison.process_ratios) > 1
            interval = f"{comparison.low:.3f} to {comparison.high:.3f}" if several else "one process"
            verdict = (comparison.verdict, _STYLES[comparison.verdict])
            times = _time(result.time(comparison.candidate), "  ")
            rows.append([*times, f"{comparison.ratio:.3f}x", interval, verdict])
    alone = sorted(result.alone, key=lambda measurement: -measurement.seconds)
    return rows + [[*_time(measurement), "", "", ""] for measurement in alone]


def _time_title(result: BenchResult) -> str:
    """Times with cold data are others than those of overheads and roofline, which have warm data."""
    return "time" if result.data == "warm" else f"time ({result.data} data)"


def _time(measurement: Measurement, indent: str = "") -> list[Cell]:
    return [Name(indent + side_name(measurement.name)), duration(measurement.seconds)]


def untimed_copies(result: BenchResult) -> list[str]:
    """Return the copies that nobody edited, and that were not timed for it."""
    names = [side_name(comparison.candidate) for comparison in result.comparisons]
    timed = {*names, *(name.partition(" ")[0] for name in names)}  # a side has `k_v2 (a config)`, or `k of B`
    return [
        variant.name
        for variant in result.variants
        if variant.unedited and variant.correct and variant.name not in timed
    ]


_LEFT_OUT = {
    "no_epilogue": "without its epilogue",
    "no_reduction": "without its reduction",
    "no_loads": "without loads either",
    "store_only": "stores only",
}


def _ablations(result: BenchResult) -> Table:
    """Say what the parts of kernels cost, by copies that leave them out."""
    rows: list[list[Cell]] = []
    base: str | None = None
    for ablation in result.ablations:
        comparison = ablation.comparison
        if comparison.baseline != base:
            base = comparison.baseline
            rows.append([*_time(result.time(base)), "100 %", ""])
        share = f"{comparison.ratio * 100:.0f} %"
        interval = f"{comparison.low * 100:.0f} to {comparison.high * 100:.0f} %"
        part = _LEFT_OUT.get(ablation.left_out, ablation.left_out)
        rows.append([f"  {part}", duration(result.time(comparison.candidate).seconds), share, interval])
    return Table((_NAME, *number_columns(_time_title(result), "share"), Column("interval")), rows)


def _resources(result: BenchResult) -> Table:
    unedited = {variant.name for variant in result.variants if variant.unedited}
    rows: list[list[Cell]] = [
        [
            Name(name),
            str(resources.registers),
            (str(resources.spills), "yellow" if resources.spills else ""),
            str(resources.shared),
        ]
        for name, resources in result.resources
        if name not in unedited
    ]
    return Table((_NAME, *number_columns("registers", "spills", "shared bytes")), rows)


def settings_table(results: Sequence[BenchResult]) -> Iterator[Block]:
    """Yield a row for each thing timed, a column for each setting: times, as multiples of the first."""
    times = [{time.name: time.seconds for time in result.times} for result in results]
    titles = [f"{result.values}, {counted(result.threads, 'thread')}" for result in results]
    rows: list[list[Cell]] = []
    largest: tuple[float, str, str] = (1.0, "", "")
    for name, first in times[0].items():
        row: list[Cell] = [Name(side_name(name)), duration(first)]
        for title, others in zip(titles[1:], times[1:], strict=True):
            seconds = others.get(name)
            row.append("-" if seconds is None else f"{duration(seconds)} {seconds / first:.2f}x")
            if seconds is not None:
                largest = max(largest, (max(seconds / first, first / seconds), name, title))
        rows.append(row)
    yield Heading(("depending on the setting", "bold"), 2)
    yield Table((_NAME, *number_columns(*titles)), rows)
    factor, name, title = largest
    if factor >= 1.1:  # so many times as long: it depends on the setting
        yield Line(
            f"{side_name(name)} takes {factor:.2f} times as long, or as short, with {title}: "
            "state it with a time."
        )
