"""From the samples of all processes to what they say together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inductor_probe.bench.overheads import overheads_of
from inductor_probe.bench.verdict import conclude, measure
from inductor_probe.machine.roofline import ceiling_rows
from inductor_probe.model.bench import BenchResult, Variant
from inductor_probe.model.kept import Kept
from inductor_probe.model.timing import Process, Series


def result_of(kept: Kept) -> BenchResult:
    """Judge every comparison of one bench file, and hold its kernels against the machine."""
    processes, margin = kept.processes, kept.margin
    first = processes[0]
    found: dict[tuple[str, str | None], list[Series]] = {}
    for process in processes:
        for series in process.series:
            found.setdefault((series.baseline, series.candidate), []).append(series)
    parts = {name: what for process in processes for name, what in process.ablations}
    left_out = {names: parts.get((names[1] or "").partition(" ")[0]) for names in found}
    compared = [series for names, series in found.items() if names[1] is not None and not left_out[names]]
    alone = [series for (_, candidate), series in found.items() if candidate is None]
    samples = [process.overheads for process in processes if process.overheads is not None]
    overheads = overheads_of(samples) if samples else None
    ceilings = kept.ceilings if overheads else None
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
        flops=samples[0].flops if samples else None,
        ablations=tuple(
            (what, conclude(series, margin, 1))
            for names, series in found.items()
            if (what := left_out[names])
        ),
        warnings=tuple(_distinct([said for process in processes for said in process.warnings])),
        ceilings=ceilings,
        resources=first.resources,
        ceiling_rows=ceiling_rows(kept.works, overheads, ceilings) if overheads and ceilings else (),
    )


def _distinct(sentences: Sequence[str]) -> list[str]:
    """Return the first of those that differ in their numbers only."""
    found: dict[str, str] = {}
    for said in sentences:
        found.setdefault(re.sub(r"\d+(\.\d+)?", "", said), said)
    return list(found.values())


def _worst(processes: Sequence[Process]) -> list[Variant]:
    """Return each variant once: as the first process that found it wrong, or else the first, has it."""
    found: dict[str, Variant] = {}
    for process in processes:
        for variant in process.variants:
            if found.setdefault(variant.name, variant).correct and not variant.correct:
                found[variant.name] = variant
    return list(found.values())
