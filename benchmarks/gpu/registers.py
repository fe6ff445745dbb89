"""Is what `probe asm` says of Triton kernels what the driver says of them? On a machine with a GPU.

    python -m benchmarks.gpu.registers --dumps FOLDER|ARCHIVE.tar.gz [--jobs 14] [--limit 170] [--only hflip]
    python -m benchmarks.gpu.registers [--target h200] [--jobs 14] [--limit 170] [--only softmax,hflip]

Takes the kernels of dumps of CUDA graphs, or generates those of every case for `cuda` of all scenarios, which
takes minutes (simulated, so that nothing is run). Compiles each with the configs that inductor tries first
twice: `probe asm`, in a process that sees no GPU, and Triton in a process that loads the result. Of each
config are compared

    registers    REG of cuobjdump                          CU_FUNC_ATTRIBUTE_NUM_REGS
    stack        larger of STACK and LOCAL of cuobjdump    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
    shared       metadata of the compiled kernel           the same, and CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    blocks       NVIDIA's rules, in `assembly/triton.py`   cuOccupancyMaxActiveBlocksPerMultiprocessor

Registers and stack are what `CompiledKernel` of Triton has as `n_regs` and four times `n_spills`: both are
what `load_binary` of its driver returns, which is called here without making a launcher.

Dumps with the fewest kernels come first. Prints a row for each dump or script as it is done, each config that
differs below it, and the sums. After `--limit` seconds all that runs is killed, and what was not reached is
named. Nothing is launched. Without a GPU nothing is compared, and every kernel is named with that reason.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as NoTimeLeftError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIGURES = ("registers", "stack", "shared", "blocks")
SHARED_STATIC = 1
"""CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, of cuda.h."""


@dataclass
class Kernel:
    """A kernel of a script: figures of its configs ahead of time, and by the driver; or what went wrong."""

    graph: Path
    name: str
    source: str
    ahead: dict[str, dict[str, Any]] = field(default_factory=dict)
    driver: dict[str, dict[str, Any]] = field(default_factory=dict)
    problem: str = ""


class Runner:
    """Runs commands, `jobs` at a time until `end`: each in a session of its own, which is killed whole."""

    def __init__(self, jobs: int, end: float) -> None:
        self.end = end
        self._free = threading.Semaphore(jobs)
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, command: list[str], *, gpu: bool = False) -> tuple[str, str]:
        """Return what a command printed, and in a line why it failed, empty where it did not.

        Into files: a process that a killed one leaves behind would hold a pipe open.
        """
        hidden = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
        environment = {**os.environ, **hidden, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        with self._free, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            left = self.end - time.monotonic()
            if left <= 0:
                return "", "no time left"
            child = subprocess.Popen(
                command, stdout=out, stderr=errors, env=environment, start_new_session=True
            )
            self._running.add(child)
            try:
                child.wait(left)
            except subprocess.TimeoutExpired:
                self.kill(child)
                return "", "no time left"
            finally:
                self._running.discard(child)
            out.seek(0)
            errors.seek(0)
            lines = [line for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
            failed = (lines or [f"status {child.returncode}"])[-1] if child.returncode not in (0, 1) else ""
            return out.read().decode(errors="replace"), failed

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        """Kill a command and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill all that runs."""
        self.end = 0.0
        for child in list(self._running):
            self.kill(child)


def main() -> None:
    """Take each script through dump, compile and load; print its row; end in time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="h200")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--limit", type=float, default=170)
    parser.add_argument("--only", default="")
    parser.add_argument("--dumps", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("registers"))
    parser.add_argument("--load", type=Path, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        for path in options.load:
            print(json.dumps(loaded(path)), flush=True)
        return
    sys.path.insert(0, str(ROOT))
    only = [name for name in options.only.split(",") if name]
    if options.dumps:
        works = dumped(options.dumps, options.folder)
    else:
        scripts = sorted((ROOT / "scenarios").glob("check_*.py"))
        works = {path.stem.removeprefix("check_"): path for path in scripts}
    works = {name: work for name, work in works.items() if not only or name in only}
    runner = Runner(options.jobs, time.monotonic() + options.limit)
    print(f"| scenario | kernels | configs | compared | {' | '.join(FIGURES)} |")
    print(f"|---|{'---:|' * (3 + len(FIGURES))}", flush=True)
    total = [0] * (3 + len(FIGURES))
    with ThreadPoolExecutor(len(works) or 1) as of_works, ThreadPoolExecutor(2 * options.jobs) as pool:
        futures = {of_works.submit(follow, work, runner, options, pool): name for name, work in works.items()}
        missing = set(works)
        try:
            for future in as_completed(futures, timeout=options.limit):
                missing.discard(futures[future])
                counts, notes = row(futures[future], future.result())
                total = [a + b for a, b in zip(total, counts, strict=True)]
                print("\n".join(notes), end="\n" if notes else "", flush=True)
        except NoTimeLeftError:
            pass
        runner.stop()
        print(f"| all | {' | '.join(map(str, total))} |", flush=True)
        if missing:
            print(f"not reached within {options.limit:g} s: {', '.join(sorted(missing))}", flush=True)
        of_works.shutdown(wait=False, cancel_futures=True)
        pool.shutdown(wait=False, cancel_futures=True)


def follow(
    work: Path | list[Kernel], runner: Runner, options: argparse.Namespace, pool: ThreadPoolExecutor
) -> list[Kernel] | str:
    """Return the kernels of a dump, or of a script's cases for `cuda`, with the figures of both sides.

    Or what failed.
    """
    if isinstance(work, Path):
        out = options.folder / work.stem
        if failed := generate(work, out, runner, options.target):
            return failed
        kernels = kernels_of(out)
    else:
        kernels = work
    ahead = [pool.submit(compile_ahead, kernel, runner, options.target) for kernel in kernels]
    load(kernels, runner, options.folder)
    for future in ahead:
        future.result()
    return kernels


def generate(script: Path, out: Path, runner: Runner, target: str) -> str:
    """Dump a script's cases for `cuda` of a simulated GPU, unless that was done; return what failed."""
    listed, failed = runner.run([sys.executable, str(script), "--list"])
    cases = [line.split()[0] for line in listed.splitlines()[1:] if "cuda" in line.split()[1:]]
    if cases and not failed and not list(out.glob("torch_compile_debug/run_*")):
        command = [sys.executable, "-m", "inductor_probe", "dump", str(script), "--out", str(out)]
        command += [f"--case={case}" for case in cases] + [f"--target={target}"]
        _, failed = runner.run(command)
    return failed


def dumped(dumps: Path, folder: Path) -> dict[str, Path | list[Kernel]]:
    """Return the kernels of each dump below a folder, or in an archive, those with the fewest first."""
    if dumps.is_file():
        with tarfile.open(dumps) as archive:
            archive.extractall(folder / "dumps", filter="data")
        dumps = folder / "dumps"
    by_dump: dict[str, list[Kernel]] = {}
    seen = set[str]()
    for run in sorted(dumps.glob("**/run_*")):
        parents = [part for part in run.relative_to(dumps).parts[:-1] if part != "torch_compile_debug"]
        new = [kernel for kernel in kernels_of(run) if kernel.source not in seen]
        seen |= {kernel.source for kernel in new}
        if new:
            by_dump.setdefault(parents[-1] if parents else run.name, []).extend(new)
    smallest_first = sorted(by_dump, key=lambda name: len(by_dump[name]))
    return {name: by_dump[name] for name in smallest_first}


def kernels_of(out: Path) -> list[Kernel]:
    """Return the Triton kernels of a dump, each text once."""
    from inductor_probe.reader.output_code import parse_output_code  # noqa: PLC0415 - loading needs none

    found: dict[str, Kernel] = {}
    for path in sorted(out.glob("**/output_code.py")):
        for kernel in parse_output_code(path.read_text(), path).kernels:
            if kernel.backend == "triton":
                found.setdefault(kernel.source, Kernel(path.parent, kernel.name, kernel.source))
    return list(found.values())


def compile_ahead(kernel: Kernel, runner: Runner, target: str) -> None:
    """Add what `probe asm` says of a kernel's configs."""
    command = [sys.executable, "-m", "inductor_probe", "asm", kernel.name, str(kernel.graph), "--trust"]
    text, failed = runner.run([*command, "--json", f"--arch={target}"])
    kernel.problem = kernel.problem or failed
    for config in json.loads(text)["kernels"][0]["configs"] if not failed else ():
        occupancy = config["occupancy"]
        kernel.ahead[key(config["config"])] = {"failure": config["failure"]} if config["failure"] else {
            "registers": config["registers"],
            "stack": config["stack_bytes"],
            "shared": config["shared_bytes"],
            "blocks": occupancy and occupancy["blocks"],
        }  # fmt: skip


def key(config: dict[str, Any]) -> str:
    """Return a config as text, the same for both sides."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def load(kernels: list[Kernel], runner: Runner, folder: Path) -> None:
    """Add what the driver says of kernels, which one process loads."""
    files = []
    for kernel in kernels:
        digest = hashlib.sha256(kernel.source.encode()).hexdigest()[:12]
        files.append(folder / "loaded" / digest / f"{kernel.name}.py")
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(kernel.source)
    if not files:
        return
    command = [sys.executable, str(Path(__file__).resolve()), "--load", *map(str, files)]
    text, failed = runner.run(command, gpu=True)
    answers = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for number, kernel in enumerate(kernels):
        answer: dict[str, Any] = (
            answers[number] if number < len(answers) else {"problem": failed or "not loaded"}
        )
        kernel.problem = kernel.problem or answer.get("problem", "")
        kernel.driver = answer.get("configs", {})


def loaded(path: Path) -> dict[str, Any]:
    """Return what the driver says of each config of a kernel; in a process that loads it."""
    import torch

    from inductor_probe.assembly import triton_child as child  # noqa: PLC0415
    from inductor_probe.harness.configs import config_values  # noqa: PLC0415

    if not torch.cuda.is_available():
        return {"problem": "no GPU here"}
    torch.cuda.init()
    configs: dict[str, dict[str, Any]] = {}
    try:
        tuner = child._kernel(child._module(path), path.stem)
        for config in tuner.configs:
            configs[key(config_values(config))] = figures(child, tuner, config)
    except Exception as error:  # a kernel that cannot be read is a row of the table, and not the end of it
        return {"problem": f"{type(error).__name__}: {error}", "configs": configs}
    return {"configs": configs}


def figures(child: Any, tuner: Any, config: Any) -> dict[str, Any]:
    """Compile a config, load it as `CompiledKernel._init_handles` does, and ask the driver."""
    from triton.runtime import driver as triton_driver

    try:
        binary = child._compiled(tuner, config)
        threads, dynamic = binary.metadata.num_warps * 32, binary.metadata.shared
        utils = triton_driver.active.utils
        _, handle, registers, spills, *_ = utils.load_binary(binary.name, binary.kernel, dynamic, 0)
    except Exception as error:  # triton's passes, ptxas and the driver raise what they like
        return {"failure": f"{type(error).__name__}: {(str(error).splitlines() or [''])[-1]}"}
    driver = ctypes.CDLL("libcuda.so.1")
    function = ctypes.c_void_p(handle)
    static, blocks = ctypes.c_int(), ctypes.c_int()
    status = driver.cuFuncGetAttribute(ctypes.byref(static), SHARED_STATIC, function)
    status |= driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(blocks), function, ctypes.c_int(threads), ctypes.c_size_t(dynamic)
    )
    if status:
        return {"failure": f"libcuda: status {status}"}
    return {
        "registers": registers,
        "stack": 4 * spills,
        "shared": dynamic + static.value,
        "blocks": blocks.value,
    }


def row(name: str, kernels: list[Kernel] | str) -> tuple[list[int], list[str]]:
    """Return the counts of a dump or script, and its lines: the row, then each config that differs."""
    counts = [0] * (3 + len(FIGURES))
    if isinstance(kernels, str):
        return counts, [f"| {name} | {' | '.join(map(str, counts))} |", f"  {kernels}"]
    notes = []
    for kernel in kernels:
        counts[0] += 1
        counts[1] += len(kernel.ahead)
        if kernel.problem:
            notes.append(f"  {kernel.name}: {kernel.problem}")
        for config, mine in kernel.ahead.items():
            other = kernel.driver.get(config)
            if other is None or "failure" in mine or "failure" in other:
                both = mine.get("failure", ""), (other or {}).get("failure", "")
                notes += [f"  {kernel.name} {config}: {both[0]} | {both[1]}"] if any(both) else []
                continue
            counts[2] += 1
            for number, figure in enumerate(FIGURES):
                counts[3 + number] += mine[figure] == other[figure]
                if mine[figure] != other[figure]:
                    notes.append(f"  {kernel.name} {config}: {figure} {mine[figure]} | {other[figure]}")
    return counts, [f"| {name} | {' | '.join(map(str, counts))} |", *notes]


if __name__ == "__main__":
    main()
