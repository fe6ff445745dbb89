"""From the samples of a bench file to what is concluded from them: the one record that reports show."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from inductor_probe.bench.overheads import CALL, overheads_of, times_of_parts
from inductor_probe.bench.times import once_timed, times_of
from inductor_probe.bench.verdict import conclude
from inductor_probe.machine.roofline import roofline_rows
from inductor_probe.model.bench import OPERATORS, Ablation, BenchResult, Measurement
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import Samples, Series, Variant

_LONG_S = 0.02
"""As harness/launches.py calls what it compares the call with."""
_FEW = 18
"""Quads: six in each of three processes, the fewest that are taken of short calls."""


def result_of(samples: Samples) -> BenchResult:
    """Judge every comparison of one bench file, and hold its kernels against the machine."""
    processes, margin = samples.processes, samples.margin
    first = processes[0]
    every = (series for process in processes for series in process.comparisons)
    pairs = grouped(every, lambda series: (series.baseline, series.candidate))
    left_out = {name: part for process in processes for name, part in process.ablations}
    order = [
        OPERATORS.partition(" ")[0],
        CALL.partition(" ")[0],
        *first.kernels,
    ]  # samples are in the order in which there was time for them

    def place(pair: tuple[str, str | None]) -> int:
        name = pair[0].partition(" ")[0]
        return order.index(name) if name in order else len(order)

    pairs = {pair: pairs[pair] for pair in sorted(pairs, key=place)}
    compared: list[list[Series]] = []
    ablated: list[tuple[str, list[Series]]] = []
    for (_, candidate), pair in pairs.items():
        if candidate is None:
            continue
        if part := left_out.get(candidate.partition(" ")[0]):  # of `k_v3 alone #1`
            ablated.append((part, pair))
        else:
            compared.append(pair)
    comparisons = tuple(conclude(pair, margin, len(compared)) for pair in compared)
    ablations = tuple(Ablation(part, conclude(pair, margin)) for part, pair in ablated)
    timed = [process.overheads for process in processes if process.overheads is not None]
    overheads = overheads_of(timed) if timed else None
    # Rounds are timed with warm data: what is compared with cold data takes another time.
    in_rounds = times_of_parts(timed) if timed and first.data == "warm" else {}
    roofline = samples.roofline if overheads else None
    times = times_of(
        [series for pair in pairs.values() for series in pair],
        [*comparisons, *(ablation.comparison for ablation in ablations)],
        in_rounds,
    )
    call_s = next((time.seconds for time in times if time.name == CALL), None)
    once, not_believed = once_timed(first, call_s)
    variants: dict[str, Variant] = {}  # as the first process that found it wrong, or else the first, has it
    warnings: dict[tuple[object, ...], Remark] = {}  # the first of those that differ in their numbers only
    for process in processes:
        for variant in process.variants:
            if variants.setdefault(variant.name, variant).correct and not variant.correct:
                variants[variant.name] = variant
        for remark in process.warnings:
            texts = tuple(value for _, value in remark.numbers if isinstance(value, str))
            warnings.setdefault((remark.code, remark.subject, texts), remark)
    return BenchResult(
        graph=first.graph,
        kernels=first.kernels,
        inputs=first.inputs,
        values=first.values,
        data=first.data,
        threads=first.threads,
        processes=len(processes),
        margin=margin,
        variants=tuple(variants.values()),
        comparisons=_with_few_samples([_believed(pair, times, margin) for pair in comparisons], times),
        times=(*times, *once),
        warnings=(*warnings.values(), *not_believed),
        ablations=ablations,
        overheads=overheads,
        flops=timed[0].flops if timed else None,
        roofline=roofline,
        roofline_rows=roofline_rows(samples.works, overheads, roofline) if overheads and roofline else (),
        resources=first.resources,
        torch=str(first.environment.get("torch") or "") or None,
        command=first.command,
        measured=_measured(samples),
        own=samples.own,
        no_own=samples.no_own,
    )


def _measured(samples: Samples) -> float | None:
    """Return the seconds that count against the budget; None where no process says."""
    seconds = [process.measured for process in samples.processes if process.measured is not None]
    return sum(seconds) + (samples.roofline.measured if samples.roofline else 0.0) if seconds else None


def _believed(comparison: Comparison, times: Sequence[Measurement], margin: float) -> Comparison:
    """Return a comparison, undecided where its times contradict its ratio.

    On a busy machine, a ratio that makes a side shorter than the shortest block that was seen of it is wrong.
    """
    seconds = {time.name: time.seconds for time in times}
    ratio = seconds[comparison.candidate] / seconds[comparison.baseline]
    if not comparison.busy or comparison.low / (1 + margin) <= ratio <= comparison.high * (1 + margin):
        return comparison
    subject = Subject("variant", comparison.candidate)
    shift = {"shift": math.exp(abs(math.log(ratio / comparison.ratio))) - 1}
    reason = measured("readings-differ", "analysis", subject, shift)
    return replace(comparison, verdict="UNDECIDED", reason=reason)


def _with_few_samples(
    comparisons: Sequence[Comparison], times: Sequence[Measurement]
) -> tuple[Comparison, ...]:
    """Remark on comparisons of calls so long that the budget sufficed for a few only, and what that supports.

    Three quads of a call of 0.75 s whose interval is 0.96 to 1.04 find no difference below 4 %. Those of one
    process support nothing.
    """
    seconds = {time.name: time.seconds for time in times}
    remarked = []
    for comparison in comparisons:
        longer = max(comparison.candidate, comparison.baseline, key=lambda name: seconds[name])
        call_s = seconds[longer]
        if call_s > _LONG_S and comparison.quads < _FEW:
            numbers = {"call_s": call_s, "rounds": comparison.quads}
            if len(comparison.process_ratios) > 1:
                numbers["half"] = math.expm1((math.log(comparison.high) - math.log(comparison.low)) / 2)
            subject = Subject("variant", longer)
            few = measured("few-samples", "analysis", subject, numbers)
            comparison = replace(comparison, remarks=(*comparison.remarks, few))  # noqa: PLW2901 - the same one
        remarked.append(comparison)
    return tuple(remarked)
