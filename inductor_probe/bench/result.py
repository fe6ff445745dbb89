"""From the samples of a bench file to what is concluded from them: the one record that reports show."""

from __future__ import annotations

from inductor_probe.bench.overheads import overheads_of, times_of_parts
from inductor_probe.bench.times import times_of
from inductor_probe.bench.verdict import conclude
from inductor_probe.machine.roofline import roofline_rows
from inductor_probe.model.bench import Ablation, BenchResult
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Samples, Series, Variant


def result_of(samples: Samples) -> BenchResult:
    """Judge every comparison of one bench file, and hold its kernels against the machine."""
    processes, margin = samples.processes, samples.margin
    first = processes[0]
    pairs: dict[tuple[str, str | None], list[Series]] = {}
    for process in processes:
        for series in process.comparisons:
            pairs.setdefault((series.baseline, series.candidate), []).append(series)
    left_out = {name: part for process in processes for name, part in process.ablations}
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
        comparisons=comparisons,
        times=times_of(
            [series for process in processes for series in process.comparisons],
            [*comparisons, *(ablation.comparison for ablation in ablations)],
            in_rounds,
        ),
        warnings=tuple(warnings.values()),
        ablations=ablations,
        overheads=overheads,
        flops=timed[0].flops if timed else None,
        roofline=roofline,
        roofline_rows=roofline_rows(samples.works, overheads, roofline) if overheads and roofline else (),
        resources=first.resources,
        torch=str(first.environment.get("torch") or "") or None,
        command=first.command,
    )
