"""The overhead table: why compiled code takes longer than its kernels."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.bench import OverheadRow, Overheads, Side
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.units import counted, duration, shorten
from inductor_probe.report.words.remarks import sentence

_OTHERS = 40
_NAMES = {"launches": "launches", "wrapper": "wrapper", "guards": "guards", "rest": "other work of the GPU"}


class OverheadTable:
    """A row for each kernel, then launches, wrapper and guards, their sum, remarks, and a sentence."""

    def __init__(self, table: Overheads) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self.table
        yield Columns(_COLUMNS, list(self._rows(max(options.max_width - _OTHERS, 18))))
        for remark in table.remarks:
            yield Text(f"remark: {sentence(remark)}", style="dim")
        if table.disturbed:
            times = counted(table.disturbed, "block")
            yield Text(f"remark: {times} stayed disturbed by what else ran on these cores", style="dim")
        yield Text(overhead_sentence(table))

    def _rows(self, room: int) -> Iterator[list[Cell]]:
        sides: tuple[Side, ...] = ("host",) if self.table.device == "cpu" else ("device", "host")
        for side in sides:
            for row in self.table.rows:
                if row.side == side:
                    yield self._row(row, room, titled=len(sides) > 1)
        if (alone := self.table.guards_alone) is not None:
            yield [("guards by themselves", "dim"), (_signed(alone), "dim"), "", ""]

    def _row(self, row: OverheadRow, room: int, *, titled: bool) -> list[Cell]:
        times = f" x{row.launches}" if row.launches > 1 and row.kind in ("kernel", "library") else ""
        name = _NAMES.get(row.kind) or shorten(row.name, room - len(times)) + times
        if row.kind == "total":
            name = f"{row.name} ({'GPU' if row.side == 'device' else 'host'})" if titled else row.name
        style = "bold" if row.kind == "total" else ""
        share = f"{row.share * 100:.1f} %"
        return [(name, style), (_signed(row.median), style), _signed(row.mad), (share, style)]


_COLUMNS = (
    Column("", folds=False),
    Column("median", right=True, folds=False),
    Column("MAD", right=True, folds=False),
    Column("share", right=True, folds=False),
)


def overhead_sentence(table: Overheads) -> str:
    """Say the table in one sentence.

    `compiled takes 521.0 us: kernels 430.0, wrapper 70.0 (2 allocations), launches 12.0; guards add 9.0`.
    """
    total = table.row("total")
    if total is None:
        return "nothing was timed."
    guards = table.row("guards")
    call = total.median - guards.median if guards else total.median
    kernels = [row for row in table.rows if row.kind in ("kernel", "library")]
    if table.device == "cpu":
        said = [f"kernels {_signed(sum(row.median for row in kernels))}"] if kernels else []
    else:
        said = []
    if wrapper := table.row("wrapper"):
        made = f" ({counted(table.allocations, 'allocation')})"
        said.append(f"wrapper {_told(wrapper)}{made}")
    if launches := table.row("launches"):
        said.append(f"{counted(launches.launches, 'launch', 'launches')} {_told(launches)}")
    whose = " of the host's time" if table.device != "cpu" else ""
    text = f"call takes {duration(call)}{whose}" + (f": {', '.join(said)}" if said else "")
    if guards:
        text += f"; guards add {_told(guards)}"
    if table.bound and (device := table.row("total", "device")):
        slower = "the GPU" if table.bound == "device" else "the host"
        wall = f", {duration(table.wall)} from call to call" if table.wall else ""
        text += f"; the GPU works {duration(device.median)}: {slower} is what bounds it{wall}"
    return text + "."


def _told(row: OverheadRow) -> str:
    return _signed(row.median) if row.told else f"{_signed(row.median)} (too little to tell)"


def _signed(seconds: float) -> str:
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)
