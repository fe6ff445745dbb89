"""The report: a table of times, and what the checks found in words."""

from __future__ import annotations

import math
import statistics
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import torch

from inductor_probe.harness.checks import Check
from inductor_probe.harness.remarks import sentences
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


def table(timed: list[Timed], wrong: list[str]) -> str:
    """Lay out medians with their MAD, each baseline above its candidate; what is wrong has no time."""
    lines = [f"{'median':>{COLUMNS - 22}}  {'MAD':>9}  {'ratio':>8}"]
    for each in timed:
        lines.append(row(each.baseline, each.quads, "A"))
        if each.candidate:
            ratio = math.exp(statistics.median(scores_of(each.quads)))
            lines.append(f"{row(each.candidate, each.quads, 'B')}  {ratio:>7.3f}x")
    lines += [f"{short(name, COLUMNS - 19)}: WRONG, not timed" for name in wrong]
    return "\n".join(lines)


def row(name: str, quads: list[Quad], side: str) -> str:
    """Say the median of a side's samples, and the median distance from it."""
    quads = [quad for quad in quads if side == "A" or not quad.guard]
    samples = [sample for quad in quads for sample in quad.samples(side)]
    median = statistics.median(samples)
    mad = statistics.median(abs(sample - median) for sample in samples)
    return f"{short(name, COLUMNS - 33):<{COLUMNS - 33}}  {duration(median):>9}  {duration(mad):>9}"


def duration(seconds: float) -> str:
    """Say a time with four digits: `12.34 us`."""
    size, unit = next((each for each in UNITS if seconds >= each[0]), UNITS[-1])
    number = seconds / size
    return f"{number:.{max(0, 4 - len(str(int(number))))}f} {unit}"


def short(name: str, most: int) -> str:
    """Cut the middle out of a name longer than `most`; its end tells kernels and copies apart."""
    head = most // 3
    return name if len(name) <= most else f"{name[:head]}..{name[head + 2 - most :]}"


def wrapped(text: str) -> str:
    """Break a sentence into lines for a terminal of 80 columns."""
    return textwrap.fill(
        text, COLUMNS, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def verdict_on(check: Check) -> str:
    """Say whether a variant is right, or where it is not."""
    error = "" if check.max_error is None else f", max error {check.max_error:.3g}"
    if check.correct:
        kind = "correct, an unedited copy" if check.unedited else "correct"
        return f"{check.name}: {kind}{error}" + (f" ({sentences(check.remarks)})" if check.remarks else "")
    said = f"{check.name}: WRONG"
    if check.mismatches:
        said += f", {check.mismatches} of {check.elements} elements{error}"
    if check.first_bad is not None:
        at = ", ".join(map(str, check.first_bad))
        said += f"; first at output {check.first_bad_output}[{at}]: {check.value} instead of {check.expected}"
    return said + (f"; {sentences(check.remarks)}" if check.remarks else "")


def plain(check: Check) -> dict[str, Any]:
    """Return a check for JSON, which has neither NaN nor infinity nor complex numbers: they become text."""
    return {
        key: str(value) if isinstance(value, complex | float) and not _in_json(value) else value
        for key, value in asdict(check).items()
    }


def _in_json(value: complex) -> bool:
    return isinstance(value, float) and math.isfinite(value)
