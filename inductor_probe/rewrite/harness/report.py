"""The report: hazards, a table in the form of `torch.utils.benchmark`, a sentence for each finding."""

from __future__ import annotations

import math
import os
import platform
import re
import statistics
import textwrap
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.benchmark import Compare, Measurement, TaskSpec

from inductor_probe.rewrite.harness.checks import Check
from inductor_probe.rewrite.harness.stats import MARGIN
from inductor_probe.rewrite.harness.timing import Comparison, Side

COLUMNS = 80
WANDERS = 1.1


def hazards() -> list[str]:
    """Say what makes times on this machine doubtful, before any is taken."""
    found = []
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    written = re.findall(r"omp parallel num_threads\((\d+)\)", Path(__file__).read_text())
    threads = max(torch.get_num_threads(), *map(int, written), 1)
    if threads > torch.get_num_threads():
        found.append(f"kernels here start {threads} threads by themselves: it is written into their code")
    if threads > max(1, round(cores - load)):
        found.append(
            f"{threads} threads on {cores} cores with a load of {load:.1f}: every kernel waits for "
            "its slowest thread; fewer are steadier"
        )
    elif load > cores / 2:
        found.append(f"load of {load:.1f} on {cores} cores: other programs are running")
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor.exists() and (mode := governor.read_text().strip()) != "performance":
        found.append(f"cpu governor is {mode}: the clock changes with load")
    return found


def wandering(comparisons: list[Comparison]) -> list[str]:
    """Name what took another time in the next comparison: then ratios hold, and rows of the table do not."""
    times: dict[str, list[float]] = {}
    for found in comparisons:
        for name, seconds in zip((found.baseline, found.candidate), found.medians, strict=True):
            times.setdefault(name, []).append(seconds)
    return [
        f"{name} took {min(all_of) * 1e6:.1f} to {max(all_of) * 1e6:.1f} us from one comparison to the next: "
        "where its buffers lie in memory changed; trust the ratios"
        for name, all_of in times.items()
        if max(all_of) > WANDERS * min(all_of)
    ]


def describe(inputs: list[Any]) -> str:
    """Say size, dtype and memory format of the largest input: `1x3x224x224 uint8 channels_last`."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    if not tensors:
        return "no tensor inputs"
    main = max(tensors, key=torch.Tensor.numel)
    size = "x".join(map(str, main.shape)) or "scalar"
    dtype = str(main.dtype).removeprefix("torch.")
    if main.dim() == 4 and main.is_contiguous(memory_format=torch.channels_last) and not main.is_contiguous():
        layout = "channels_last"
    else:
        layout = "contiguous" if main.is_contiguous() else "strided"
    return f"{size} {dtype} {layout}"


def table(title: str, column: str, sides: list[Side], wrong: list[Check]) -> str:
    """Lay out medians, one row for each thing timed; variants that are wrong stand below without a time."""
    rows, width = [], max(24, COLUMNS - len("      " + "  |  " + column))
    for side in sides:
        spec = TaskSpec(stmt="", setup="", label=title, sub_label=short(side.name, width), description=column)
        rows.append(Measurement(1, side.samples, replace(spec, num_threads=torch.get_num_threads())))
    lines = str(Compare(rows)).rstrip() if rows else f"[ {title} ]"
    return "\n".join([lines, *(f"      {short(check.name, width)}: WRONG, not timed" for check in wrong)])


def short(name: str, width: int) -> str:
    """Cut the middle out of a name that is longer than `width`; its end tells kernels and copies apart."""
    head = width // 3
    return name if len(name) <= width else f"{name[:head]}..{name[head + 2 - width :]}"


def wrapped(text: str) -> str:
    """Break a sentence into lines for a terminal of 80 columns."""
    return textwrap.fill(
        text, COLUMNS, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def verdict_on(check: Check) -> str:
    """Say whether a variant is right, or where it is not."""
    error = "" if check.max_error is None else f", max error {check.max_error:.3g}"
    if check.correct:
        return f"{check.name}: correct{error}" + (f" ({check.note})" if check.note else "")
    said = f"{check.name}: WRONG"
    if check.mismatches:
        said += f", {check.mismatches} of {check.elements} elements{error}"
    if check.first_bad is not None:
        at = ", ".join(map(str, check.first_bad))
        said += f"; first at output {check.first_bad_output}[{at}]: {check.value} instead of {check.expected}"
    return said + (f"; {check.note}" if check.note else "")


def sentence(found: Comparison) -> str:
    """Say a comparison in words."""
    said = {
        "FASTER": "is FASTER than",
        "SLOWER": "is SLOWER than",
        "SAME": f"takes the SAME time, within {MARGIN:.0%}, as",
        "UNDECIDED": "is UNDECIDED against",
        "INVALID": "cannot be judged (INVALID) against",
    }[found.verdict]
    counted = sum(not quad.guard for quad in found.quads)
    left_out = f", {found.excluded} disturbed left out" if found.excluded else ""
    times = f"{found.ratio:.3f}x its time ({found.low:.3f} to {found.high:.3f}, {counted} quads{left_out})"
    return f"{found.candidate} {said} {found.baseline}: {times}" + (f"; {found.note}" if found.note else "")


def measured(side: Side) -> dict[str, Any]:
    """Return the samples of one thing timed, in seconds a call."""
    median = statistics.median(side.samples)
    mad = statistics.median(abs(sample - median) for sample in side.samples)
    return {"name": side.name, "samples": side.samples, "median": median, "mad": mad}


def plain(check: Check) -> dict[str, Any]:
    """Return a check for JSON, which has neither NaN nor infinity nor complex numbers: they become text."""
    return {
        key: str(value) if isinstance(value, complex | float) and not _in_json(value) else value
        for key, value in asdict(check).items()
    }


def _in_json(value: complex) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def environment() -> dict[str, Any]:
    """Return what a reader of the numbers has to know about this machine and process."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
