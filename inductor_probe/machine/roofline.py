"""The roofline of this machine, measured in a child process, and how near each kernel comes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from inductor_probe.model.bench import RooflineRow
from inductor_probe.model.call_parts import Overheads
from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured
from inductor_probe.model.timing import KernelWork, Roofline

_LOW, _HIGH = 0.01, 1.0
_WINOGRAD = 4.0
"""By how much fewer products a 3x3 convolution takes than its definition, with tiles of 4x4 outputs: 36 for
16 x 9 (Winograd's algorithm, which oneDNN and cuDNN choose on their own)."""
_LAUNCH_CPU_S, _LAUNCH_CUDA_S = 2e-6, 5e-6
"""Shorter kernels are bound by being started, whatever they move."""


def roofline_rows(
    works: Sequence[KernelWork], overheads: Overheads, roofline: Roofline, *, cold: bool = False
) -> tuple[RooflineRow, ...]:
    """Compare each kernel that was timed alone with the roofline, in the order of `works`.

    `overheads` have what each takes of a call, all of its launches. `cold`: data had left the caches, so that
    memory bounds any kernel.
    """
    side = "host" if overheads.device == "cpu" else "device"
    rows = [row for row in overheads.rows if row.side == side and row.kind in ("kernel", "library")]
    compared = []
    for work in works:
        timed = [row for row in rows if runs_kernel(work.name, row.kind, row.name)]
        seconds = sum(row.seconds for row in timed)
        if seconds > 0:
            launches = sum(row.launches for row in timed)
            compared.append(roofline_row(work, seconds, launches, roofline, cold=cold))
    return tuple(compared)


def runs_kernel(kernel: str, kind: str, name: str) -> bool:
    """Whether what was timed as `name` is `kernel`: `aten.mm.out` is what `extern_kernels.mm` runs."""
    if kind == "kernel":
        return kernel == name
    words = name.split(".")
    return len(words) > 1 and words[1] in kernel.split(".")


def roofline_row(
    work: KernelWork, seconds: float, launches: int, roofline: Roofline, *, cold: bool
) -> RooflineRow:
    """Compare what takes `seconds`, in so many launches, with the roofline."""
    place = "memory" if cold else _place((work.moved or 0) / max(launches, 1), roofline)
    copy = roofline.peak("copy", place)
    rate = work.moved / seconds if work.moved is not None else None
    share = rate / copy.rate if rate is not None and copy else None
    product = roofline.peak("matmul", work.dtype or "")
    flop_rate = work.flops / seconds if work.flops is not None else None
    flop_share = flop_rate / product.rate if flop_rate is not None and product else None
    row = RooflineRow(work, seconds, rate, place if copy else None, share, flop_rate, flop_share, ())
    row = replace(row, remarks=_remarks(row, seconds / max(launches, 1), roofline, cold=cold))
    return _without_refused(row)


def _without_refused(row: RooflineRow) -> RooflineRow:
    """Return a row without the rates that nothing reached on this machine: its remarks say why."""
    reasons = {remark.code: remark.number("reason") for remark in row.remarks}
    if reasons.get("above-copy-rate", "last-cache") != "last-cache":
        row = replace(row, rate=None, place=None, share=None)
    if "above-matmul-rate" in reasons:
        row = replace(row, flop_rate=None, flop_share=None)
    return row


def copy_share(moved: int, seconds: float, launches: int, roofline: Roofline) -> float | None:
    """Return the share of a copy's rate that moving bytes in `seconds` is, in so many launches."""
    copy = roofline.peak("copy", _place(moved / max(launches, 1), roofline))
    return moved / seconds / copy.rate if copy and seconds > 0 else None


def _place(moved: float, roofline: Roofline) -> str:
    if moved <= roofline.cache:
        return "cache"
    fits = moved <= roofline.last_cache / 2 and roofline.peak("copy", "last cache")
    return "last cache" if fits else "memory"


def _remarks(row: RooflineRow, launch_s: float, roofline: Roofline, *, cold: bool) -> tuple[Remark, ...]:
    """Return why a share is not to be believed; `reason` is the likeliest one, and no more than that."""

    def remark(code: RemarkCode, share: float | None, numbers: Mapping[str, Number]) -> Remark:
        subject = Subject("kernel", row.work.name)
        return measured(code, "analysis", subject, {"share": share, **numbers})

    remarks = []
    if row.share is not None and row.share > _HIGH:
        reason = _why_high(row, roofline, cold=cold)
        remarks.append(remark("above-copy-rate", row.share, {"reason": reason}))
    if row.share is not None and row.share < _LOW and (row.flop_share is None or row.flop_share < _LOW):
        short = launch_s < (_LAUNCH_CPU_S if roofline.device == "cpu" else _LAUNCH_CUDA_S)
        reason = "launch" if short else "indirect" if row.work.indirect else "arithmetic"
        remarks.append(remark("below-copy-rate", row.share, {"reason": reason, "launch_s": launch_s}))
    if row.flop_share is not None and row.flop_share > _HIGH:
        fewer = "convolution" in row.work.name and row.flop_share <= _WINOGRAD
        reason = "fewer-products" if fewer else "flop-count"
        remarks.append(remark("above-matmul-rate", row.flop_share, {"reason": reason}))
    return tuple(remarks)


def _why_high(row: RooflineRow, roofline: Roofline, *, cold: bool) -> str:
    moved = row.work.moved or 0
    if row.work.indirect:
        return "indirect"
    fastest = max((peak.rate for peak in roofline.peaks if peak.what == "copy"), default=0.0)
    if row.place == "memory" and moved <= roofline.last_cache and not cold and (row.rate or 0) <= fastest:
        return "last-cache"
    if row.place != "memory" and moved <= roofline.cache // 4:
        return "smaller-cache"
    return "fewer-bytes"
