"""One time for each thing of a report, whichever table shows it."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from inductor_probe.bench.overheads import Rounds
from inductor_probe.bench.result import result_of
from inductor_probe.bench.times import times_of
from inductor_probe.bench.verdict import conclude
from inductor_probe.machine.roofline import roofline_rows
from inductor_probe.model.bench import BenchResult, Measurement
from inductor_probe.model.timing import (
    KernelWork,
    OverheadSamples,
    PeakRate,
    Process,
    Quad,
    Roofline,
    Samples,
    Series,
    TimedPart,
)
from inductor_probe.report.document import Block, Fold, Table
from inductor_probe.report.pages.bench import bench_page, settings_table
from inductor_probe.report.words.remarks import sentence
from inductor_probe.store.samples import read_samples, samples_text
from tests.bench.simulated import LOST_ITS_CORE, quad

MARGIN = 0.01
STATES = ("quiet", "noisy", "two speeds", "slow processes", "slow rounds", "kernels exceed call")
MACHINE = Roofline("2.13.0", "cpu", 1, 1 << 21, 1 << 25, (PeakRate("copy", "cache", 1 << 20, 5e10, 9),))
WORKS = (KernelWork("k0", 1 << 20), KernelWork("k1", 1 << 16), KernelWork("extern_kernels.mm", 1 << 18))
TRUTH = {"k0": 40e-6, "k1": 8e-6, "aten.mm.out": 20e-6}


def slowness(state: str, rng: random.Random, number: int) -> Iterator[float]:
    """Yield by which factor each thing that is timed takes longer than it should."""
    process = 1.8 if state == "slow processes" and number % 2 else 1.0
    while True:
        factor = process * rng.lognormvariate(0, 0.3 if state == "noisy" else 0.003)
        if state == "two speeds" and rng.random() < 0.5:
            factor *= 1.9
        yield factor


def process(state: str, device: str, data: str, number: int, seed: int) -> Process:
    """Return what a process would have written: two kernels, one launched twice, and a library call."""
    rng = random.Random(1000 * seed + number)  # noqa: S311 - no secret
    slow = slowness(state, rng, number)
    rounds = [1.0 if state != "slow rounds" or rng.random() < 0.5 else 2.0 for _ in range(9)]

    def times(seconds: float) -> tuple[float, ...]:
        return tuple(factor * next(slow) * seconds for factor in rounds)

    def part(kind: str, name: str, seconds: float) -> TimedPart:
        cuda = device == "cuda"
        host = times(4e-6 if kind == "kernel" or cuda else 1e-6) if kind != "library" or cuda else ()
        wall = times(seconds) if cuda and kind == "call" else ()
        return TimedPart(kind, name, times(seconds), host, wall, 0, 0)  # type: ignore[arg-type]

    steps = [("kernel", "k0"), ("kernel", "k1"), ("kernel", "k1"), ("library", "aten.mm.out")]
    call = sum(TRUTH[name] for _, name in steps) * (0.7 if state == "kernels exceed call" else 1.05)
    parts = [part(kind, name, TRUTH[name]) for kind, name in steps]
    parts += [part("call", "call", call)]

    def quads(a: float, b: float) -> tuple[Quad, ...]:
        made = []
        for index in range(18):
            guard = index % 6 == 5
            seconds = [next(slow) * (b if side == "B" and not guard else a) for side in "ABBA"]
            made.append(quad(seconds, "ABBA", guard, LOST_ITS_CORE if rng.random() < 0.1 else None))
        return tuple(made)

    pairs = [
        ("the graph, operator by operator", "Compiled call", 1.4 * call, call),
        ("Compiled call", "call_v2", call, 0.9 * call),
        ("k0 alone", "k0_v2 alone", 40e-6, 30e-6),
        ("k0 alone", "k0_v3 alone", 40e-6, 41e-6),
        ("k0 alone", "k0_v4 alone", 40e-6, 10e-6),
        ("k1 alone #1", "k1_v2 alone #1", 8e-6, 9e-6),
        ("k1 alone #2", None, 8e-6, 8e-6),
    ]
    return Process(
        graph="g",
        kernels=("k0", "k1"),
        inputs="4 float32 contiguous",
        values="random",
        data=data,
        threads=1,
        first="baseline",
        seed=number,
        command=("output_code_bench.py",),
        environment={"torch": "2.13.0"},
        warnings=(),
        variants=(),
        comparisons=tuple(Series(a, b, quads(x, y), 0.3) for a, b, x, y in pairs),
        ablations=(("k0_v4", "no_loads"),),
        overheads=OverheadSamples(device, 2, tuple(parts)),
    )


@functools.cache
def reports() -> tuple[tuple[str, BenchResult], ...]:
    """Return the results of all states, devices and data, with what they are called."""
    return tuple(_reports())


def _reports() -> Iterator[tuple[str, BenchResult]]:
    for state in STATES:
        for device, data in (("cpu", "warm"), ("cpu", "cold"), ("cuda", "cold"), ("cuda", "warm")):
            for seed in range(5):
                processes = [process(state, device, data, number, seed) for number in range(3 + seed % 3)]
                samples = Samples(tuple(processes), MARGIN, replace(MACHINE, device=device), WORKS)
                yield f"{state}, {device}, {data}, {seed}", result_of(samples)


def blocks(page: Iterator[Block]) -> Iterator[Block]:
    for block in page:
        yield block
        if isinstance(block, Fold):
            yield from blocks(iter(block.inside()))


def shown_times(result: BenchResult) -> dict[tuple[str, str], set[str]]:
    """Return the times of every row of every table, by what the row and its column are called."""
    times: dict[tuple[str, str], set[str]] = {}
    for block in blocks(iter([*bench_page(result), *settings_table([result])])):
        if not isinstance(block, Table):
            continue
        for row in block.rows:
            texts = [cell if isinstance(cell, str) else cell[0] for cell in row]  # type: ignore[index]
            for column, text in zip(block.columns, texts, strict=True):
                if column.title == "MAD" or not re.fullmatch(r"[\d.]+ [mu]?s", str(text)):
                    continue
                data = result.data if "data" in column.title or "thread" in column.title else "warm"
                name = re.sub(r" x\d+$", "", str(texts[0]).strip())
                if result.overheads and result.overheads.device == "cuda" and "host" in name:
                    data = "host"  # of the GPU's call and of the host's
                times.setdefault((name.removesuffix(" (GPU)"), data), set()).add(str(text))
    return times


def test_every_thing_has_one_time_in_all_tables_of_a_report() -> None:
    """`Compiled call 44.38 us` stood above `compiled 62.13 us`, `k alone 55.47 us` above `k 30.50 us`."""
    for label, result in reports():
        times = shown_times(result)
        assert {name: texts for name, texts in times.items() if len(texts) > 1} == {}, label
        names = {name for name, _ in times}
        assert {"Compiled call", "k0", "k0_v2", "k1 #1", "the graph, operator by operator"} <= names, label


def test_times_and_ratios_agree() -> None:
    for label, result in reports():
        for comparison in result.comparisons:
            times = result.time(comparison.candidate).seconds, result.time(comparison.baseline).seconds
            assert times[0] / times[1] == pytest.approx(comparison.ratio), label
        assert len({time.name for time in result.times}) == len(result.times)


def test_overheads_and_comparisons_have_the_same_time() -> None:
    for label, result in reports():
        overheads = result.overheads
        assert overheads is not None
        side = "device" if overheads.device == "cuda" else "host"
        call = overheads.row("call", side)  # type: ignore[arg-type]
        assert call is not None
        alone = {row.name: row.seconds for row in overheads.rows if row.kind == "kernel"}
        for work in result.roofline_rows:
            if work.work.name in alone:
                assert work.seconds == alone[work.work.name], label
        if result.data == "warm":
            assert result.time("Compiled call").seconds == call.seconds, label
            assert result.time("k0 alone").seconds == pytest.approx(alone["k0"]), label
            launches = [result.time(f"k1 alone #{number}").seconds for number in (1, 2)]
            assert sum(launches) == pytest.approx(alone["k1"]), label


def test_rows_add_up_and_nothing_is_negative() -> None:
    for label, result in reports():
        overheads = result.overheads
        assert overheads is not None
        for side in ("host", "device"):
            rows = {row.kind: row for row in overheads.rows if row.side == side and row.kind != "kernel"}
            kernels = sum(row.seconds for row in overheads.rows if (row.side, row.kind) == (side, "kernel"))
            parts = [row.seconds for kind, row in rows.items() if kind in ("library", "wrapper", "rest")]
            launches = rows["launches"].seconds if overheads.device == "cuda" and side == "host" else 0
            if "call" in rows:
                assert sum(parts) + kernels + launches == pytest.approx(rows["call"].seconds), label
        assert not any("-" in text for texts in shown_times(result).values() for text in texts)
        for row in overheads.rows:
            assert row.nonzero or row.below is None or row.below >= row.seconds, label


def test_a_machine_slow_in_half_of_the_rounds_makes_no_wrapper() -> None:
    """Medians of their own could be of a fast round for kernels, and of a slow one for the call."""
    for seed in range(20):
        processes = [process("slow rounds", "cpu", "warm", number, seed) for number in range(3)]
        overheads = result_of(Samples(tuple(processes), MARGIN)).overheads
        assert overheads is not None
        wrapper, call = overheads.row("wrapper"), overheads.row("call")
        assert wrapper is not None
        assert call is not None
        assert wrapper.seconds < 0.2 * call.seconds


def test_the_time_of_what_was_only_compared_is_the_other_times_the_ratio() -> None:
    quads = (
        quad((1.0, 3.0, 3.0, 1.0)),
        quad((5.0, 2.0, 2.0, 5.0), "BAAB"),
        quad((2.0, 9.0, 9.0, 2.0), guard=True),
        quad((8.0, 8.0, 8.0, 8.0), disturbed=LOST_ITS_CORE),
    )
    series = [Series("k", "v", quads, 1.0)] * 3
    comparison = conclude(series, MARGIN)
    baseline, candidate = times_of(series, [comparison], {})
    assert (baseline.seconds, baseline.samples, baseline.source) == (2.0, 9, "quads")
    assert (candidate.seconds, candidate.source) == (2.0 * comparison.ratio, "ratio")
    rounds = Measurement("v", 30.0, 0.1, 9, "rounds")
    baseline, candidate = times_of(series, [comparison], {"v": rounds})
    assert candidate == rounds
    assert baseline.seconds == pytest.approx(30.0 / comparison.ratio)


def test_samples_of_earlier_versions_have_one_time_each(tmp_path: Path) -> None:
    """Their guards were differences, and their tables had medians of their own."""
    from inductor_probe.model.codec import to_json  # noqa: PLC0415 - only here

    written = [to_json(process("noisy", "cpu", "warm", number, 0)) for number in range(3)]
    path = tmp_path / "output_code_bench.json"
    path.write_text(samples_text([{**one, "schema": 2, "ablations": {}} for one in written], MARGIN))  # type: ignore[dict-item]
    result = result_of(read_samples(path))
    assert all(len(texts) == 1 for texts in shown_times(result).values())
    assert roofline_rows((), result.overheads, MACHINE) == () if result.overheads else False


def test_a_long_call_measured_a_few_times_says_what_that_supports() -> None:
    """A call of 0.75 s was measured for minutes, or judged by a few samples without a word."""
    quads = tuple(quad([0.75, 0.76 + number / 100, 0.76, 0.75]) for number in range(3))
    processes = [
        replace(
            process("quiet", "cpu", "warm", number, 0),
            comparisons=(Series("k alone", "k_v2 alone", quads, 9.0),),
            overheads=None,
        )
        for number in range(3)
    ]
    (comparison,) = result_of(Samples(tuple(processes), MARGIN)).comparisons
    (few,) = [remark for remark in comparison.remarks if remark.code == "few-samples"]
    assert re.fullmatch(
        r"a call of k_v2 takes 760\.0 ms, so that it was compared 9 times only: differences below \d+\.\d% "
        r"are not found",
        sentence(few),
    )


def test_rounds_can_be_ranked_by_another_series() -> None:
    samples = OverheadSamples("cpu", 0, (TimedPart("call", "call", (1.0, 2.0, 3.0, 4.0), (), (), 0, 0),))
    series = np.array([10.0, 20.0, 30.0, 40.0])
    assert Rounds([samples]).time(lambda process: series).seconds == 15.0
    slow_first = np.array([9.0, 8.0, 1.0, 1.0])
    assert Rounds([samples], [slow_first]).time(lambda process: series).seconds == 35.0
