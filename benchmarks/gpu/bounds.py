"""How far are the bounds of `probe kernels` from what kernels take? On a machine with a GPU that it knows.

    python -m benchmarks.gpu.bounds FOLDER [--jobs 14] [--timers 5] [--only hflip,softmax] [--stop-after 210]
    python -m benchmarks.gpu.bounds FOLDER --networks
    python -m benchmarks.gpu.bounds FOLDER --products

The first dumps the cases for `cuda` of all scenarios, the second the networks of `libraries.py`, in parallel,
and then times each kernel and library call alone, one at a time, with a cold L2 cache
(`harness/gpu_clock.py`). It prints the bound of each beside that, and by how much times are above bounds;
`kernels.json` in FOLDER has the same, and how each Triton kernel was launched. The third lets max-autotune
time matrix products of several sizes and dtypes, and prints the bound beside the fastest choice. All go on
where they were stopped, with the same FOLDER. Without a GPU `--target h200` prints the bounds alone.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import queue
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.simulated import LIBRARIES, ROOT, cuda_cases
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.machine.roofline import runs_kernel
from inductor_probe.model.debug_dir import GraphDir
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.manifest import Manifest
from inductor_probe.reader.debug_dir import read_graph, read_run

TIMES = "times.jsonl"
LOCK = "gpu.lock"
PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
CASES_AT_ONCE = 4
"""Of a script in one process: each process imports torch for several seconds."""
CALLS = 32
PRODUCTS = """
import torch

SIZES = [
    ("mm", torch.bfloat16, (512, 512, 512)), ("mm", torch.bfloat16, (2048, 2048, 2048)),
    ("mm", torch.bfloat16, (4096, 4096, 4096)), ("mm", torch.bfloat16, (16, 4096, 4096)),
    ("mm", torch.bfloat16, (8192, 8192, 512)), ("mm", torch.float16, (4096, 4096, 4096)),
    ("mm", torch.float32, (1024, 1024, 1024)), ("tf32", torch.float32, (2048, 2048, 2048)),
    ("bmm", torch.bfloat16, (64, 512, 512, 64)),
]
for kind, dtype, sizes in SIZES:
    torch._dynamo.reset()
    torch.set_float32_matmul_precision("high" if kind == "tf32" else "highest")
    *batch, m, n, k = sizes
    a = torch.randn(*batch, m, k, device="cuda", dtype=dtype)
    b = torch.randn(*batch, k, n, device="cuda", dtype=dtype)
    torch.compile(torch.bmm if batch else torch.mm, mode="max-autotune-no-cudagraphs")(a, b)
    print(kind, dtype, sizes, flush=True)
"""


@dataclass(frozen=True)
class Timed:
    """A kernel of a graph: its row, and the seconds that all of its launches took; None where not timed.

    `launched` has for each launch of a Triton kernel its numbers, and what was compiled (`_launched`);
    `source` is its text.
    """

    label: str
    row: KernelRow
    seconds: float | None
    launched: tuple[dict[str, Any], ...] = ()
    source: str = ""

    @property
    def ratio(self) -> float | None:
        """The time over the bound."""
        bound = self.row.bound.seconds if self.row.bound else None
        return self.seconds / bound if self.seconds and bound else None


def dump(
    script: Path,
    cases: tuple[str, ...],
    out: Path,
    target: str | None,
    *,
    threads: int = 1,
    arguments: tuple[str, ...] = (),
) -> None:
    """Dump some cases of a script, once: a folder that has `done` in it has been dumped."""
    if (out / "done").exists():
        return
    command = [sys.executable, "-m", "inductor_probe", "dump", str(script), "--out", str(out)]
    command += [f"--case={case}" for case in cases] + ([f"--target={target}"] if target else [])
    command += ["--", *arguments] if arguments else []
    environment = {
        **os.environ, "PYTHONPATH": PATH, "TORCHINDUCTOR_COMPILE_THREADS": str(threads),
        "OMP_NUM_THREADS": "2",
    }  # fmt: skip
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    out.mkdir(parents=True, exist_ok=True)
    (out / "said.txt").write_text(f"{done.stdout}\n{done.stderr}")
    (out / "done").write_text(str(done.returncode))
    note(f"{time.monotonic() - begin:4.0f} s  dump {out.name} (status {done.returncode})")


def note(text: str) -> None:
    """Say what is going on."""
    print(text, file=sys.stderr, flush=True)


def dump_scenarios(folder: Path, only: list[str], jobs: int, target: str | None) -> None:
    """Dump the cases for `cuda` of all scenarios, a few in each process."""
    scripts = [
        script
        for script in sorted((ROOT / "scenarios").glob("check_*.py"))
        if not only or script.stem.removeprefix("check_") in only
    ]
    with ThreadPoolExecutor(jobs) as pool:
        listed = dict(zip(scripts, pool.map(cuda_cases, scripts), strict=True))
        parts = [
            (script, cases[start : start + CASES_AT_ONCE])
            for script, cases in listed.items()
            for start in range(0, len(cases), CASES_AT_ONCE)
        ]
        parts.sort(key=lambda part: "matmul" not in part[0].name)  # they take longest
        list(
            pool.map(
                lambda part: dump(part[0], part[1], folder / f"{part[0].stem}-{part[1][0]}", target),
                parts,
            )
        )


def dump_networks(folder: Path, only: list[str], jobs: int, target: str | None) -> None:
    """Dump the networks of `libraries.py`, each in a process."""
    script = ROOT / "benchmarks/gpu/libraries.py"
    with ThreadPoolExecutor(jobs) as pool:
        for name in only or LIBRARIES:
            pool.submit(dump, script, (), folder / name, target, arguments=(name,))


def graphs_in(folder: Path) -> Iterator[tuple[str, GraphDir, Manifest | None]]:
    """Yield each graph that was dumped, with its script and case, and the manifest of its run."""
    for path in sorted(folder.glob("*/torch_compile_debug/run_*")):
        run = read_run(path)
        for graph in run.graphs:
            record = run.manifest.graph(graph.name) if run.manifest else None
            script = Path(run.manifest.script).stem.removeprefix("check_") if run.manifest else path.parts[-3]
            script = path.parts[-3] if script == "libraries" else script
            yield f"{script} {(record.case if record else None) or ''}".strip(), graph, run.manifest


def time_graphs(folder: Path, timers: int, stop_at: float) -> None:
    """Time the kernels of all graphs, in a few processes: only one of them uses the GPU at a time."""
    known = {row["graph"] for row in read_times(folder)}
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for _, graph, _ in graphs_in(folder):
        if str(graph.path) not in known:
            todo.put(str(graph.path))

    def work() -> None:
        command = [sys.executable, "-m", "benchmarks.gpu.bounds", str(folder), "--timer"]
        environment = {
            **os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "PYTHONPATH": PATH,
            "TRITON_CACHE_DIR": str(folder / "cache/triton"), "TEARDOWN_CUPTI": "0",
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache/inductor"),
        }  # fmt: skip
        with (folder / "timers.txt").open("a") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("a timer is started with pipes")
            while time.monotonic() < stop_at:
                try:
                    path = todo.get_nowait()
                except queue.Empty:
                    break
                process.stdin.write(path + "\n")
                process.stdin.flush()
                if not process.stdout.readline():
                    note(f"a timer ended at {path}: see {folder / 'timers.txt'}")
                    return
            process.stdin.close()
            process.wait()

    threads = [threading.Thread(target=work) for _ in range(timers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if left := todo.qsize():
        note(f"{left} graphs not timed: the time given was over; start again to go on")


def timer(folder: Path) -> None:
    """Time the graphs whose folders come on standard input; write the seconds of each kernel."""
    # Here and not above: the other process dumps and compares, and has no use for torch.
    import random  # noqa: PLC0415

    import torch

    from benchmarks.sweeps.bench_worker import execute, write  # noqa: PLC0415
    from inductor_probe.harness import overheads  # noqa: PLC0415
    from inductor_probe.harness.bench import Bench  # noqa: PLC0415
    from inductor_probe.harness.gpu_clock import GpuClock, ProfiledStream  # noqa: PLC0415

    overheads.MOST_LAUNCHES = 5_000  # a network has hundreds, and each is timed alone
    random.seed(0)
    clock = None
    for line in sys.stdin:
        path = Path(line.strip())
        steps: list[dict[str, Any]] = []
        error = None
        begin = time.monotonic()
        try:
            _, file = write(path, folder)
            bench = Bench(execute(file))
            with (folder / LOCK).open("w") as lock, torch.no_grad():
                fcntl.flock(lock, fcntl.LOCK_EX)
                clock = clock or GpuClock(ProfiledStream("cuda"), cold=True)
                remarks: list[Any] = []
                alike: dict[str, float] = {}  # launches of one kernel for layers that are: timed once
                for step in overheads.steps_of(bench, bench.inputs(0), remarks):
                    arguments = step.launch.values()[0]
                    forms = [
                        (tuple(one.shape), one.dtype) if hasattr(one, "shape") else one for one in arguments
                    ]
                    key = f"{step.kind} {step.name} {forms}"
                    if key not in alike:
                        run = step.launch.starter(step.run)(step.launch.values())
                        alike[key] = clock(run, CALLS)
                    launched = _launched(step.run, arguments)
                    steps.append(
                        {"kind": step.kind, "name": step.name, "seconds": alike[key], "launched": launched}
                    )
                error = "; ".join(map(str, remarks)) or None
                torch.cuda.synchronize()
                clock._plans.clear()  # which keep what they call, and its arguments
                torch.cuda.empty_cache()
        except Exception as caught:  # a graph that cannot be called again is a row without times
            error = f"{type(caught).__name__}: {caught}"[:300]
        taken = round(time.monotonic() - begin, 2)
        row = {"graph": str(path), "steps": steps, "error": error, "took": taken}
        with (folder / TIMES).open("a") as times:
            times.write(json.dumps(row) + "\n")
        print("done", flush=True)


def _launched(kernel: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return the numbers that a Triton kernel was given, its block sizes, and what the driver says of it.

    Of `CachingAutotuner` of torch/_inductor/runtime/triton_heuristics.py; empty of all else.
    """
    launchers = getattr(kernel, "launchers", ())
    if not launchers:
        return {}
    launcher = launchers[0]
    names = kernel.triton_meta["signature"]
    sizes = {name: value for name, value in zip(names, arguments, strict=False) if isinstance(value, int)}
    return {
        **sizes,
        **launcher.config.kwargs,
        "warps": launcher.config.num_warps,
        "stages": launcher.config.num_stages,
        "registers": getattr(launcher, "n_regs", None),
        "spills": getattr(launcher, "n_spills", None),
        "shared": getattr(launcher, "shared", None),
        "grid": kernel.inductor_meta.get("grid_type"),
    }


def read_times(folder: Path) -> list[dict[str, Any]]:
    """Return what was timed so far."""
    path = folder / TIMES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def compared(folder: Path) -> list[Timed]:
    """Return each kernel with its bound and its time."""
    times = {row["graph"]: row for row in read_times(folder)}
    found = []
    for label, graph, manifest in graphs_in(folder):
        steps = times.get(str(graph.path), {}).get("steps", [])
        compiled = read_graph(graph, manifest)
        sources = {kernel.name: kernel.source for kernel in (compiled.code.kernels if compiled.code else ())}
        for row in kernel_rows(compiled):
            if row.bound is None:
                continue
            own = [step for step in steps if runs_kernel(row.name, step["kind"], step["name"])]
            seconds = sum(step["seconds"] for step in own) if len(own) >= len(row.launches) else None
            launched = tuple(step.get("launched", {}) for step in own)
            found.append(Timed(label, row, seconds, launched, sources.get(row.name, "")))
    return found


def _passes(source: str) -> int:
    """Return in how many loops over a reduction a kernel reads the same operand, at most."""
    loops = source.split("for r0_offset")[1:]
    reads = Counter(name for text in loops for name in {*re.findall(r"tl\.load\((\w+) \+", text)})
    return max(reads.values(), default=1)


def write_kernels(folder: Path, found: list[Timed]) -> None:
    """Write what predictions could be made of: a row for each kernel that was timed."""
    rows = [
        {
            "case": one.label, "kernel": one.row.name, "kind": one.row.kind, "backend": one.row.backend,
            "launches": len(one.row.launches), "nodes": len(one.row.nodes), "seconds": one.seconds,
            "bytes_read": one.row.bytes_read, "bytes_written": one.row.bytes_written,
            "bound": one.row.bound.seconds if one.row.bound else None,
            "moved": one.row.bound.moved if one.row.bound else None, "launched": one.launched,
            "passes": _passes(one.source),
        }
        for one in found
        if one.seconds
    ]  # fmt: skip
    (folder / "kernels.json").write_text(json.dumps(rows, indent=1, default=str))


def print_kernels(folder: Path) -> None:
    """Print a row for each kernel, and how far times are from bounds."""
    found = compared(folder)
    write_kernels(folder, found)
    print("| case | kernel | bytes at least | FLOP | at least | of | time | time / bound |")
    print("| --- | --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for one in found:
        bound = one.row.bound
        if bound is None:
            continue
        cells = [one.label, one.row.name[:48], str(bound.moved or "-")]
        cells += [f"{bound.flops:.3g}" if bound.flops else "-", micro(bound.seconds)]
        cells += [bound.limit or bound.unbounded or "-", micro(one.seconds)]
        cells += [f"{one.ratio:.2f}" if one.ratio else "-"]
        print(f"| {' | '.join(cells)} |")
    bounded = [one for one in found if one.row.bound and one.row.bound.seconds]
    ratios = [(one, one.ratio) for one in bounded if one.ratio]
    print(f"\n{len(found)} kernels and library functions, {len(bounded)} with a bound, {len(ratios)} timed")
    print("time / bound, by the time: median, 10th to 90th percentile, least")
    for low, high in ((0.0, 3e-6), (3e-6, 10e-6), (10e-6, 1e9)):
        group = sorted(ratio for one, ratio in ratios if low <= (one.seconds or 0) < high)
        if group:
            tenth, last = group[len(group) // 10], group[-1 - len(group) // 10]
            over = "above 10 us" if high > 1 else f"{low * 1e6:.0f} to {high * 1e6:.0f} us"
            print(
                f"  {over:12} {len(group):4} kernels  {statistics.median(group):7.2f}  {tenth:.2f} to "
                f"{last:.2f}  {group[0]:.2f}"
            )
    broken = [one for one, ratio in ratios if ratio < 1]
    print(f"{len(broken)} took less than their bound:" if broken else "none took less than its bound")
    for one in broken:
        print(f"  {one.label} {one.row.name}: {one.ratio:.3f}")
    for row in read_times(folder):
        if row["error"]:
            print(f"  not all timed: {row['graph'].rpartition('/torch_compile_debug')[0]}: {row['error']}")


def micro(seconds: float | None) -> str:
    """Return microseconds."""
    return "-" if seconds is None else f"{seconds * 1e6:.3g} us"


def print_products(folder: Path) -> None:
    """Print the bound of each matrix product beside the fastest choice of max-autotune."""
    from inductor_probe import open_run  # noqa: PLC0415 - it is needed for these alone

    print("| operands | product | bytes at least | FLOP | at least | of | fastest choice | time / bound |")
    print("| --- | --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for path in sorted(folder.glob("*/torch_compile_debug/run_*")):
        for graph in open_run(path).graphs:
            tuned = [
                tuning.fastest.ms / 1e3
                for tuning in graph.tunings()
                if not tuning.of_kernel and tuning.fastest and tuning.fastest.ms
            ]
            for row in graph.kernels():
                bound = row.bound
                if bound is None or not bound.flops or bound.seconds is None:
                    continue
                shapes = " x ".join(
                    f"{passed.layout.dtype} {list(passed.layout.size or ())}"
                    for passed in row.launches[0].passed[:2]
                    if passed.layout
                )
                best = min(tuned, default=None)
                cells = [shapes, bound.product or "-", str(bound.moved), f"{bound.flops:.3g}"]
                cells += [micro(bound.seconds), bound.limit or "-", micro(best)]
                cells += [f"{best / bound.seconds:.2f}" if best else "-"]
                print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Dump, time, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=lambda text: Path(text).absolute())
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--timers", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--stop-after", type=float, default=210, help="seconds after which no graph is timed")
    parser.add_argument("--target", help="simulate this GPU, and time nothing")
    parser.add_argument("--networks", action="store_true", help="those of libraries.py, not the scenarios")
    parser.add_argument("--products", action="store_true", help="matrix products under max-autotune")
    parser.add_argument("--timer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    begin = time.monotonic()
    if options.timer:
        timer(options.folder)
        return
    if options.products:
        folder = options.folder / "products"
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "products.py"
        script.write_text(PRODUCTS)
        dump(script, (), folder / "dump", options.target, threads=options.jobs)
        print_products(folder)
        return
    folder = options.folder / ("networks" if options.networks else "scenarios")
    folder.mkdir(parents=True, exist_ok=True)
    only = [name for name in options.only.split(",") if name]
    (dump_networks if options.networks else dump_scenarios)(folder, only, options.jobs, options.target)
    note(f"{time.monotonic() - begin:.0f} s  dumped")
    if not options.target:
        time_graphs(folder, options.timers, begin + options.stop_after)
        note(f"{time.monotonic() - begin:.0f} s  timed")
    print_kernels(folder)


if __name__ == "__main__":
    main()
