"""From the samples of all processes to one result."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.bench.overheads import overheads_of
from inductor_probe.bench.verdict import conclude, measure
from inductor_probe.machine.roofline import roofline_rows
from inductor_probe.model.bench import Ablation, BenchResult
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Process, Samples, Series, Variant


def result_of(samples: Samples) -> BenchResult:
    """Judge every comparison of one bench file, and hold its kernels against the machine."""
    processes, margin = samples.processes, samples.margin
    first = processes[0]
    pairs: dict[tuple[str, str | None], list[Series]] = {}
    for process in processes:
        for series in process.comparisons:
            pairs.setdefault((series.baseline, series.candidate), []).append(series)
    parts = {name: what for process in processes for name, what in process.ablations}
    left_out = {names: parts.get((names[1] or "").partition(" ")[0]) for names in pairs}
    compared = [series for names, series in pairs.items() if names[1] is not None and not left_out[names]]
    alone = [series for (_, candidate), series in pairs.items() if candidate is None]
    timed = [process.overheads for process in processes if process.overheads is not None]
    overheads = overheads_of(timed) if timed else None
    roofline = samples.roofline if overheads else None
    return BenchResult(
        graph=first.graph,
        kernels=first.kernels,
        inputs=first.inputs,
        values=first.values,
        data=first.data,
        threads=first.threads,
        processes=len(processes),
        margin=margin,
        variants=tuple(_worst(processes)),
        comparisons=tuple(conclude(series, margin, len(compared)) for series in compared),
        alone=tuple(
            measure(series[0].baseline, [quad for each in series for quad in each.quads], candidate=False)
            for series in alone
        ),
        overheads=overheads,
        flops=timed[0].flops if timed else None,
        ablations=tuple(
            Ablation(what, conclude(series, margin, 1))
            for names, series in pairs.items()
            if (what := left_out[names])
        ),
        warnings=_distinct([remark for process in processes for remark in process.warnings]),
        roofline=roofline,
        resources=first.resources,
        roofline_rows=roofline_rows(samples.works, overheads, roofline) if overheads and roofline else (),
    )


def _distinct(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Return the first of those that differ in their numbers only: names and quoted texts tell them apart."""
    distinct: dict[tuple[object, ...], Remark] = {}
    for remark in remarks:
        names = tuple(value for _, value in remark.numbers if isinstance(value, str))
        distinct.setdefault((remark.code, remark.subject, names), remark)
    return tuple(distinct.values())


def _worst(processes: Sequence[Process]) -> list[Variant]:
    """Return each variant once: as the first process that found it wrong, or else the first, has it."""
    worst: dict[str, Variant] = {}
    for process in processes:
        for variant in process.variants:
            if worst.setdefault(variant.name, variant).correct and not variant.correct:
                worst[variant.name] = variant
    return list(worst.values())
