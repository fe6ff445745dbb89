"""What bench-kernel, verdict, rewrite and sweep-configs show: files, times, verdicts, what explains them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from inductor_probe.model.autotuning import ConfigSweep, ConfigTime
from inductor_probe.model.bench import (
    ABLATIONS,
    BenchFile,
    BenchResult,
    Measurement,
    OverheadRow,
    Overheads,
    RewriteRow,
    RooflineRow,
    Side,
    VariantDiff,
)
from inductor_probe.model.timing import Process, Roofline
from inductor_probe.report.document import Block, Cell, Code, Column, Heading, Line, Name, Picture, Table
from inductor_probe.report.units import bytes_text, counted, duration
from inductor_probe.report.words.bench import result_sentence, side_name, wrong_words
from inductor_probe.report.words.remarks import sentence

_STATES = {"written": "wrote", "rewritten": "wrote again", "kept": "kept your edited"}
_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNDECIDED": "yellow", "INVALID": "bold red"}
_MOST_LINES = 40
_MOST_SPECS = 6
_MOST_PLOTS = 6
_NAME = Column("", fold="middle")


def _number_columns(*titles: str) -> list[Column]:
    return [Column(title, right=True, fold="never") for title in titles]


def bench_file_lines(file: BenchFile, path: Path) -> Iterator[Line]:
    """Say what happened to the bench file, which variants are in it, and which of its parts were edited.

    `path` is how the file is named.
    """
    yield Line([_STATES[file.state], " ", (str(path), "bold")])
    if file.reread:
        yield Line("another program saved it, too: it was read again, and what was saved stays in it")
    if variants := [name for name in file.edited if name not in (*file.pristine_edits, ABLATIONS)]:
        yield Line(f"yours in it: {', '.join(variants)}")
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
            yield Line((f"and {len(diff.lines) - _MOST_LINES} lines more", "dim"), 2)


def bench_page(result: BenchResult, samples: Sequence[Process] = ()) -> Iterator[Block]:
    """Yield what is wrong, each baseline above its candidate with their times, remarks, and a sentence.

    `samples` are drawn where a picture can be shown.
    """
    settings = [
        f"{result.values} values",
        f"{result.data} data",
        counted(result.threads, "thread"),
        counted(result.processes, "process", "processes"),
    ]
    yield Heading([(result.graph, "bold"), f": {result.inputs}"])
    yield Line((", ".join(settings), "dim"))
    for variant in result.variants:
        if not variant.correct:
            wrong = wrong_words(variant, sentence)
            yield Line([(f"{variant.name}: WRONG: ", "bold red"), wrong, "; not timed"])
    if same := untimed_copies(result):
        yield Line((f"checked, and not timed since nobody edited them: {', '.join(same)}", "dim"))
    if rows := _comparisons(result):
        verdicts = (Column("interval", fold="never"), Column("verdict", fold="never"))
        yield Table((_NAME, *_number_columns("median", "MAD", "ratio"), *verdicts), rows)
    for comparison in result.comparisons:
        for remark in comparison.remarks:
            yield Line([("remark: ", "yellow"), sentence(remark)])
        if comparison.reason:
            sides = f"{side_name(comparison.candidate)} against {side_name(comparison.baseline)}"
            verdict = (f"{comparison.verdict}: ", _STYLES[comparison.verdict])
            yield Line([verdict, f"{sides}: {sentence(comparison.reason)}"])
    if (number := len(result.comparisons)) > 1:
        yield Line((f"the intervals hold for all {number} comparisons together with 95 %", "dim"))
    yield from _parts(result)
    yield Line(result_sentence(result))
    if samples and result.comparisons:
        yield Picture(lambda: _plots(result, samples))


def _parts(result: BenchResult) -> Iterator[Block]:
    """Yield what explains the times."""
    if result.ablations:
        yield Heading(("what parts cost (copies that are wrong on purpose: no improvements)", "bold"), 2)
        yield _ablations(result)
    if result.resources:
        yield Heading(("what Triton kernels take", "bold"), 2)
        yield _resources(result)
    if result.overheads:
        yield Heading(("where the time of a compiled call goes", "bold"), 2)
        yield from overhead_table(result.overheads)
    if result.roofline:
        yield Heading(("kernels against the roofline of this machine", "bold"), 2)
        yield from roofline_table(result.roofline, result.roofline_rows)


def _plots(result: BenchResult, samples: Sequence[Process]) -> str:
    if find_spec("matplotlib") is None:
        return '<div class="ip-dim">with matplotlib installed, the samples would be plotted here</div>'
    from inductor_probe.report.plots.samples import figure_svg, samples_figure  # noqa: PLC0415 - only HTML shows it

    svg = figure_svg(samples_figure(result.comparisons[:_MOST_PLOTS], samples, result.margin))
    return f'<div class="ip-figure">{svg}</div>'


def _comparisons(result: BenchResult) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for comparison in result.comparisons:
        rows.append([*_times(comparison.baseline), "", "", ""])
        interval = f"{comparison.low:.3f} to {comparison.high:.3f}"
        verdict = (comparison.verdict, _STYLES[comparison.verdict])
        rows.append([*_times(comparison.candidate), f"{comparison.ratio:.3f}x", interval, verdict])
    return rows + [[*_times(measurement), "", "", ""] for measurement in result.alone]


def _times(measurement: Measurement) -> list[Cell]:
    return [Name(measurement.name), duration(measurement.median), duration(measurement.mad)]


def untimed_copies(result: BenchResult) -> list[str]:
    """Return the copies that nobody edited, and that were not timed for it."""
    timed = {side_name(comparison.candidate).partition(" ")[0] for comparison in result.comparisons}
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
        if comparison.baseline.name != base:
            base = comparison.baseline.name
            rows.append([base, duration(comparison.baseline.median), "100 %", ""])
        share = f"{comparison.ratio * 100:.0f} %"
        interval = f"{comparison.low * 100:.0f} to {comparison.high * 100:.0f} %"
        part = _LEFT_OUT.get(ablation.left_out, ablation.left_out)
        rows.append([f"  {part}", duration(comparison.candidate.median), share, interval])
    return Table((Column(""), *_number_columns("median", "of it"), Column("interval")), rows)


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
    return Table((_NAME, *_number_columns("registers", "spills", "shared bytes")), rows)


def settings_table(results: Sequence[BenchResult]) -> Iterator[Block]:
    """Yield a row for each thing timed, a column for each setting: medians, as multiples of the first."""
    medians = [_medians(result) for result in results]
    titles = [f"{result.values}, {result.threads} thr" for result in results]
    rows: list[list[Cell]] = []
    largest: tuple[float, str, str] = (1.0, "", "")
    for name, first in medians[0].items():
        row: list[Cell] = [name, duration(first)]
        for title, others in zip(titles[1:], medians[1:], strict=True):
            median = others.get(name)
            row.append("-" if median is None else f"{duration(median)} {median / first:.2f}x")
            if median is not None:
                largest = max(largest, (max(median / first, first / median), name, title))
        rows.append(row)
    yield Heading(("depending on the setting", "bold"), 2)
    yield Table((Column(""), *_number_columns(*titles)), rows)
    factor, name, title = largest
    if factor >= 1.1:  # so many times as long: it depends on the setting
        yield Line(
            f"{name} takes {factor:.2f} times as long, or as short, with {title}: state it with a time."
        )


def _medians(result: BenchResult) -> dict[str, float]:
    timed = [
        side for comparison in result.comparisons for side in (comparison.baseline, comparison.candidate)
    ]
    return {measurement.name: measurement.median for measurement in (*timed, *result.alone)}


# Why compiled code takes longer than its kernels.


def overhead_table(overheads: Overheads) -> Iterator[Block]:
    """Yield a row for each kernel, then launches, wrapper and guards, their sum, remarks, and a sentence."""
    sides: tuple[Side, ...] = ("host",) if overheads.device == "cpu" else ("device", "host")
    rows = [
        _overhead_cells(row, titled=len(sides) > 1)
        for side in sides
        for row in overheads.rows
        if row.side == side
    ]
    if (alone := overheads.guards_alone) is not None:
        rows.append([("guards by themselves", "dim"), (_signed(alone), "dim"), "", ""])
    yield Table((_NAME, *_number_columns("median", "MAD", "share")), rows)
    for remark in overheads.remarks:
        yield Line((f"remark: {sentence(remark)}", "dim"))
    if overheads.disturbed:
        blocks = counted(overheads.disturbed, "block")
        yield Line((f"remark: {blocks} stayed disturbed by what else ran on these cores", "dim"))
    yield Line(overhead_sentence(overheads))


def _overhead_cells(row: OverheadRow, *, titled: bool) -> list[Cell]:
    times = f" x{row.launches}" if row.launches > 1 and row.kind in ("kernel", "library") else ""
    parts = {
        "launches": "launches",
        "wrapper": "wrapper",
        "guards": "guards",
        "rest": "other work of the GPU",
    }
    name = Name(parts.get(row.kind) or f"{row.name}{times}")
    if row.kind == "total" and titled:
        name = Name(f"{row.name} ({'GPU' if row.side == 'device' else 'host'})")
    style = "bold" if row.kind == "total" else ""
    return [
        (name, style),
        (_signed(row.median), style),
        _signed(row.mad),
        (f"{row.share * 100:.1f} %", style),
    ]


def overhead_sentence(overheads: Overheads) -> str:
    """Say the table in one sentence.

    `call takes 521.0 us: kernels 430.0, wrapper 70.0 (2 allocations), launches 12.0; guards add 9.0`.
    """
    total = overheads.row("total")
    if total is None:
        return "nothing was timed."
    guards = overheads.row("guards")
    call = total.median - guards.median if guards else total.median
    kernels = [row for row in overheads.rows if row.kind in ("kernel", "library")]
    parts = []
    if kernels and overheads.device == "cpu":
        parts.append(f"kernels {_signed(sum(row.median for row in kernels))}")
    if wrapper := overheads.row("wrapper"):
        parts.append(f"wrapper {_measured(wrapper)} ({counted(overheads.allocations, 'allocation')})")
    if launches := overheads.row("launches"):
        parts.append(f"{counted(launches.launches, 'launch', 'launches')} {_measured(launches)}")
    whose = " of the host's time" if overheads.device != "cpu" else ""
    text = f"call takes {duration(call)}{whose}" + (f": {', '.join(parts)}" if parts else "")
    if guards:
        text += f"; guards add {_measured(guards)}"
    if overheads.bound and (device := overheads.row("total", "device")):
        slower = "the GPU" if overheads.bound == "device" else "the host"
        wall = f", {duration(overheads.wall)} from call to call" if overheads.wall else ""
        text += f"; the GPU works {duration(device.median)}: {slower} is what bounds it{wall}"
    return text + "."


def _measured(row: OverheadRow) -> str:
    return _signed(row.median) if row.nonzero else f"{_signed(row.median)} (too short to measure)"


def _signed(seconds: float) -> str:
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)


# Kernels against what this machine was measured to reach.


def roofline_table(roofline: Roofline, rows: Sequence[RooflineRow]) -> Iterator[Block]:
    """Yield the roofline in a line, a row for each kernel, and which of them cannot be believed."""
    yield Line((roofline_sentence(roofline), "dim"))
    if rows:
        columns = (*_number_columns("alone", "bytes", "rate", "share"), Column("of a copy in", fold="never"))
        yield Table((_NAME, *columns), [_copy_cells(row) for row in rows])
    if products := [row for row in rows if row.flop_rate is not None]:
        columns = (
            *_number_columns("alone", "flops", "rate", "share"),
            Column("of a product of", fold="never"),
        )
        yield Table((_NAME, *columns), [_product_cells(row) for row in products])
    for row in rows:
        for remark in row.remarks:
            yield Line([("remark: ", "yellow"), f"{row.work.name}: {sentence(remark)}"])
    for remark in roofline.remarks:
        yield Line((f"remark: {sentence(remark)}", "dim"))


def _copy_cells(row: RooflineRow) -> list[Cell]:
    rate, share = rate_text(row.rate, "B/s"), _share(row.share)
    return [
        Name(row.work.name),
        duration(row.seconds),
        bytes_text(row.work.moved),
        rate,
        share,
        row.place or "",
    ]


def _product_cells(row: RooflineRow) -> list[Cell]:
    rate, share = rate_text(row.flop_rate, "FLOP/s"), _share(row.flop_share)
    flops = f"{row.work.flops or 0:.3g}"
    return [Name(row.work.name), duration(row.seconds), flops, rate, share, row.work.dtype or ""]


def roofline_sentence(roofline: Roofline) -> str:
    """Say what was measured.

    `this machine copies 11.2 GB/s in memory and 48.3 GB/s in cache (2 MiB), and multiplies matrices of
    float32 with 71.0 GFLOP/s (1 thread)`.
    """
    copies, products = [], []
    for peak in roofline.peaks:
        if peak.what == "copy":
            size = roofline.cache if peak.place == "cache" else roofline.last_cache
            place = f"in {peak.place}" if peak.place == "memory" else f"in {peak.place} ({bytes_text(size)})"
            copies.append(f"{rate_text(peak.rate, 'B/s')} {place}")
        elif peak.what == "matmul":
            products.append(f"of {peak.place} with {rate_text(peak.rate, 'FLOP/s')}")
    parts = [f"copies {' and '.join(copies)}"] if copies else []
    parts += [f"multiplies matrices {' and '.join(products)}"] if products else []
    threads = f" ({counted(roofline.threads, 'thread')})" if roofline.device == "cpu" else ""
    machine = "this machine" if roofline.device == "cpu" else roofline.device
    return f"{machine} {', and '.join(parts)}{threads}; copies count bytes read and written"


def rate_text(rate: float | None, unit: str) -> str:
    """`48.3 GB/s`; nothing where not known."""
    if rate is None:
        return ""
    units = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
    size, prefix = next((step for step in units if rate >= step[0]), units[-1])
    return f"{rate / size:.3g} {prefix}{unit}"


def _share(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.3g} %"


# The configs of Triton kernels, and named rewrites.


def config_sweeps(sweeps: Sequence[ConfigSweep]) -> Iterator[Block]:
    """Yield the configs of each kernel, fastest first; `*` marks the one that inductor chose."""
    for number, sweep in enumerate(sweeps):
        if number:
            yield Line()
        configs = sweep.configs
        keys = list(dict.fromkeys(key for config in configs for key, _ in config.values))
        noted = any(config.remark for config in configs)
        numbers = _number_columns(*keys, "us", "mad", "of chosen", "regs", "spills", "shared")
        last = (Column("from", fold="never"), *([Column("note")] if noted else []))
        yield Heading((f"configs of {sweep.kernel}", "bold"))
        yield Table((Column("", fold="never"), *numbers, *last), list(_configs(configs, keys, noted=noted)))
        yield Line(sweep_sentence(configs))
        for remark in sweep.remarks:
            yield Line(sentence(remark))


def _configs(configs: Sequence[ConfigTime], keys: Sequence[str], *, noted: bool) -> Iterator[list[Cell]]:
    chosen = next((config.median for config in configs if config.chosen), None)
    for config in configs:
        values = dict(config.values)
        counts = (config.registers, config.spills, config.shared)
        yield [
            "*" if config.chosen else "",
            *(str(values.get(key, "")) for key in keys),
            "" if config.median is None else f"{config.median * 1e6:.2f}",
            "" if config.mad is None else f"{config.mad * 1e6:.2f}",
            "" if config.median is None or not chosen else f"{config.median / chosen:.3f}x",
            *("" if count is None else str(count) for count in counts),
            config.origin,
            *([sentence(config.remark) if config.remark else ""] if noted else []),
        ]


def sweep_sentence(configs: Sequence[ConfigTime]) -> str:
    """Say whether another config is faster, by 1 % at least, than the one that inductor chose."""
    times = [(config.median, config) for config in configs if config.median is not None]
    missing = (
        f"; {len(configs) - len(times)} of {len(configs)} have no time" if len(times) < len(configs) else ""
    )
    chosen = next((median for median, config in times if config.chosen), None)
    if not chosen:
        return f"the config that inductor chose has no time{missing}"
    fastest, best = min(times, key=lambda time: time[0])
    ratio = fastest / chosen
    if best.chosen or ratio > 0.99:
        return f"no config is more than 1 % faster than the one that inductor chose{missing}"
    values = " ".join(f"{key}={value}" for key, value in best.values)
    return f"{values} takes {ratio:.3f}x the time of the config that inductor chose{missing}"


def rewrite_list(rows: Sequence[RewriteRow]) -> Iterator[Block]:
    """Yield each rewrite: its form, what it does, and specs that make variants of the graph."""
    for row in rows:
        yield Heading([(row.name, "bold"), f":{row.arguments}"], 2)
        yield Line(row.help, 4)
        if row.specs:
            specs = (repr(spec) if " " in spec else spec for spec in row.specs[:_MOST_SPECS])
            yield Code("\n".join(specs), indent=4)
        else:
            yield Line(("applies to nothing in this graph", "dim"), 4)
        if len(row.specs) > _MOST_SPECS:
            yield Line((f"and {counted(len(row.specs) - _MOST_SPECS, 'more spec')}: --json", "dim"), 4)
