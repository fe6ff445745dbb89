"""Where the time of a compiled call goes, and how near its kernels come to the roofline of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.catalogue.templates import joined
from inductor_probe.model.bench import RooflineRow
from inductor_probe.model.call_parts import CallPart, Overheads, Side
from inductor_probe.model.timing import Roofline
from inductor_probe.report.document import Block, Cell, Column, Line, Name, Table
from inductor_probe.report.units import bytes_text, counted, duration, rate_text, three_digits
from inductor_probe.report.words.remarks import sentence

_NAME = Column("", fold="middle")
_ROWS = {
    "launches": "launches",
    "wrapper": "rest (wrapper)",
    "rest": "other work of the GPU",
}
NOT_MEASURABLE = "not measurable"


def number_columns(*titles: str) -> list[Column]:
    """Return columns of numbers, which keep their width."""
    return [Column(title, right=True, fold="never") for title in titles]


def overhead_table(overheads: Overheads) -> Iterator[Block]:
    """Yield a row for each kernel, then launches and wrapper, their sums, and remarks."""
    sides: tuple[Side, ...] = ("host",) if overheads.device == "cpu" else ("device", "host")
    rows = [_overhead_cells(row, overheads) for side in sides for row in overheads.rows if row.side == side]
    yield Table((_NAME, *number_columns("time", "MAD", "share")), rows)
    for remark in overheads.remarks:
        yield Line((sentence(remark), "dim"))
    if overheads.processes == 1:
        yield Line(
            (
                "times of one process: those of others differ by a few percent; ratios are of all processes",
                "dim",
            )
        )
    if overheads.disturbed:
        blocks = counted(overheads.disturbed, "block")
        yield Line((f"{blocks} of calls shared their core with other programs in every attempt", "dim"))


def _overhead_cells(row: CallPart, overheads: Overheads) -> list[Cell]:
    on_cpu = overheads.device == "cpu"
    times = f" x{row.launches}" if row.launches > 1 and row.kind in ("kernel", "library") else ""
    scaled = " (scaled)" if overheads.scale < 1 and row.kind in ("kernel", "library") else ""
    name = _ROWS.get(row.kind) or f"{row.name}{times}{scaled}"
    if row.kind == "launches" and on_cpu:
        name = "  of that: launches"
    if row.kind == "call" and not on_cpu:
        name += f" ({'GPU' if row.side == 'device' else 'host'})"
    style = "bold" if row.kind == "call" else ""
    share = f"{row.share * 100:.1f} %"
    if not row.nonzero:
        return [Name(name), (overhead_time(row), "dim"), "", ""]
    return [(Name(name), style), (duration(row.seconds), style), duration(row.mad), (share, style)]


def overhead_time(row: CallPart) -> str:
    """Return `1.284 us` or, where it may be nothing, `not measurable (below 2.100 us)`."""
    if row.nonzero:
        return duration(row.seconds)
    return NOT_MEASURABLE + (f" (below {duration(row.below)})" if row.below else "")


def overhead_sentence(overheads: Overheads) -> str:
    """Say the table in one sentence.

    `Compiled call takes 512.0 us: kernels 442.0 us; rest (wrapper) 70.00 us, 2 allocations.`
    """
    call = overheads.row("call")
    if call is None:
        return "nothing was timed."
    cuda = overheads.device != "cpu"
    parts = []
    for kind, title in (("kernel", "kernels"), ("library", "library calls")):
        rows = [row for row in overheads.rows if row.kind == kind]
        if rows and not cuda:
            parts.append(f"{title} {duration(sum(row.seconds for row in rows))}")
    if (launches := overheads.row("launches")) and cuda:
        parts.append(f"{counted(launches.launches, 'launch', 'launches')} {overhead_time(launches)}")
    if wrapper := overheads.row("wrapper"):
        allocations = counted(overheads.allocations, "allocation")
        parts.append(f"rest (wrapper) {overhead_time(wrapper)}, {allocations}")
    whose = " of the host's time" if cuda else ""
    text = f"{call.name} takes {duration(call.seconds)}{whose}" + (f": {'; '.join(parts)}" if parts else "")
    if overheads.bound and (device := overheads.row("call", "device")):
        slower = "the GPU" if overheads.bound == "device" else "the host"
        wall = f", {duration(overheads.wall)} from call to call" if overheads.wall else ""
        text += f". The GPU is busy for {duration(device.seconds)}: {slower} limits the rate of calls{wall}"
    return text + "."


# Kernels against what this machine was measured to reach.


def roofline_table(roofline: Roofline, rows: Sequence[RooflineRow]) -> Iterator[Block]:
    """Yield the roofline in a line, a row for each kernel, and which of them cannot be believed."""
    yield Line((roofline_sentence(roofline), "dim"))
    if rows:
        columns = (*number_columns("time", "bytes", "rate", "share"), Column("of a copy in", fold="never"))
        yield Table((_NAME, *columns), [_copy_cells(row) for row in rows])
    if products := [row for row in rows if row.work.flops is not None]:
        columns = (
            *number_columns("time", "flops", "rate", "share"),
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
    moved = bytes_text(row.work.moved)
    return [Name(row.work.name), duration(row.seconds), moved, rate, share, row.place or ""]


def _product_cells(row: RooflineRow) -> list[Cell]:
    rate, share = rate_text(row.flop_rate, "FLOP/s"), _share(row.flop_share)
    flops = rate_text(row.work.flops, "FLOP")
    return [Name(row.work.name), duration(row.seconds), flops, rate, share, row.work.dtype or ""]


def rate_sentence(row: RooflineRow) -> str | None:
    """Return `k reaches 6.11 % of the copy bandwidth in cache (11 GB/s)`; None where no share is known.

    A rate that nothing reached on this machine is not shown: the remark on it is.
    """
    if below := next((remark for remark in row.remarks if remark.code == "below-copy-rate"), None):
        return f"{row.work.name}: {sentence(below)}"
    for remark in row.remarks:
        if remark.code in ("above-matmul-rate", "above-copy-rate"):
            return f"{row.work.name}: {sentence(remark)}"
    if row.flop_share is not None and (row.share is None or row.flop_share > row.share):
        rate = rate_text(row.flop_rate, "FLOP/s")
        return f"{row.work.name} reaches {_share(row.flop_share)} of the matmul rate ({rate})"
    if row.share is None:
        return None
    rate = rate_text(row.rate, "B/s")
    return f"{row.work.name} reaches {_share(row.share)} of the copy bandwidth in {row.place} ({rate})"


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
    parts = [f"copies {joined(copies)}"] if copies else []
    parts += [f"multiplies matrices {' and '.join(products)}"] if products else []
    threads = f" ({counted(roofline.threads, 'thread')})" if roofline.device == "cpu" else ""
    machine = "this machine" if roofline.device == "cpu" else roofline.device
    return f"{machine} {', and '.join(parts)}{threads}; copies count bytes read and written"


def _share(share: float | None) -> str:
    return "" if share is None else f"{three_digits(share * 100)} %"
