"""What memory a call takes: its peak against eager's, and which buffers live when, as a plot of letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from inductor_probe.model.memory import (
    BufferLife,
    GraphMemory,
    HeldBy,
    LiveResult,
    MeasuredMemory,
    MemoryOutput,
)
from inductor_probe.report.document import (
    Block,
    Cell,
    Column,
    Heading,
    Line,
    Name,
    RemarkLine,
    Table,
    apart,
    first_place,
)
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.own_call import why_no_own_call

_MOST_ROWS, _MOST_LIVE = 8, 3
_WIDTH = 24
"""Letters of a plot: of more steps several are one letter."""
_LEVELS = " ▁▂▃▄▅▆▇█"
_MARGIN, _LEAST = 0.02, 0.01
"""Of a peak: allocators round, and smaller buffers are one line."""
_READ = ("", "aten.ones_like")
"""What a wrapper allocates, and the gradients of outputs with which `OwnCall` runs a backward."""
_HELD: dict[HeldBy, str] = {
    "call": "",
    "output": "returned",
    "saved": "saved",
    "forward": "of the forward",
    "gradient": "gradient",
}
_LIVES = (
    Column("buffer", fold="middle", least=14),
    Column("bytes", right=True, fold="never"),
    Column("lives", fold="never"),
    Column("is", fold="never", rank=1),
    Column("nodes", fold="middle", rank=2),
    Column("from", fold="path"),
)
_SIDES = (
    Column("measured", fold="never"),
    Column("peak", right=True, fold="never"),
    Column("at its end", right=True, fold="never"),
    Column("allocated", right=True, rank=1, fold="never"),
    Column("what lives at the peak"),
)


def memory_pages(record: MemoryOutput, *, everything: bool = False) -> Iterator[Block]:
    """Yield what was measured, and a plot of each graph; with `everything` of all that lives at any time."""
    pages = [*map(_measured, record.measured), *(_page(row, everything) for row in record.rows)]
    yield from apart(pages)
    if record.not_measured is not None:
        yield Line((f"{why_no_own_call(record.not_measured, 'peaks')}.".replace("timed", "measured"), "dim"))


def _measured(call: MeasuredMemory) -> Iterator[Block]:
    eager, compiled = call.eager.peak, call.compiled.peak
    what = f"{call.name}{', forward and backward' if call.backward else ''}"
    numbers = f"{bytes_text(compiled)} compiled, {bytes_text(eager)} in eager"
    more = compiled - eager
    if abs(more) <= _MARGIN * max(eager, compiled):
        yield RemarkLine("analysis", f"{what}: the same peak: {numbers}")
    else:
        share = f"{abs(more) / eager:.0%} {'more' if more > 0 else 'less'}" if eager else "eager takes none"
        yield RemarkLine("missed" if more > 0 else "passed", f"{what}: peak {numbers} ({share})")
    rows: list[list[Cell]] = [
        [name, bytes_text(side.peak), bytes_text(side.left), bytes_text(side.allocated), _live(side.live)]
        for name, side in (("eager", call.eager), ("compiled", call.compiled))
    ]
    yield Table(_SIDES, rows, 2)
    if call.read is not None and abs(compiled - call.read) > _MARGIN * compiled:
        others = [one for one in call.compiled.live if one.operator not in _READ]
        size, names = sum(one.bytes for one in others), ", ".join(one.operator for one in others[:_MOST_LIVE])
        beside = f"; what is called takes {bytes_text(size)} for itself: {names}" if others else ""
        yield Line((f"read in the wrappers: {bytes_text(call.read)}{beside}", "dim"), 2)


def _live(live: Sequence[LiveResult]) -> str:
    shown = [
        f"{one.operator or 'wrappers'} {bytes_text(one.bytes)}"
        + (f" in {one.count}" if one.count > 1 else "")
        for one in live[:_MOST_LIVE]
    ]
    more = len(live) - len(shown)
    return ", ".join(shown) + (f" +{more}" if more > 0 else "")


def _page(row: GraphMemory, everything: bool) -> Iterator[Block]:
    where = f" on {row.device}" if row.lives else ""
    text = f"{bytes_text(row.peak)}{where}" if row.lives else "nothing is allocated"
    yield Heading(
        [f"{row.graph}: peak ", (text, "bold"), f", read; {bytes_text(row.inputs)} of inputs not in it"]
    )
    if row.at is not None and row.lives:
        step = row.steps[row.at]
        place = f"{step.span.path.name}:{step.span.first}"
        number = f"step {row.at + 1} of {len(row.steps)}"
        yield Line(f"where {step.name} runs ({number}, {place}); {bytes_text(row.left)} at the end", 2)
        at_peak = [life for life in row.lives if life.at_peak]
        lives = row.lives if everything else [one for one in at_peak if one.bytes >= _LEAST * row.peak]
        whole: list[Cell] = ["all", bytes_text(row.peak), _levels(row), "", "", ""]
        rows = [whole, *(_life(life, len(row.steps)) for life in lives)]
        yield Table(_LIVES, rows, 2, most=None if everything else _MOST_ROWS + 1, more="--all, or --json")
        if not everything and (more := _more(row, at_peak, lives)):
            yield Line((more, "dim"), 2)
    if row.elsewhere:
        yield Line(f"and {bytes_text(row.elsewhere)} on other devices", 2)
    if row.uncounted:
        yield Line(f"not counted, as no file says their size: {', '.join(row.uncounted)}", 2)


def _more(row: GraphMemory, at_peak: Sequence[BufferLife], shown: Sequence[BufferLife]) -> str:
    smaller, others = len(at_peak) - len(shown), len(row.lives) - len(at_peak)
    size = sum(one.bytes for one in at_peak) - sum(one.bytes for one in shown)
    parts = [f"{counted(smaller, 'smaller buffer')} of {bytes_text(size)}"] if smaller else []
    parts += [f"{counted(others, 'buffer')} at other times"] if others else []
    return f"and {', '.join(parts)}: --all" if parts else ""


def _life(life: BufferLife, steps: int) -> list[Cell]:
    name = life.names[0] + (f" +{len(life.names) - 1}" if len(life.names) > 1 else "")
    bins = _bins(steps)
    plot = "".join("█" if first <= life.last and life.first < end else "·" for first, end in bins)
    nodes = life.nodes[0] + (f" +{len(life.nodes) - 1}" if len(life.nodes) > 1 else "") if life.nodes else ""
    return [Name(name), bytes_text(life.bytes), plot, _HELD[life.held], nodes, first_place(life.sources)]


def _levels(row: GraphMemory) -> str:
    """`▂▄█▄▂`: the most that lives in each of some steps, of the peak."""
    tops = [max(step.bytes for step in row.steps[first:end]) for first, end in _bins(len(row.steps))]
    return "".join(_LEVELS[-(-top * (len(_LEVELS) - 1) // row.peak)] for top in tops)


def _bins(steps: int) -> list[tuple[int, int]]:
    """Return the steps that each letter of a plot is for."""
    count = min(steps, _WIDTH)
    edges = [place * steps // count for place in range(count + 1)]
    return [*pairwise(edges)]
