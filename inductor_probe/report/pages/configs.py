"""What rewrite and sweep-configs show: the configs of Triton kernels with their times, and named rewrites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.autotuning import ConfigSweep, ConfigTime
from inductor_probe.model.bench import RewriteRow
from inductor_probe.model.record import grouped
from inductor_probe.report.document import Block, Cell, Code, Column, Heading, Line, Table, by_graph
from inductor_probe.report.pages.overheads import number_columns
from inductor_probe.report.units import counted
from inductor_probe.report.words.remarks import sentence

_MOST_SPECS = 6


def config_sweeps(sweeps: Sequence[ConfigSweep]) -> Iterator[Block]:
    """Yield the configs of each kernel, fastest first; `*` marks the one that inductor chose."""
    for number, sweep in enumerate(sweeps):
        if number:
            yield Line()
        configs = sweep.configs
        keys = list(dict.fromkeys(key for config in configs for key, _ in config.values))
        noted = any(config.remark for config in configs)
        numbers = number_columns(*keys, "us", "mad", "of chosen", "regs", "spills", "shared")
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
    graphs = grouped(rows, lambda row: row.graph)
    yield from by_graph((graph, _rewrites(members)) for graph, members in graphs.items())


def _rewrites(rows: Sequence[RewriteRow]) -> Iterator[Block]:
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
