"""What max-autotune considered: choices with their times, the winner, and cached configs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.kernel_facts import Pairs
from inductor_probe.model.templates import BestConfig, TemplateChoice, Tuning
from inductor_probe.report.columns import Cell, Column, Columns

_SOURCES = {
    "probe": "as probe dump saw it",
    "torch": "as torch wrote it down (log_autotuning_results)",
    "log": "as torch printed it",
}


class TuningTable:
    """The choices of one operation from fastest to slowest; `*` marks the one that the wrapper runs."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tuning = self.tuning
        title = f"{tuning.operation}({', '.join(tuning.inputs)})"
        kernel = f" -> {tuning.kernel}" if tuning.kernel else ""
        yield Text.assemble((title, "bold"), kernel)
        yield Text(f"{_counted(tuning)}, {_SOURCES[tuning.source]}; {_cache(tuning.cached)}", style="dim")
        yield Columns(_COLUMNS, list(_rows(tuning)), indent=2)
        same = common_config(tuning.choices)
        if same:
            yield Text(f"  all templates: {_joined(same)}", style="dim")
        if said := tuning_sentence(tuning):
            yield Text(said)


_COLUMNS = (
    Column("", folds=False),
    Column("choice", folds=False),
    Column("us", right=True, folds=False),
    Column("of best", right=True, folds=False),
    Column("kind", folds=False),
    Column("config"),
)


def _rows(tuning: Tuning) -> Iterator[list[Cell]]:
    best = tuning.fastest
    same = dict(common_config(tuning.choices))
    for choice in tuning.choices:
        own = tuple((name, value) for name, value in choice.config if same.get(name) != value)
        time, ratio = "failed", ""
        if choice.ms is not None:
            time = f"{choice.ms * 1e3:.2f}"
            ratio = f"{choice.ms / best.ms:.2f}x" if best and best.ms else ""
        mark = "*" if choice.name == tuning.generated else ""
        yield [mark, (choice.name, "bold" if mark else ""), time, ratio, choice.kind or "", _joined(own)]


def common_config(choices: Sequence[TemplateChoice]) -> Pairs:
    """Return what all templates among the choices have in common, if there are several."""
    configs = [choice.config for choice in choices if choice.config]
    if len(configs) < 2:
        return ()
    return tuple(pair for pair in configs[0] if all(pair in config for config in configs[1:]))


def _joined(config: Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in config)


def _counted(tuning: Tuning) -> str:
    number = len(tuning.choices)
    counted = "1 choice" if number == 1 else f"{number} choices"
    return counted if tuning.complete else f"the best {number} choices (torch prints no more)"


def _cache(cached: bool | None) -> str:
    if cached is None:
        return "whether they were timed now or came from a cache is not known"
    return "from the autotune cache: nothing was timed" if cached else "timed in this compile"


def tuning_sentence(tuning: Tuning) -> str:
    """Say whether the wrapper runs the fastest choice; empty where that is not proved."""
    best = tuning.fastest
    if best is None:
        return "no choice has a time"
    if tuning.generated is None:
        return f"{best.name} was fastest; which choice the wrapper runs could not be proved"
    if tuning.generated == best.name:
        second = tuning.choices[1] if len(tuning.choices) > 1 else None
        ahead = (
            f", {second.ms / best.ms - 1:.1%} ahead of {second.name}"
            if second and second.ms and best.ms
            else ""
        )
        return f"{best.name} was fastest{ahead}, and is what the wrapper runs"
    chosen = next(choice for choice in tuning.choices if choice.name == tuning.generated)
    slower = f" ({chosen.ms / best.ms:.2f}x its time alone)" if chosen.ms and best.ms else ""
    return (
        f"the wrapper runs {chosen.name}{slower}, though {best.name} was fastest: with what is fused into it "
        "inductor decides again"
    )


class BestConfigTable:
    """The configs that an autotune cache holds."""

    def __init__(self, configs: Sequence[BestConfig]) -> None:
        self.configs = configs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows: list[list[Cell]] = [
            [
                each.kernel or "(not known)",
                _joined(each.values),
                "coordinate descent" if each.by_descent else "tried",
                "" if each.took_ms is None else f"{each.took_ms} ms",
                each.path.name,
            ]
            for each in self.configs
        ]
        titles = ("kernel", "config", "found by", "tuning took", "file")
        yield Columns([Column(title, folds=title in ("config", "file")) for title in titles], rows)


def tunings_json(tunings: Sequence[Tuning]) -> list[dict[str, Any]]:
    """Return tunings with stable keys: those of `Tuning` and `TemplateChoice`; `ms` is in milliseconds.

    `config` is an object; `fastest` is the name of the fastest choice; `line` and `path` say where it was
    read.
    """
    return [
        {
            "operation": tuning.operation,
            "inputs": list(tuning.inputs),
            "source": tuning.source,
            "complete": tuning.complete,
            "cached": tuning.cached,
            "kernel": tuning.kernel,
            "generated": tuning.generated,
            "fastest": tuning.fastest.name if tuning.fastest else None,
            "choices": [{**asdict(choice), "config": dict(choice.config)} for choice in tuning.choices],
            "path": str(tuning.span.path) if tuning.span else None,
            "line": tuning.span.first if tuning.span else None,
        }
        for tuning in tunings
    ]


def best_configs_json(configs: Sequence[BestConfig]) -> list[dict[str, Any]]:
    """Return cached configs with stable keys: those of `BestConfig`, `values` as an object."""
    return [{**asdict(each), "path": str(each.path), "values": dict(each.values)} for each in configs]
