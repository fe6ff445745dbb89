"""The ceilings of this machine, measured in a child process, and kernels held against them."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from inductor_probe.errors import RunFailedError
from inductor_probe.machine.python_child import python_command
from inductor_probe.model.ceilings import CeilingRow, Ceilings, KernelWork
from inductor_probe.model.overheads import Overheads
from inductor_probe.store.json_object import JsonObject
from inductor_probe.store.samples import ceilings_from

_CHILD = Path(__file__).with_name("roofline_child.py")
_TIMEOUT_S = 120
_LOW, _HIGH = 0.01, 1.0
_LAUNCH_CPU_S, _LAUNCH_CUDA_S = 2e-6, 5e-6
"""Shorter kernels are bound by being started, whatever they move."""


def measure_ceilings(
    device: str = "cpu",
    *,
    threads: int = 1,
    dtypes: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Ceilings:
    """Measure copies and matrix products for about a third of a second each.

    Args:
        device: `cpu` or `cuda`.
        threads: of torch: those of the bench file.
        dtypes: of the matrix products, as torch names them; each once.
        environment: of the child; this process's if None.

    Raises:
        RunFailedError: torch could not run there, or has no such device.
    """
    wanted = [device, str(threads), *dict.fromkeys(dtypes)]
    with tempfile.TemporaryDirectory(prefix="ceilings-") as folder:
        try:
            ended = subprocess.run(
                python_command(_CHILD, *wanted),
                cwd=folder,
                env=None if environment is None else dict(environment),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunFailedError(f"the machine's ceilings could not be measured: {error}") from error
    last = (ended.stdout.strip().splitlines() or [""])[-1]
    if ended.returncode or not last.startswith("{"):
        why = (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]
        raise RunFailedError(f"the machine's ceilings could not be measured: {why}")
    return ceilings_from(JsonObject(json.loads(last)))


def ceiling_rows(
    works: Sequence[KernelWork], overheads: Overheads, ceilings: Ceilings, *, cold: bool = False
) -> tuple[CeilingRow, ...]:
    """Hold each kernel that was timed alone against the ceilings, in the order of `works`.

    Args:
        works: what each kernel has to do in a call.
        overheads: what each takes, without launches, in a call.
        ceilings: of the machine that it ran on, with as many threads.
        cold: data had left the caches: memory is what bounds any kernel then.
    """
    side = "host" if overheads.device == "cpu" else "device"
    rows = [row for row in overheads.rows if row.side == side and row.kind in ("kernel", "library")]
    found = []
    for work in works:
        taken = [row for row in rows if _runs(work.name, row.kind, row.name)]
        seconds = sum(row.median for row in taken)
        if seconds > 0:
            launches = sum(row.launches for row in taken)
            found.append(_row(work, seconds, launches, ceilings, cold=cold))
    return tuple(found)


def _runs(kernel: str, kind: str, name: str) -> bool:
    """Whether what was timed as `name` is `kernel`: `aten.mm.out` is what `extern_kernels.mm` runs."""
    if kind == "kernel":
        return kernel == name
    words = name.split(".")
    return len(words) > 1 and words[1] in kernel.split(".")


def _row(work: KernelWork, seconds: float, launches: int, ceilings: Ceilings, *, cold: bool) -> CeilingRow:
    place = "memory" if cold else _place((work.moved or 0) / max(launches, 1), ceilings)
    copy = ceilings.get("copy", place)
    rate = work.moved / seconds if work.moved is not None else None
    share = rate / copy.rate if rate is not None and copy else None
    product = ceilings.get("matmul", work.dtype or "")
    flop_rate = work.flops / seconds if work.flops is not None else None
    flop_share = flop_rate / product.rate if flop_rate is not None and product else None
    row = CeilingRow(work, seconds, rate, place if copy else None, share, flop_rate, flop_share, ())
    flags = _flags(row, seconds / max(launches, 1), ceilings, cold=cold)
    return CeilingRow(work, seconds, rate, row.place, share, flop_rate, flop_share, flags)


def _place(moved: float, ceilings: Ceilings) -> str:
    if moved <= ceilings.cache:
        return "cache"
    held = moved <= ceilings.last_cache / 2 and ceilings.get("copy", "last cache")
    return "last cache" if held else "memory"


def _flags(row: CeilingRow, launch_s: float, ceilings: Ceilings, *, cold: bool) -> tuple[str, ...]:
    flags = []
    if row.share is not None and row.share > _HIGH:
        flags.append(f"{row.share:.0%} of what a copy reaches: {_why_high(row, ceilings, cold=cold)}")
    if row.share is not None and row.share < _LOW and (row.flop_share is None or row.flop_share < _LOW):
        short = _LAUNCH_CPU_S if ceilings.device == "cpu" else _LAUNCH_CUDA_S
        if launch_s < short:
            why = f"launch-bound: {launch_s * 1e6:.2g} us is what starting it takes"
        elif row.work.indirect:
            why = "it reaches less than counted (its indices are loaded), or waits for each load"
        else:
            why = "bound by arithmetic, by one thread or by dependent steps, or it moves more than counted"
        flags.append(f"under {_LOW:.0%} of what a copy reaches: {why}")
    if row.flop_share is not None and row.flop_share > _HIGH:
        flags.append(
            f"{row.flop_share:.0%} of what a matrix product reaches: it suits the machine better than the "
            "square one that was measured, the machine was busy then, or the count is not of what it computes"
        )
    return tuple(flags)


def _why_high(row: CeilingRow, ceilings: Ceilings, *, cold: bool) -> str:
    moved = row.work.moved or 0
    if row.work.indirect:
        return "it reads less than counted: its indices are loaded"
    if row.place == "memory" and moved <= ceilings.last_cache and not cold:
        return "its data fit in the last cache, the copy's did not"
    if row.place != "memory" and moved <= ceilings.cache // 4:
        return "its data fit in a smaller cache than the copy's, or the machine was busy during the copy"
    return "it reads less than counted (parts of a buffer), or the bytes are wrong"
