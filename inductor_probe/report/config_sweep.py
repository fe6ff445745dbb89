"""The configs of Triton kernels in a table each, and whether another is faster than the chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.autotuning import ConfigSweep, ConfigTime
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.words.remarks import sentence

_LEAST = 0.01
"""A config that is faster by less than this share is not worth a change."""


class ConfigSweepTable:
    """The configs of one kernel, fastest first; `*` marks the one that inductor chose."""

    def __init__(self, sweep: ConfigSweep) -> None:
        self.sweep = sweep

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        configs = self.sweep.configs
        yield Text(f"configs of {self.sweep.kernel}", style="bold")
        keys = list(dict.fromkeys(key for config in configs for key, _ in config.values))
        titles = ("us", "mad", "of chosen", "regs", "spills", "shared")
        yield Columns(
            [
                Column("", folds=False),
                *(Column(title, right=True, folds=False) for title in (*keys, *titles)),
                Column("from", folds=False),
                *([Column("note")] if any(config.remark for config in configs) else []),
            ],
            list(_rows(configs, keys)),
        )
        yield Text(sweep_sentence(configs))
        for remark in self.sweep.remarks:
            yield Text(sentence(remark))


def _rows(configs: Sequence[ConfigTime], keys: Sequence[str]) -> Iterator[list[Cell]]:
    chosen = next((config.median for config in configs if config.chosen), None)
    noted = any(config.remark for config in configs)
    for config in configs:
        values = dict(config.values)
        yield [
            "*" if config.chosen else "",
            *(str(values.get(key, "")) for key in keys),
            "" if config.median is None else f"{config.median * 1e6:.2f}",
            "" if config.mad is None else f"{config.mad * 1e6:.2f}",
            "" if config.median is None or not chosen else f"{config.median / chosen:.3f}x",
            *(
                "" if count is None else str(count)
                for count in (config.registers, config.spills, config.shared)
            ),
            config.origin,
            *([sentence(config.remark) if config.remark else ""] if noted else []),
        ]


def sweep_sentence(configs: Sequence[ConfigTime]) -> str:
    """Say whether another config is faster than the one that inductor chose."""
    times = [(config.median, config) for config in configs if config.median is not None]
    missing = (
        f"; {len(configs) - len(times)} of {len(configs)} have no time" if len(times) < len(configs) else ""
    )
    chosen = next((median for median, config in times if config.chosen), None)
    if not chosen:
        return f"the config that inductor chose has no time{missing}"
    fastest, best = min(times, key=lambda time: time[0])
    ratio = fastest / chosen
    if best.chosen or ratio > 1 - _LEAST:
        return f"no config is more than {100 * _LEAST:g} % faster than the one that inductor chose{missing}"
    values = " ".join(f"{key}={value}" for key, value in best.values)
    return f"{values} takes {ratio:.3f}x the time of the config that inductor chose{missing}"
