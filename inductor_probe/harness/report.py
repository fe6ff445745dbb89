"""The report of one process: a table of times with ratios."""

from __future__ import annotations

import math
import statistics
import textwrap
from dataclasses import dataclass
from typing import Any

import torch

from inductor_probe.harness.inputs import tensors_of
from inductor_probe.harness.timing import Quad, scores_of

COLUMNS = 80
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


@dataclass
class Timed:
    """The quads of a baseline and a candidate, and the seconds spent on them; it may be timed alone."""

    baseline: str
    candidate: str | None
    quads: list[Quad]
    spent: float


def describe(inputs: list[Any]) -> str:
    """Say size, dtype and memory format of the largest input: `1x3x224x224 uint8 channels_last`."""
    tensors = tensors_of(inputs)
    if not tensors:
        return "no tensor inputs"
    main = max(tensors, key=torch.Tensor.numel)
    size = "x".join(map(str, main.shape)) or "scalar"
    dtype = str(main.dtype).removeprefix("torch.")
    layout = "contiguous" if main.is_contiguous() else "strided"
    if main.dim() == 4 and layout == "strided" and main.is_contiguous(memory_format=torch.channels_last):
        layout = "channels_last"
    return f"{size} {dtype} {layout}"


def table(timed: list[Timed], wrong: list[str]) -> str:
    """Lay out medians with their MAD, each baseline above its candidate; what is wrong has no time."""
    lines = [f"{'median':>{COLUMNS - 22}}  {'MAD':>9}  {'ratio':>8}"]
    for pair in timed:
        lines.append(_row(pair.baseline, [time for quad in pair.quads for time in quad.samples("A")]))
        if pair.candidate:
            ratio = math.exp(statistics.median(scores_of(pair.quads)))
            times = [time for quad in pair.quads if not quad.guard for time in quad.samples("B")]
            lines.append(f"{_row(pair.candidate, times)}  {ratio:>7.3f}x")
    lines += [f"{_short(name, COLUMNS - 19)}: WRONG, not timed" for name in wrong]
    return "\n".join(lines)


def _row(name: str, times: list[float]) -> str:
    """Say the median of a side's times, and the median distance from it."""
    median = statistics.median(times)
    mad = statistics.median(abs(time - median) for time in times)
    return f"{_short(name, COLUMNS - 33):<{COLUMNS - 33}}  {duration(median):>9}  {duration(mad):>9}"


def duration(seconds: float) -> str:
    """Say a time with four digits: `12.34 us`."""
    size, unit = next((unit for unit in UNITS if seconds >= unit[0]), UNITS[-1])
    number = seconds / size
    return f"{number:.{max(0, 4 - len(str(int(number))))}f} {unit}"


def _short(name: str, most: int) -> str:
    """Cut the middle out of a name longer than `most`; its end tells kernels and copies apart."""
    head = most // 3
    return name if len(name) <= most else f"{name[:head]}..{name[head + 2 - most :]}"


def wrapped(text: str) -> str:
    """Break a sentence into lines for a terminal of 80 columns."""
    return textwrap.fill(
        text, COLUMNS, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
