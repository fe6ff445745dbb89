"""What a change that a finding proposes for torch costs and gains elsewhere: see `docs/findings/`.

    python -m benchmarks.findings.changes sweep --out FOLDER [--patch NAME] [--operators N] [--only CASE]
    python -m benchmarks.findings.changes pairs --out FOLDER [--patch NAME] [--only CASE]
    python -m benchmarks.findings.changes measure --out FOLDER [--patch NAME] [--budget S] [--threads N]
        [--again]
    python -m benchmarks.findings.changes diff NAME

`sweep` compiles networks that people run (`networks.py`: ResNet-50, a GPT block and others, in
inference and training), all cases of the scenarios that a CPU can run, and N graphs of PyTorch's operator
database, as torch is, and asks at each decision what it would be with each patch of `patches.py`: see
`asked.py`. Cases are compiled cold and nothing of a kernel is built. A second start goes on where
the first one ended. `pairs` compiles the cases that a patch turns as torch is and with the patch; where
`output_code.py` differs both dumps are kept. With ATEN_CPU_CAPABILITY=avx2 it asks about AVX2, there and in
`measure`, which checks each pair of graphs that was kept against float64, times both in turns as `probe
whatif --runs A B` does, and keeps a row for each graph: gains and losses. `diff` prints a patch.

With `--target h100` `sweep` and `pairs` compile the cases for that GPU, which is simulated, with patches of
what is decided about Triton's kernels; `measure` takes the same option on a machine that has one.

Operators run on small inputs: their times are those of small kernels, and say in which direction a patch goes
rather than how far.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import inductor_probe as ip
from benchmarks.findings import figures
from benchmarks.findings.patches import PATCHES, as_diff
from benchmarks.sweeps.recorders import Worker
from benchmarks.sweeps.worker import TARGET
from inductor_probe.api.whatif import whatif_of_runs
from inductor_probe.errors import ProbeError
from inductor_probe.files import write_whole
from inductor_probe.model.bench import BenchSettings

AS_IS = "as_is"
GROUPS = {"networks": "findings_networks::", "scenarios": "check_", "operators": ""}
"""Groups of cases, by how their names begin."""
ASKED = {
    "cpu": {
        "vectors": "TilingSelect.select_tiling",
        "threads": "CppKernel.decide_parallel_depth",
    },
    "cuda": {"persistent reductions": "InductorChoices.should_use_persistent_reduction"},
}
"""For each device the decisions that are counted, with the functions of torch that take them."""
SWEEP_FILE = "sweep.jsonl"
"""What became of each case, a line each: a sweep that was stopped goes on from there."""
CASE_FILE, ROWS_FILE = "case.txt", "rows.json"
TREE = "torch_compile_debug"
OF_NETWORK = 8
"""How many times the budget a network has: a call of ResNet-50 takes as long as a thousand of an operator."""
CAPABILITY = "avx512"
"""For which vectors code is compiled where ATEN_CPU_CAPABILITY says nothing else."""
ON_GPU = "cuda"
"""In the place of vectors, of what is compiled for a GPU."""


class Asked:
    """A process of `asked.py`; several compile at once."""

    def __init__(self, patches: list[str], errors: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.findings.asked", *patches],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors.open("w"), text=True,
            start_new_session=True,
        )  # fmt: skip
        self.errors = errors

    def ask(self, name: str) -> Any:
        """Return what it says of a case."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("a process is started with pipes")
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        if not (line := self.process.stdout.readline()):
            sys.exit(f"a process ended while it compiled {name}; see {self.errors}")
        return json.loads(line)


def sweep(out: Path, patches: list[str], names: list[str], operators: int, jobs: int) -> None:
    """Compile every case as torch is, and ask the patches; then compile what they turn with them."""
    out.mkdir(parents=True, exist_ok=True)
    log = out / SWEEP_FILE
    rows = read_rows(log)
    processes = [Asked(patches, out / f"stderr_{job}.txt") for job in range(jobs)]
    cases = [
        case
        for case in processes[0].ask(f"cases {operators}")
        if not names or any(name in case for name in names)
    ]
    done = {row["case"] for row in rows}
    left = iter([case for case in cases if case not in done])
    lock = threading.Lock()

    def work(process: Asked) -> None:
        while True:
            with lock:
                case = next(left, None)
            if case is None:
                return
            row = process.ask(case)
            with lock, log.open("a", encoding="utf-8") as lines:
                rows.append(row)
                lines.write(json.dumps(row) + "\n")
                print(f"{len(rows)}/{len(cases)}: {case} {row['turned']}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, processes))
    for process in processes:
        process.process.communicate()
    lines = list(summary(rows, patches))
    print(*lines, sep="\n", flush=True)
    if not names:
        command = f"python -m benchmarks.findings.changes sweep --operators {operators}"
        command += "".join(f" --patch {patch}" for patch in patches)
        if target := os.environ.get(TARGET):
            command += f" --target {target}"
        figures.keep("sweep_cuda" if target else "sweep", [], lines=lines, command=command)


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of JSON; none where there is no file."""
    return (
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    )


def summary(rows: list[dict[str, Any]], patches: list[str]) -> Iterator[str]:
    """Yield in words what a sweep compiled, and which decisions a patch turns."""
    asked_of = ASKED["cuda" if os.environ.get(TARGET) else "cpu"]
    columns = "".join(f" decisions on {name} |" for name in asked_of)
    yield f"| | cases | graphs | cases without a graph |{columns}"
    yield f"|---|--:|--:|--:|{'--:|' * len(asked_of)}"
    left = rows
    for group, start in GROUPS.items():
        of_group = [row for row in left if row["case"].startswith(start)]
        left = [row for row in left if row not in of_group]
        graphs = sum(row["graphs"] for row in of_group)
        without = sum(not row["graphs"] for row in of_group)
        asked = (sum(row["calls"].get(place, 0) for row in of_group) for place in asked_of.values())
        yield f"| {group} | {len(of_group)} | {graphs} | {without} | {' | '.join(map(str, asked))} |"
    turned: dict[str, list[str]] = {}
    for row in rows:
        for key, number in row["turned"].items():
            turned.setdefault(key, []).append(f"{row['case']} ({number})")
    yield from ("", "| patch, and where | decisions turned | in |", "|---|--:|---|")
    for key, cases in sorted(turned.items()):
        number = sum(row["turned"].get(key, 0) for row in rows)
        yield f"| {key} | {number} | {', '.join(cases)} |"
    without_any = [patch for patch in patches if not any(key.startswith(patch) for key in turned)]
    yield from (f"| {patch} | 0 | |" for patch in without_any)


def pairs(out: Path, patches: list[str], names: list[str]) -> None:
    """Compile each case that a patch turns as torch is and with the patch; keep both where code differs."""
    capability = capability_here()
    wanted = [
        (row["case"], patch)
        for row in read_rows(out / SWEEP_FILE)
        for patch, _, where in (key.partition(", ") for key in row["turned"])
        if patch in patches
        and where in (capability, "2 threads", "")
        and (not names or any(name in row["case"] for name in names))
    ]
    with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as folder:
        as_is = Worker(Path(folder) / AS_IS, "decisions")
        for patch in sorted({patch for _, patch in wanted}):
            patched = Worker(Path(folder) / patch, "decisions", f"patch={patch}")
            for case in [case for case, of_patch in wanted if of_patch == patch]:
                place = out / capability / patch / case.replace("::", "-")
                if (place / CASE_FILE).exists():
                    continue
                as_is.start(case)
                answer, before = patched.ask(case), as_is.answer(case)
                different = len({graph for graph, _ in answer["code"].items() ^ before["code"].items()})
                print(f"{patch}, {capability}: {case}: the code of {different} graphs differs", flush=True)
                if answer["reason"]:
                    print(f"  with the patch it fails: {answer['reason']}", flush=True)
                elif different:
                    keep(as_is.folder, patched.folder, place, case)
            patched.end()
        as_is.end()


def capability_here() -> str:
    """Return for which vectors code is compiled, or that it is for a GPU."""
    return ON_GPU if os.environ.get(TARGET) else os.environ.get("ATEN_CPU_CAPABILITY", CAPABILITY)


def keep(as_is: Path, patched: Path, place: Path, case: str) -> None:
    """Keep the dumps of a case as torch is, and with a patch."""
    shutil.rmtree(place, ignore_errors=True)
    for side, folder in (("A", as_is), ("B", patched)):
        if (folder / TREE).exists():
            shutil.copytree(folder / TREE, place / side / TREE)
    (place / CASE_FILE).write_text(case, encoding="utf-8")


def measure(out: Path, settings: BenchSettings, patches: list[str], jobs: int, *, again: bool) -> None:
    """Check and time each pair of dumps; keep and print a row for each graph whose code differs.

    Args:
        jobs: cases of a GPU at once: they are loaded and checked beside others, and take turns at timing.
        again: measure those, too, that an earlier start has measured.
    """
    capability = capability_here()
    for patch in patches:
        rows: list[dict[str, Any]] = []
        places = [file.parent for file in sorted((out / capability / patch).glob(f"*/{CASE_FILE}"))]
        if jobs == 1:
            for place in places:
                measure_case(place, settings, again=again)
        else:
            with figures.workers(jobs) as pool:
                in_turns = replace(settings, turns=out / "turns")
                list(pool.map(functools.partial(measure_case, settings=in_turns, again=again), places))
        for place in places:
            rows += json.loads((place / ROWS_FILE).read_text(encoding="utf-8"))
        rows.sort(key=lambda row: -row["call"]["speed"] if row.get("call") else 0)
        name = (
            f"sweep.{patch}"
            if capability in (CAPABILITY, ON_GPU) or patch == "short_ranges"
            else f"sweep.{patch}_{capability}"
        )
        command = f"python -m benchmarks.findings.changes measure --patch {patch}"
        command += f" --threads {settings.threads}" if settings.threads != 1 else ""
        how = {"capability": capability, "threads": settings.threads}
        if capability == ON_GPU:
            command += f" --target {os.environ[TARGET]}"
            how |= figures.gpu()
        elif capability != CAPABILITY:
            command = f"ATEN_CPU_CAPABILITY={capability} {command}"
        how["command"] = command
        figures.keep(name, rows, **how)
        print(f"\n{patch}: {PATCHES[patch].what}\n")
        print(*figures.shown(name, figures.read()[name]), sep="\n", flush=True)


def measure_case(place: Path, settings: BenchSettings, *, again: bool) -> None:
    """Keep a row for each graph of a case, where that was not done or is to be done `again`."""
    rows = place / ROWS_FILE
    if again or not rows.exists():
        write_whole(rows, json.dumps(list(measured(place, settings))))


def measured(place: Path, settings: BenchSettings) -> Iterator[dict[str, Any]]:
    """Yield what became of each graph of a case whose code differs: `probe whatif --runs A B`."""
    case = (place / CASE_FILE).read_text(encoding="utf-8")
    if case.startswith(GROUPS["networks"]):
        settings = replace(settings, budget=OF_NETWORK * settings.budget)
    label = case.removeprefix("findings_networks::").removeprefix("check_").replace("::", ", ")
    try:
        a, b = (ip.open_run(run) for side in "AB" for run in (place / side / TREE).glob("run_*"))
        graphs = whatif_of_runs(a, b, settings, trust=True).graphs
    except (ProbeError, ValueError) as error:
        # The folder is this machine's own, and where in it the reason stands is no part of it.
        yield {"label": label, "not_timed": re.sub(r"/\S+/", "", str(error).partition("\n")[0])}
        return
    for graph in graphs:
        if graph.not_timed != "same-code":
            kind = graph.diff.a.name.replace("_0.0", "").replace("model__0_", "")
            row = figures.of_graph(graph)
            print(f"{label}, {kind}: {row}", file=sys.stderr, flush=True)
            yield {"label": f"{label}, {kind}" if len(graphs) > 1 else label, **row}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("sweep", "pairs", "measure", "diff"))
    parser.add_argument("names", nargs="*", help="patches, for diff")
    parser.add_argument("--patch", action="append", choices=sorted(PATCHES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--operators", type=int, default=200)
    parser.add_argument("--only", action="append", help="cases with this text in their names")
    parser.add_argument("--target", metavar="GPU", help="compile for this GPU, simulated")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timing for each graph")
    parser.add_argument("--threads", type=int, default=1, help="of torch and OpenMP, for measure")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument("--jobs", type=int, default=2, help="processes of a sweep, or of a GPU's measuring")
    options = parser.parse_args()
    device = "cuda" if options.target else "cpu"
    proposed = (name for name, patch in PATCHES.items() if patch.proposed and patch.device == device)
    patches = options.patch or options.names or sorted(proposed)
    if options.what == "diff":
        print("".join(as_diff(PATCHES[name]) for name in patches))
        return
    if options.out is None:
        parser.error("--out is needed: a folder for the dumps that differ")
    out = options.out.resolve()
    if options.target:
        os.environ[TARGET] = options.target
    if options.what == "sweep":
        sweep(out, patches, options.only or [], options.operators, options.jobs)
    elif options.what == "pairs":
        pairs(out, patches, options.only or [])
    else:
        measure(
            out,
            BenchSettings(budget=options.budget, threads=options.threads),
            patches,
            options.jobs if options.target else 1,
            again=options.again,
        )


if __name__ == "__main__":
    main()
