"""What inductor chose among: choices with their times, and the one that runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.autotuning import TemplateChoice, Tuning
from inductor_probe.model.code import Pairs
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Table, by_graph

_SOURCES = {
    "probe": "as probe dump saw it",
    "torch": "as torch wrote it down (log_autotuning_results)",
    "log": "as torch printed it",
    "cache": "a .best_config in inductor's cache",
}


def tuning_tables(tunings: Sequence[Tuning]) -> Iterator[Block]:
    """Yield the choices of each operation or kernel from fastest to slowest; `*` marks the one that runs."""
    yield from by_graph((tuning.graph or "", _table(tuning)) for tuning in tunings)


def _table(tuning: Tuning) -> Iterator[Block]:
    title = tuning.operation if tuning.of_kernel else f"{tuning.operation}({', '.join(tuning.inputs)})"
    kernel = f" -> {tuning.kernel}" if tuning.kernel and not tuning.of_kernel else ""
    yield Heading([(title, "bold"), kernel])
    yield Line((f"{_counted(tuning)}, {_SOURCES[tuning.source]}; {_cache(tuning)}", "dim"))
    with_resources = any(choice.registers is not None for choice in tuning.choices)
    resources = _RESOURCES if with_resources else ()
    rows = list(_rows(tuning, with_resources=with_resources))
    yield Table((*_COLUMNS, *resources, Column("config")), rows, 2)
    if same := common_config(tuning.choices):
        yield Line((f"all {'configs' if tuning.of_kernel else 'templates'}: {_joined(same)}", "dim"), 2)
    if sentence := tuning_sentence(tuning):
        yield Line(sentence)


_COLUMNS = (
    Column("", fold="never"),
    Column("choice", fold="never"),
    Column("us", right=True, fold="never"),
    Column("of best", right=True, fold="never"),
    Column("kind", fold="never"),
)
_RESOURCES = (Column("registers", right=True, fold="never"), Column("spills", right=True, fold="never"))


def _rows(tuning: Tuning, *, with_resources: bool) -> Iterator[list[Cell]]:
    best = tuning.fastest
    same = dict(common_config(tuning.choices))
    for choice in tuning.choices:
        own = tuple((name, value) for name, value in choice.config if same.get(name) != value)
        time, ratio = "" if tuning.source == "cache" else "failed", ""
        if choice.ms is not None:
            time = f"{choice.ms * 1e3:.2f}"
            ratio = f"{choice.ms / best.ms:.2f}x" if best and best.ms else ""
        mark = "*" if choice.name == tuning.generated else ""
        counts = [choice.registers, choice.spills] if with_resources else []
        words = [choice.kind or "", *("" if count is None else str(count) for count in counts), _joined(own)]
        yield [mark, (choice.name, "bold" if mark else ""), time, ratio, *words]


def common_config(choices: Sequence[TemplateChoice]) -> Pairs:
    """Return what all templates among the choices have in common, if there are several."""
    configs = [choice.config for choice in choices if choice.config]
    if len(configs) < 2:
        return ()
    return tuple(pair for pair in configs[0] if all(pair in config for config in configs[1:]))


def _joined(config: Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in config)


def _counted(tuning: Tuning) -> str:
    number, noun = len(tuning.choices), "config" if tuning.of_kernel else "choice"
    counted = f"1 {noun}" if number == 1 else f"{number} {noun}s"
    return (
        counted
        if tuning.complete or tuning.of_kernel
        else f"the best {number} choices (torch prints no more)"
    )


def _cache(tuning: Tuning) -> str:
    if tuning.source == "cache":
        return "the next compile finds it (a hit), and times nothing"
    if tuning.cached is None:
        return "whether they were timed now or came from a cache is not known"
    hit, miss = "a cache hit: nothing was timed", "a cache miss: timed in this compile"
    return hit if tuning.cached else miss if tuning.source == "probe" else "timed in this run"


def tuning_sentence(tuning: Tuning) -> str:
    """Say whether the wrapper runs the fastest choice; empty where that is not proved."""
    best = tuning.fastest
    if best is None:
        return "" if tuning.source == "cache" else "no choice has a time"
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
