"""What a change that a finding proposes for torch costs and gains elsewhere: see `docs/findings/`.

    python benchmarks/findings.py sweep --out FOLDER [--patch NAME] [--operators N] [--only CASE]
    python benchmarks/findings.py measure --out FOLDER [--patch NAME] [--budget SECONDS] [--threads N]
    python benchmarks/findings.py ranges --out FOLDER [--budget SECONDS]
    python benchmarks/findings.py diff NAME

`sweep` compiles all cases of the scenarios that a CPU can run, four networks of `sweep_models.py` (training:
forward and backward), and N graphs of PyTorch's operator database: as torch is, and with each patch of
`torch_patches.py` applied in the process that compiles. Cases are compiled cold and nothing of a kernel is
built; where `output_code.py` differs (with all patches, then with each) both dumps are kept. `measure` checks
each pair of graphs that was kept against float64, times both in turns as `probe whatif --runs A B` does, and
prints a row for each graph: gains and losses. `ranges` does the same for loops of a few steps, all of them
vectorised against none (`short_ranges_elsewhere.py`), with AVX2 and AVX-512. `diff` prints a patch.

Networks and operators run on small inputs: their times are those of small kernels, and say in which direction
a patch goes rather than how far.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch_patches
from recorders import Worker

import inductor_probe as ip
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import BenchSettings, Comparison
from inductor_probe.model.whatif import GraphWhatIf
from inductor_probe.report.words.whatif import whole_call

AGAIN = 2
"""Further compiles without the patch where its code differs: some graphs have several codes."""
AS_IS, TOGETHER = "as_is", "together"
NETWORKS = ("gpt", "resnet50", "resnet50_channels_last", "unet")
CASE_FILE = "case.txt"
TREE = "torch_compile_debug"
CALL = "Compiled call"
CAPABILITIES = ("avx2", "avx512")
DTYPES, CHANNELS = ("uint8", "float32"), (2, 3, 4, 6, 7, 12)
OPERATIONS = ("hflip", "scaled", "normalised")
"""Of `short_ranges_elsewhere.py`, which compiles in this order."""


def sweep(out: Path, patches: list[str], names: list[str], operators: int) -> None:
    """Compile every case as torch is and with all patches; where that differs, with each by itself."""
    with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as folder:
        workers: dict[str, Worker] = {}

        def worker(name: str, *applied: str) -> Worker:
            if name not in workers:
                options = (f"patch={patch}" for patch in applied)
                workers[name] = Worker(Path(folder) / name, "decisions", *options)
            return workers[name]

        as_is, together = worker(AS_IS), worker(TOGETHER, *patches)
        cases = [*as_is.ask(f"cases {operators}"), *(f"sweep_models::{name}" for name in NETWORKS)]
        cases = [case for case in cases if not names or any(name in case for name in names)]
        graphs, without = 0, 0
        different = dict.fromkeys(patches, 0)
        varying: list[str] = []
        failed: list[str] = []
        for count, case in enumerate(cases, 1):
            as_is.start(case)
            code = together.ask(case)["code"]
            before = as_is.answer(case)["code"]
            graphs += len(before)
            without += not before
            if code != before:
                codes = [before, *(as_is.ask(case)["code"] for _ in range(AGAIN))]
                if code in codes:
                    varying.append(case)
                    continue
                for patch in patches:
                    answer = worker(patch, patch).ask(case)
                    after = answer["code"]
                    if answer["reason"] and before:
                        failed.append(f"{patch}: {case} fails: {answer['reason']}")
                    elif after not in codes:
                        keep(as_is.folder, worker(patch).folder, out / patch / case.replace("::", "-"), case)
                        different[patch] += len({graph for graph, _ in after.items() ^ codes[-1].items()})
            if count % 10 == 0:
                print(f"{count}/{len(cases)}: {graphs} graphs, {different}", file=sys.stderr, flush=True)
        for each in workers.values():
            each.end()
    lines = [f"{len(cases)} cases, {without} without a graph; {graphs} graphs as torch is"]
    lines += [f"{patch}: the code of {number} graphs differs" for patch, number in different.items()]
    lines += failed
    lines += [f"has several codes without a patch, too: {case}" for case in varying]
    print(*lines, sep="\n", flush=True)


def keep(as_is: Path, patched: Path, place: Path, case: str) -> None:
    """Keep the dumps of a case as torch is, and with a patch."""
    shutil.rmtree(place, ignore_errors=True)
    for side, folder in (("A", as_is), ("B", patched)):
        if (folder / TREE).exists():
            shutil.copytree(folder / TREE, place / side / TREE)
    (place / CASE_FILE).write_text(case, encoding="utf-8")


def measure(out: Path, settings: BenchSettings, patches: list[str]) -> None:
    """Check and time each pair of dumps; print a row for each graph, and keep them as JSON."""
    for patch in patches:
        rows = []
        for place in sorted((out / patch).glob(f"*/{CASE_FILE}")):
            for row in measured(place.parent, settings):
                rows.append(row)
                print(shown(row), file=sys.stderr, flush=True)
        (out / f"{patch}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
        table(patch, rows)


def measured(place: Path, settings: BenchSettings) -> Iterator[dict[str, Any]]:
    """Yield what became of each graph of a case: `probe whatif --runs A B`."""
    case = (place / CASE_FILE).read_text(encoding="utf-8")
    try:
        a, b = (ip.open_run(run) for side in "AB" for run in (place / side / TREE).glob("run_*"))
        answer = ip.whatif(a, b, settings, trust=True)
    except (ProbeError, ValueError) as error:
        yield {"case": case, "graph": "", "not timed": str(error).partition("\n")[0]}
        return
    for graph, said in zip(answer.graphs, answer.output.summary, strict=True):  # type: ignore[attr-defined]  # of WhatIfOutput
        row: dict[str, Any] = {"case": case, "graph": graph.diff.a.name, "said": said}
        if graph.not_timed == "same-code":
            continue
        if graph.result is None:
            yield {**row, "not timed": graph.not_timed}
            continue
        row["correct"] = all(variant.correct for variant in graph.result.variants)
        comparisons = graph.result.comparisons
        calls = [
            each for each in comparisons if each.baseline == CALL and each.candidate.startswith("call_v")
        ]
        row["call"] = interval(calls[0]) if calls else None
        row["kernels"] = {each.baseline: interval(each) for each in comparisons if each not in calls}
        yield row


def interval(each: Comparison) -> dict[str, Any]:
    """Return how many times as fast the candidate is, with its interval and verdict."""
    speed = {"speed": 1 / each.ratio, "low": 1 / each.high, "high": 1 / each.low}
    return {**speed, "verdict": str(each.verdict)}


def ranges(out: Path, settings: BenchSettings) -> None:
    """Print how much faster scalar loops are than vectors, for operations on images of few channels."""
    script = torch_patches.FINDINGS / "short_ranges_elsewhere.py"
    arguments = [str(each) for each in CHANNELS]
    for capability in CAPABILITIES:
        vectors, scalars = (
            ip.dump(
                Path(torch_patches.__file__),
                args=[patch, str(script), *arguments],
                env={"ATEN_CPU_CAPABILITY": capability},
                out=out / capability / patch,
                stdout_to_stderr=True,
            )
            for patch in ("short_vectorised", "short_scalar")
        )
        graphs = iter(ip.whatif(vectors, scalars, settings).graphs)
        rows = {
            (dtype, channels, operation): next(graphs)
            for dtype, channels, operation in itertools.product(DTYPES, CHANNELS, OPERATIONS)
        }
        print(f"\n{capability}: scalar loops, times as fast as vectors of so many channels\n")
        print(f"| | {' | '.join(arguments)} |\n|---|{'--:|' * len(arguments)}")
        for dtype, operation in itertools.product(DTYPES, OPERATIONS):
            cells = (_cell(rows[dtype, channels, operation]) for channels in CHANNELS)
            print(f"| {operation}, {dtype} | {' | '.join(cells)} |", flush=True)


def _cell(graph: GraphWhatIf) -> str:
    """Return the speed of the call of B, with its interval."""
    if graph.result is None or not (comparison := whole_call(graph.result)):
        return str(graph.not_timed).replace("same-code", "the same code")
    speed = interval(comparison)
    verdict = "" if speed["verdict"] in {"FASTER", "SLOWER"} else f" {speed['verdict']}"
    wrong = "" if all(variant.correct for variant in graph.result.variants) else " WRONG"
    return f"{speed['speed']:.2f} ({speed['low']:.2f} to {speed['high']:.2f}){verdict}{wrong}"


def table(patch: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows, gains first, then how many there are of each verdict."""
    timed = [row for row in rows if row.get("call")]
    timed.sort(key=lambda row: -row["call"]["speed"])
    print(f"\n{patch}: {torch_patches.PATCHES[patch].what}")
    for row in (*timed, *(row for row in rows if row not in timed)):
        print(shown(row))
    verdicts = [row["call"]["verdict"] for row in timed]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))
    wrong = sum(not row["correct"] for row in timed)
    print(f"{len(timed)} graphs timed ({counts}), {wrong} wrong, {len(rows) - len(timed)} not timed")


def shown(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    name = f"{row['case']:52} {row['graph']:28}"
    if not row.get("call"):
        return f"{name} {row.get('not timed') or row['said']}"
    best = max(row["kernels"].values(), key=lambda each: abs(each["speed"] - 1), default=None)
    kernel = f"  kernel {_times(best)}" if best else ""
    return f"{name} call {_times(row['call'])}{kernel}{'' if row['correct'] else '  WRONG'}"


def _times(each: dict[str, Any]) -> str:
    return f"{each['speed']:6.3f}x ({each['low']:.3f} to {each['high']:.3f}) {each['verdict']}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("sweep", "measure", "ranges", "diff"))
    parser.add_argument("names", nargs="*", help="patches, for diff")
    parser.add_argument("--patch", action="append", choices=sorted(torch_patches.PATCHES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--operators", type=int, default=200)
    parser.add_argument("--only", action="append", help="cases with this text in their names")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timing for each graph")
    parser.add_argument("--threads", type=int, default=1, help="of torch and OpenMP")
    options = parser.parse_args()
    proposed = (name for name, patch in torch_patches.PATCHES.items() if patch.proposed)
    patches = options.patch or options.names or sorted(proposed)
    if options.what == "diff":
        print("".join(torch_patches.as_diff(torch_patches.PATCHES[name]) for name in patches))
        return
    if options.out is None:
        parser.error("--out is needed: a folder for the dumps that differ")
    out = options.out.resolve()
    if options.what == "sweep":
        sweep(out, patches, options.only or [], options.operators)
    elif options.what == "ranges":
        ranges(out, BenchSettings(budget=options.budget))
    else:
        measure(out, BenchSettings(budget=options.budget, threads=options.threads), patches)


if __name__ == "__main__":
    main()
