"""Kernels against what this machine was measured to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.ceilings import CeilingRow, Ceilings
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.units import bytes_text, duration, shorten

_OTHERS = 56
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


class CeilingTable:
    """The ceilings in a line, a row for each kernel, and what is not to be believed."""

    def __init__(self, ceilings: Ceilings, rows: Sequence[CeilingRow]) -> None:
        self.ceilings = ceilings
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(ceilings_sentence(self.ceilings), style="dim")
        room = max(options.max_width - _OTHERS, 18)
        if self.rows:
            yield Columns(_COPIES, [_copy_cells(row, room) for row in self.rows])
        if products := [row for row in self.rows if row.flop_rate is not None]:
            yield Columns(_PRODUCTS, [_product_cells(row, room) for row in products])
        for row in self.rows:
            for flag in row.flags:
                yield Text.assemble(("odd: ", "yellow"), f"{row.work.name}: {flag}")
        for note in self.ceilings.notes:
            yield Text(f"note: {note}", style="dim")


def _copy_cells(row: CeilingRow, room: int) -> list[Cell]:
    name, moved = shorten(row.work.name, room), bytes_text(row.work.moved)
    share = _share(row.share)
    return [name, duration(row.seconds), moved, rate_text(row.rate, "B/s"), share, row.place or ""]


def _product_cells(row: CeilingRow, room: int) -> list[Cell]:
    name, flops = shorten(row.work.name, room), row.work.flops or 0
    rate = rate_text(row.flop_rate, "FLOP/s")
    return [name, duration(row.seconds), f"{flops:.3g}", rate, _share(row.flop_share), row.work.dtype or ""]


def _columns(amount: str, against: str) -> tuple[Column, ...]:
    numbers = [Column(name, right=True, folds=False) for name in ("alone", amount, "rate", "share")]
    return (Column("", folds=False), *numbers, Column(against, folds=False))


_COPIES = _columns("bytes", "of a copy in")
_PRODUCTS = _columns("flops", "of a product of")


def ceilings_sentence(found: Ceilings) -> str:
    """Say what was measured.

    `this machine copies 11.2 GB/s in memory and 48.3 GB/s in cache (2 MiB), and multiplies matrices of
    float32 with 71.0 GFLOP/s (1 thread)`.
    """
    copies = []
    for each in found.found:
        if each.what == "copy":
            size = found.cache if each.place == "cache" else found.last_cache
            where = f"in {each.place}" if each.place == "memory" else f"in {each.place} ({bytes_text(size)})"
            copies.append(f"{rate_text(each.rate, 'B/s')} {where}")
    products = [
        f"of {each.place} with {rate_text(each.rate, 'FLOP/s')}"
        for each in found.found
        if each.what == "matmul"
    ]
    said = [f"copies {' and '.join(copies)}"] if copies else []
    said += [f"multiplies matrices {' and '.join(products)}"] if products else []
    threads = f" ({found.threads} thread{'' if found.threads == 1 else 's'})" if found.device == "cpu" else ""
    machine = "this machine" if found.device == "cpu" else found.device
    return f"{machine} {', and '.join(said)}{threads}; copies count bytes read and written"


def rate_text(rate: float | None, unit: str) -> str:
    """`48.3 GB/s`; nothing where not known."""
    if rate is None:
        return ""
    size, prefix = next((each for each in _UNITS if rate >= each[0]), _UNITS[-1])
    return f"{rate / size:.3g} {prefix}{unit}"


def ceilings_json(ceilings: Ceilings, rows: Sequence[CeilingRow]) -> dict[str, Any]:
    """Return ceilings and rows with stable keys, ready for `json.dumps`.

    `machine`: `torch`, `device`, `threads`, `cache` and `last_cache` (bytes), `found` (`what`: copy or
    matmul, `place`, `size`, `rate` in bytes or operations a second, `calls`), `notes`. `kernels`: `name`,
    `seconds`, `moved` (bytes), `rate`, `place`, `share`, `flops`, `dtype`, `flop_rate`, `flop_share`,
    `flags`; null where not known.
    """
    machine = asdict(ceilings)
    machine["found"], machine["notes"] = list(machine["found"]), list(ceilings.notes)
    return {"machine": machine, "kernels": [_row_json(row) for row in rows]}


def _row_json(row: CeilingRow) -> dict[str, Any]:
    plain = asdict(row)
    work = plain.pop("work")
    return {**work, **plain, "flags": list(row.flags)}


def _share(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.3g} %"
