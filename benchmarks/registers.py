"""Is what `probe asm` says of Triton kernels what the driver says of them? On a machine with a GPU.

    python benchmarks/registers.py [--target h200] [--jobs 14] [--limit 170] [--only softmax,hflip]

Generates the kernels of every case for `cuda` of all scenarios (simulated, so that nothing is run), and
compiles each with the configs that inductor tries first twice: `probe asm`, in a process that sees no GPU,
and Triton in a process that loads the result. Of each config are compared

    registers    REG of cuobjdump                          CU_FUNC_ATTRIBUTE_NUM_REGS
    stack        larger of STACK and LOCAL of cuobjdump    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
    shared       metadata of the compiled kernel           the same, and CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    blocks       NVIDIA's rules, in `assembly/triton.py`   cuOccupancyMaxActiveBlocksPerMultiprocessor

Registers and stack are what `CompiledKernel` of Triton has as `n_regs` and four times `n_spills`: both are
what `load_binary` of its driver returns, which is called here without making a launcher.

Prints a row for each script, and each config that differs. What `--limit` seconds leave no time for is named.
Nothing is launched. Without a GPU nothing is compared, and every kernel is named with that reason.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ("registers", "stack", "shared", "blocks")
SHARED_STATIC = 1
"""CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, of cuda.h."""


@dataclass
class Kernel:
    """A kernel of a script: figures of its configs ahead of time, and by the driver; or what went wrong."""

    script: str
    name: str
    source: str
    ahead: dict[str, dict[str, Any]]
    driver: dict[str, dict[str, Any]]
    problem: str = ""


def main() -> None:
    """Dump, compile ahead of time, load, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="h200")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--limit", type=float, default=170)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=Path("registers"))
    parser.add_argument("--load", type=Path, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        print(json.dumps([loaded(path) for path in options.load]))
        return
    end = time.monotonic() + options.limit
    sys.path.insert(0, str(ROOT))
    from simulated_gpu import scripts  # noqa: PLC0415 - it imports the package, which a loading process need not

    cases = list(scripts([], [name for name in options.only.split(",") if name]))
    cases = [(script, names) for script, names in cases if script.parent.name == "scenarios"]
    cases.sort(key=lambda item: -len(item[1]))
    with ThreadPoolExecutor(options.jobs) as pool:
        dumps = pool.map(
            lambda item: dump(*item, options.target, options.folder, end - 0.5 * options.limit), cases
        )
        found = [kernel for kernels in dumps for kernel in kernels]
        said(end, options, f"{len(found)} kernels generated")
        unique = list({kernel[-1]: kernel for kernel in found}.values())
        kernels = list(
            pool.map(lambda item: ahead_of_time(item, options, end - 0.25 * options.limit), unique)
        )
        said(end, options, f"{sum(len(kernel.ahead) for kernel in kernels)} configs compiled ahead of time")
        shares = [kernels[start :: options.jobs] for start in range(options.jobs)]
        list(pool.map(lambda share: by_the_driver(share, options.folder, end), shares))
        said(end, options, f"{sum(len(kernel.driver) for kernel in kernels)} configs loaded")
    show(kernels)


def said(end: float, options: argparse.Namespace, text: str) -> None:
    """Say on stderr what is done, and after how long."""
    print(f"{options.limit - (end - time.monotonic()):5.0f} s  {text}", file=sys.stderr, flush=True)


def environment(*, gpu: bool) -> dict[str, str]:
    """Return the variables of a process; `gpu`: does it see one?"""
    hidden = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, **hidden, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def run(command: list[str], *, gpu: bool, end: float) -> tuple[str, str]:
    """Run a command; return what it printed, and in a line why it failed, empty where it did not."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment(gpu=gpu),
            timeout=max(1.0, end - time.monotonic()),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", "no time left"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    failed = (lines or [f"status {done.returncode}"])[-1] if done.returncode not in (0, 1) else ""
    return done.stdout, failed


def dump(
    script: Path, cases: tuple[str, ...], target: str, folder: Path, end: float
) -> list[tuple[str, Path, str, str]]:
    """Return script, graph, name and text of each Triton kernel that its cases get."""
    out = folder / script.stem
    if not list(out.glob("torch_compile_debug/run_*")):
        command = [sys.executable, "-m", "inductor_probe", "dump", str(script), "--out", str(out)]
        command += [f"--case={case}" for case in cases] + [f"--target={target}"]
        _, failed = run(command, gpu=False, end=end)
        if failed:
            print(f"{script.stem}: {failed}", file=sys.stderr)
    from inductor_probe.reader.output_code import parse_output_code  # noqa: PLC0415

    found = []
    for path in sorted(out.glob("torch_compile_debug/run_*/torchinductor/*/output_code.py")):
        for kernel in parse_output_code(path.read_text(), path).kernels:
            if kernel.backend == "triton":
                found.append((script.stem.removeprefix("check_"), path.parent, kernel.name, kernel.source))
    return found


def ahead_of_time(found: tuple[str, Path, str, str], options: argparse.Namespace, end: float) -> Kernel:
    """Return a kernel with what `probe asm` says of its configs."""
    script, graph, name, source = found
    kernel = Kernel(script, name, source, {}, {})
    command = [sys.executable, "-m", "inductor_probe", "asm", name, str(graph), "--trust", "--json"]
    text, kernel.problem = run([*command, f"--arch={options.target}"], gpu=False, end=end)
    for config in json.loads(text)["configs"] if not kernel.problem else ():
        occupancy = config["occupancy"]
        kernel.ahead[key(config["config"])] = {"failure": config["failure"]} if config["failure"] else {
            "registers": config["registers"],
            "stack": config["stack_bytes"],
            "shared": config["shared_bytes"],
            "blocks": occupancy and occupancy["blocks"],
        }  # fmt: skip
    return kernel


def key(config: dict[str, Any]) -> str:
    """Return a config as text, the same for both sides."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def by_the_driver(share: list[Kernel], folder: Path, end: float) -> None:
    """Add what the driver says of the kernels of a share, which one process loads."""
    files = []
    for kernel in share:
        digest = hashlib.sha256(kernel.source.encode()).hexdigest()[:12]
        files.append(folder / "loaded" / digest / f"{kernel.name}.py")
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(kernel.source)
    if not files:
        return
    command = [sys.executable, str(Path(__file__).resolve()), "--load", *map(str, files)]
    text, failed = run(command, gpu=True, end=end)
    lines = text.strip().splitlines()
    answers = (
        json.loads(lines[-1]) if lines and not failed else [{"problem": failed or "no answer"}] * len(share)
    )
    for kernel, answer in zip(share, answers, strict=True):
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


def show(kernels: list[Kernel]) -> None:
    """Print how many configs of each script agree in each figure, then each that does not."""
    print(f"| scenario | kernels | configs | compared | {' | '.join(FIGURES)} |")
    print(f"|---|{'---:|' * (3 + len(FIGURES))}")
    total = [0] * (3 + len(FIGURES))
    notes = []
    for script in sorted({kernel.script for kernel in kernels}):
        counts = [0] * len(total)
        for kernel in (kernel for kernel in kernels if kernel.script == script):
            counts[0] += 1
            counts[1] += len(kernel.ahead)
            if kernel.problem:
                notes.append(f"{script} {kernel.name}: {kernel.problem}")
            for config, mine in kernel.ahead.items():
                other = kernel.driver.get(config)
                if other is None or "failure" in mine or "failure" in other:
                    both = (
                        mine.get("failure", "compiled"),
                        (other or {}).get("failure", "loaded" if other else ""),
                    )
                    if both[1] or both[0] != "compiled":
                        notes.append(f"{script} {kernel.name} {config}: {both[0]} | {both[1]}")
                    continue
                counts[2] += 1
                for number, figure in enumerate(FIGURES):
                    counts[3 + number] += mine[figure] == other[figure]
                    if mine[figure] != other[figure]:
                        notes.append(
                            f"{script} {kernel.name} {config}: {figure} {mine[figure]} | {other[figure]}"
                        )
        print(f"| {script} | {' | '.join(map(str, counts))} |")
        total = [a + b for a, b in zip(total, counts, strict=True)]
    print(f"| all | {' | '.join(map(str, total))} |\n")
    print("\n".join(notes))


if __name__ == "__main__":
    main()
