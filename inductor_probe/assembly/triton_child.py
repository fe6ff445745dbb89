"""Compiles a Triton kernel for a GPU that need not be there, and prints as JSON what came of it.

Command line: `triton_child.py FILE NAME ARCHITECTURE CONFIGS`: the kernel's text as a module, its name, `90`
or `0` for what it was generated for, and configs as `asked_configs` takes them, empty for inductor's own.

torch/_inductor/runtime/triton_heuristics.py, `CachingAutotuner._precompile_config`, makes the options and
calls `triton.compile` with a target: that needs neither a driver nor a device, which is how inductor compiles
in processes beside the one with the GPU. The binary is taken as `triton.compile` returns it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from torch._inductor.runtime import triton_helpers

from inductor_probe.harness.configs import asked_configs, config_values

_RESOURCES = ("--dump-resource-usage",)
_DISASSEMBLY = ("-g", "-c")
_FAILED = re.compile(r"^ptxas\b.*\b(error|fatal)\b")
"""In the line of ptxas's that says what is wrong; its command is the last one."""


def main(file: str, name: str, architecture: int, configs: str) -> None:
    """Print what each config was compiled to: see the command line above."""
    triton_helpers.set_driver_to_gpu = lambda: None  # the text calls it, and there may be no driver
    tuner = _kernel(_module(Path(file)), name)
    if architecture:
        _retarget(tuner, architecture)
    answer = {"torch": torch.__version__, "triton": triton.__version__, "cc": tuner.device_props.cc}
    try:
        asked = asked_configs(configs, tuner.configs[0], list(tuner.fn.arg_names))
    except ValueError as error:
        print(json.dumps({**answer, "refused": str(error)}))
        return
    rows = [_row(tuner, config, asked=bool(asked)) for config in asked or tuner.configs]
    print(json.dumps({**answer, "configs": rows}))


def _module(file: Path) -> Any:
    """Import the text of a kernel: Triton reads functions from the file that they are in."""
    spec = importlib.util.spec_from_file_location("kernel", file)
    assert spec is not None  # noqa: S101 - of a file that ends in .py there is one
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    return module


def _kernel(module: Any, name: str) -> Any:
    """Return the kernel; the text of a user's own has the name that he gave it."""
    kernels = {key: value for key, value in vars(module).items() if hasattr(value, "device_props")}
    return kernels[name] if name in kernels or len(kernels) != 1 else next(iter(kernels.values()))


def _retarget(tuner: Any, architecture: int) -> None:
    props = tuner.device_props._replace(cc=architecture, major=architecture // 10)
    tuner.device_props = props
    tuner.triton_meta = {**tuner.triton_meta, "device": props}


def _row(tuner: Any, config: Any, *, asked: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"config": config_values(config), "asked": asked}
    try:
        binary = _compiled(tuner, config)
    except Exception as error:  # whatever Triton, LLVM or ptxas raises: it is what is to be shown
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        message = next((line for line in lines if _FAILED.search(line)), lines[-1])
        return {**row, "failure": f"{type(error).__name__}: {message}"}
    cubin = Path("kernel.cubin")
    cubin.write_bytes(binary.asm["cubin"])
    stages = {stage: binary.asm[stage] for stage in ("ttir", "ttgir", "llir", "ptx")}
    return row | {
        "threads": binary.metadata.num_warps * 32,
        "shared": binary.metadata.shared,
        "stages": {**stages, "sass": _tool("nvdisasm", *_DISASSEMBLY, str(cubin))},
        "resources": _tool("cuobjdump", *_RESOURCES, str(cubin)),
    }


def _compiled(tuner: Any, config: Any) -> Any:
    """Return what `triton.compile` made of a config: inductor keeps no more of it than a launch takes."""
    binaries: list[Any] = []
    compile_kernel: Callable[..., Any] = triton.compile

    def compile_and_keep(*args: Any, **kwargs: Any) -> Any:
        binaries.append(compile_kernel(*args, **kwargs))
        return binaries[-1]

    triton.compile = compile_and_keep
    try:
        tuner._precompile_config(config)
    finally:
        triton.compile = compile_kernel
    return binaries[-1]


def _tool(name: str, *arguments: str) -> str | None:
    """Run a tool of those that Triton ships; None where it has none."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    if not tool.exists():
        return None
    ended = subprocess.run([str(tool), *arguments], capture_output=True, text=True, check=False)
    return ended.stdout if ended.returncode == 0 else None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
