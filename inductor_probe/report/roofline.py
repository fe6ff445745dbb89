"""Kernels against what this machine was measured to reach."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.bench import RooflineRow
from inductor_probe.model.timing import Roofline
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.units import bytes_text, duration, shorten
from inductor_probe.report.words.remarks import sentence

_OTHERS = 56
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


class RooflineTable:
    """The roofline in a line, a row for each kernel, and what is not to be believed."""

    def __init__(self, roofline: Roofline, rows: Sequence[RooflineRow]) -> None:
        self.roofline = roofline
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(roofline_sentence(self.roofline), style="dim")
        room = max(options.max_width - _OTHERS, 18)
        if self.rows:
            yield Columns(_COPIES, [_copy_cells(row, room) for row in self.rows])
        if products := [row for row in self.rows if row.flop_rate is not None]:
            yield Columns(_PRODUCTS, [_product_cells(row, room) for row in products])
        for row in self.rows:
            for remark in row.remarks:
                yield Text.assemble(("remark: ", "yellow"), f"{row.work.name}: {sentence(remark)}")
        for remark in self.roofline.remarks:
            yield Text(f"remark: {sentence(remark)}", style="dim")


def _copy_cells(row: RooflineRow, room: int) -> list[Cell]:
    name, moved = shorten(row.work.name, room), bytes_text(row.work.moved)
    share = _share(row.share)
    return [name, duration(row.seconds), moved, rate_text(row.rate, "B/s"), share, row.place or ""]


def _product_cells(row: RooflineRow, room: int) -> list[Cell]:
    name, flops = shorten(row.work.name, room), row.work.flops or 0
    rate = rate_text(row.flop_rate, "FLOP/s")
    return [name, duration(row.seconds), f"{flops:.3g}", rate, _share(row.flop_share), row.work.dtype or ""]


def _columns(amount: str, against: str) -> tuple[Column, ...]:
    numbers = [Column(name, right=True, folds=False) for name in ("alone", amount, "rate", "share")]
    return (Column("", folds=False), *numbers, Column(against, folds=False))


_COPIES = _columns("bytes", "of a copy in")
_PRODUCTS = _columns("flops", "of a product of")


def roofline_sentence(roofline: Roofline) -> str:
    """Say what was measured.

    `this machine copies 11.2 GB/s in memory and 48.3 GB/s in cache (2 MiB), and multiplies matrices of
    float32 with 71.0 GFLOP/s (1 thread)`.
    """
    copies = []
    for each in roofline.peaks:
        if each.what == "copy":
            size = roofline.cache if each.place == "cache" else roofline.last_cache
            where = f"in {each.place}" if each.place == "memory" else f"in {each.place} ({bytes_text(size)})"
            copies.append(f"{rate_text(each.rate, 'B/s')} {where}")
    products = [
        f"of {each.place} with {rate_text(each.rate, 'FLOP/s')}"
        for each in roofline.peaks
        if each.what == "matmul"
    ]
    said = [f"copies {' and '.join(copies)}"] if copies else []
    said += [f"multiplies matrices {' and '.join(products)}"] if products else []
    threads = (
        f" ({roofline.threads} thread{'' if roofline.threads == 1 else 's'})"
        if roofline.device == "cpu"
        else ""
    )
    machine = "this machine" if roofline.device == "cpu" else roofline.device
    return f"{machine} {', and '.join(said)}{threads}; copies count bytes read and written"


def rate_text(rate: float | None, unit: str) -> str:
    """`48.3 GB/s`; nothing where not known."""
    if rate is None:
        return ""
    size, prefix = next((each for each in _UNITS if rate >= each[0]), _UNITS[-1])
    return f"{rate / size:.3g} {prefix}{unit}"


def _share(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.3g} %"
