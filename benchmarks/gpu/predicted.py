"""How near does a simple correction bring bounds of kernels to their times, and what keeps times above them?

    python -m benchmarks.gpu.predicted A.json [B.json ...] [--plot FILE.svg]

Each file is `kernels.json` of `benchmarks/gpu/bounds.py`: the same kernels, timed in processes of their own.
First: how near two runs of the clock are to each other, as no prediction can be nearer. Then a model of a
launch of a pointwise or reduction kernel whose bytes are all sure,

    time = start + (more for a reduction) + step * (loops - 1) * waves
           + bytes / min(share * rate, warps * each)

with five figures for the GPU, fitted to the logarithms (Gauss-Newton; Huber's weights): `waves` are rounds of
blocks over all multiprocessors at the occupancy that registers, shared memory and warps allow; `warps` are
those at work at once, each of which has so many bytes a second under way (Little's law). At last, why times
are more than twice the bound. What holds for 90 % within a quarter would be shown by `probe kernels`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inductor_probe.machine.targets import target_of_device
from inductor_probe.model.gpu_target import GpuTarget

KINDS = ("pointwise", "reduction", "persistent_reduction")
SURE = 0.9
"""Of the bytes of all operands: below that, what is read depends on loaded indices or masks."""
NEAR = 0.25
START = (1.5e-6, 0.5e-6, 0.3e-6, 0.7, 5e9)
STEPS, HUBER = 60, 0.25


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel: what was compiled, its bytes, and its seconds in each run."""

    kind: str
    moved: float
    bound: float
    is_sure: bool
    blocks: int
    loops: int
    warps: int
    at_once: int
    waves: float
    spills: int
    passes: int
    seconds: tuple[float, ...]

    @property
    def time(self) -> float:
        """The geometric mean of its runs."""
        return statistics.geometric_mean(self.seconds)


def launches(paths: Sequence[Path], gpu: GpuTarget) -> Iterator[Launch]:
    """Yield a launch of each generated kernel that all runs timed."""
    runs = [
        {(row["case"], row["kernel"]): row for row in json.loads(path.read_text(encoding="utf-8"))}
        for path in paths
    ]
    for key, row in runs[0].items():
        of_runs = [run[key] for run in runs if key in run]
        launched = row["launched"][0] if row["launched"] else {}
        if row["kind"] not in KINDS or not row["moved"] or not launched or len(of_runs) < len(runs):
            continue
        yield _launch(row, launched, gpu, tuple(one["seconds"] / one["launches"] for one in of_runs))


def _launch(
    row: dict[str, Any], launched: dict[str, Any], gpu: GpuTarget, seconds: tuple[float, ...]
) -> Launch:
    blocks = math.prod(
        math.ceil(launched[f"{axis}numel"] / launched.get(f"{axis.upper()}BLOCK", 1))
        for axis in "xyz"
        if f"{axis}numel" in launched
    )
    threads = launched["warps"] * 32
    limits = [
        gpu.blocks_per_multiprocessor,
        gpu.threads_per_multiprocessor // threads,
        gpu.registers_per_multiprocessor // (max(launched["registers"] or 32, 1) * threads),
        gpu.shared_bytes_per_multiprocessor // max(launched["shared"] or 1, 1),
    ]
    resident = max(min(limits), 1) * gpu.multiprocessors
    try:
        whole = int(row["bytes_read"]) + int(row["bytes_written"])
    except ValueError:  # of symbolic sizes
        whole = 0
    return Launch(
        kind=row["kind"],
        moved=row["moved"] / row["launches"],
        bound=row["bound"] / row["launches"],
        is_sure=0 < SURE * whole <= row["moved"],
        blocks=blocks,
        loops=math.ceil(launched.get("r0_numel", 1) / launched["R0_BLOCK"]) if "R0_BLOCK" in launched else 1,
        warps=launched["warps"],
        at_once=min(blocks, resident) * launched["warps"],
        waves=blocks / resident,
        spills=launched["spills"] or 0,
        passes=row["passes"],
        seconds=seconds,
    )


def predicted(figures: Sequence[float], one: Launch, rate: float) -> float:
    """Return the seconds that a launch takes by the model."""
    start, more, step, share, each = figures
    serial = step * (one.loops - 1) * max(1, math.ceil(one.waves))
    moving = one.moved / min(share * rate, one.at_once * each)
    return start + (more if one.kind != "pointwise" else 0.0) + serial + moving


def fitted(known: Sequence[Launch], rate: float) -> tuple[float, ...]:
    """Return the figures with which the model is nearest to the times, as logarithms: Gauss-Newton."""
    logs = np.log(START)

    def errors(at: Any) -> Any:
        return np.array([math.log(predicted(np.exp(at), one, rate) / one.time) for one in known])

    now = errors(logs)
    for _ in range(STEPS):
        slopes = np.stack([(errors(logs + 1e-4 * unit) - now) / 1e-4 for unit in np.eye(len(logs))], axis=1)
        weights = np.sqrt(np.minimum(1.0, HUBER / np.maximum(np.abs(now), 1e-12)))
        change = np.linalg.lstsq(slopes * weights[:, None], -now * weights, rcond=None)[0]
        logs = logs + np.clip(change, -0.3, 0.3)
        now = errors(logs)
    return tuple(float(figure) for figure in np.exp(logs))


def near(ratios: Sequence[float]) -> str:
    """`82 % within a quarter, median 0.99, 10th to 90th percentile 0.79 to 1.28`."""
    ranked = sorted(ratios)
    share = sum(abs(ratio - 1) < NEAR for ratio in ranked) / len(ranked)
    tenth, last = ranked[len(ranked) // 10], ranked[-1 - len(ranked) // 10]
    return (
        f"{share:.0%} within a quarter, median {statistics.median(ranked):.2f}, "
        f"10th to 90th percentile {tenth:.2f} to {last:.2f}"
    )


def reason(one: Launch, gpu: GpuTarget) -> str:
    """Return the first of what can keep a launch above twice its bound that holds for it."""
    if not one.is_sure:
        return "bytes depend on loaded indices or masks"
    if one.spills:
        return "registers are spilled"
    if one.passes > 1:
        return "an operand is read in several loops"
    if one.bound < 1e-6:
        return "a launch alone takes longer than its bytes"
    if one.at_once < gpu.multiprocessors * gpu.threads_per_multiprocessor // 64:
        return "fewer warps at once than half of what the GPU holds"
    return "none of these"


def main() -> None:
    """Fit, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--gpu", default="NVIDIA H100 80GB HBM3", help="as torch names it")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    gpu = target_of_device(options.gpu)
    if gpu is None:
        parser.error(f"the figures of {options.gpu} are not known")
    every = [*launches(options.runs, gpu)]
    print(f"{len(every)} pointwise and reduction kernels, {sum(one.is_sure for one in every)} of sure bytes")
    if len(options.runs) > 1:
        print(
            f"the clock, one run beside another: {near([one.seconds[1] / one.seconds[0] for one in every])}"
        )
    sure = [one for one in every if one.is_sure]
    figures = fitted(sure, gpu.memory_rate)
    names = ("start", "more for a reduction", "step", "share of the rate", "bytes a second of a warp")
    print("; ".join(f"{name} {figure:.3g}" for name, figure in zip(names, figures, strict=True)))
    ratios = [predicted(figures, one, gpu.memory_rate) / one.time for one in sure]
    print(f"the model beside the clock: {near(ratios)}")
    halves = [sure[0::2], sure[1::2]]
    other = fitted(halves[0], gpu.memory_rate)
    unseen = [predicted(other, one, gpu.memory_rate) / one.time for one in halves[1]]
    print(f"fitted to every second kernel, beside the others: {near(unseen)}")
    for low, high in ((0.0, 2e-6), (2e-6, 3e-6), (3e-6, 5e-6), (5e-6, 1.0)):
        some = [ratio for ratio, one in zip(ratios, sure, strict=True) if low <= one.time < high]
        if some:
            until = f"to {high * 1e6:.0f} us" if high < 1 else "and more"
            print(f"  {low * 1e6:.0f} us {until}: {len(some)} kernels, {near(some)}")
    far = [one for one in every if one.time > 2 * one.bound]
    print(f"{len(far)} of {len(every)} take more than twice their bound:")
    for text, count in Counter(reason(one, gpu) for one in far).most_common():
        print(f"  {count:4}  {text}")
    if options.plot:
        plot(every, figures, gpu, options.plot)


def plot(every: Sequence[Launch], figures: Sequence[float], gpu: GpuTarget, path: Path) -> None:
    """Draw each kernel's time over its bound, and over what the model says."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - for this alone

    drawing = Figure(figsize=(9, 4.5), layout="constrained")
    sure = [one for one in every if one.is_sure]
    drawn = (
        ("bound", [one.bound for one in every], every),
        ("model", [predicted(figures, one, gpu.memory_rate) for one in sure], sure),
    )
    for axes, (name, across, shown) in zip(drawing.subplots(1, 2), drawn, strict=True):
        for kind in KINDS:
            points = [(x, one.time) for x, one in zip(across, shown, strict=True) if one.kind == kind]
            axes.scatter(*zip(*((x * 1e6, y * 1e6) for x, y in points), strict=True), s=8, label=kind)
        axes.axline((1, 1), slope=1, color="grey", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel=f"{name}, us", ylabel="time, us")
        axes.legend()
    drawing.savefig(path)


if __name__ == "__main__":
    main()
