"""Compiles a Triton kernel for a GPU that need not be there, and prints as JSON what came of it.

Command line: `triton_child.py FILE NAME ARCHITECTURE WANTED`: the kernel's text as a module, its name, `90`
or `0` for what it was generated for, and as JSON which configs: `asked` and `recorded`, texts as
`asked_configs` takes them, and `sweep`, whether to add a grid. Without any those that inductor tries first.

torch/_inductor/runtime/triton_heuristics.py, `CachingAutotuner._precompile_config`, makes the options and
calls `triton.compile` with a target: that needs neither a driver nor a device, which is how inductor compiles
in processes beside the one with the GPU. The binary is taken as `triton.compile` returns it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from torch._inductor.runtime import triton_helpers, triton_heuristics

from inductor_probe.harness.configs import asked_configs, config_values
from inductor_probe.machine.python_child import PROGRESS

_RESOURCES = ("--dump-resource-usage",)
_DISASSEMBLY = ("-g", "-c")
_SM = re.compile(r"'sm_(\d+)[a-z]?'")
_FIRST_OF_SECOND = 100
_FIRST_OF_TRITON = 70
"""Older ones are known to ptxas, and are none that Triton is made for."""
_FAILED = re.compile(r"^ptxas\b.*\b(error|fatal)\b")
"""In the line of ptxas's that says what is wrong; its command is the last one."""


def main(file: str, name: str, architecture: int, wanted: dict[str, Any]) -> None:
    """Print what each config was compiled to: see the command line above."""
    triton_helpers.set_driver_to_gpu = lambda: None  # the text calls it, and there may be no driver
    tuner = _kernel(_module(Path(file)), name)
    if architecture:
        _retarget(tuner, architecture)
    answer = {"torch": torch.__version__, "triton": triton.__version__, "cc": tuner.device_props.cc}
    try:
        _refuse_unknown(tuner.device_props.cc)
        configs = list(_configs(tuner, wanted))
    except ValueError as error:
        print(json.dumps({**answer, "refused": str(error)}))
        return
    rows = list[dict[str, Any]]()
    for number, (config, origin) in enumerate(configs, 1):
        text = " ".join(f"{option}={value}" for option, value in config_values(config).items())
        print(f"{PROGRESS}compiling {name}: config {number} of {len(configs)}, {text}", flush=True)
        rows.append(_row(tuner, config, origin))
    print(json.dumps({**answer, "configs": rows}))


def _refuse_unknown(architecture: int) -> None:
    """Ask ptxas which GPUs it makes machine code for: LLVM ends the process of one that it does not know.

    Triton has two of them (`get_ptxas` in triton/backends/nvidia/compiler.py), the second from sm_100 on. Of
    another ptxas, which TRITON_PTXAS_PATH names, nothing is asked.

    Raises:
        ValueError: not for this one; says for which.
    """
    if "TRITON_PTXAS_PATH" in os.environ:
        return
    first, second = (
        {int(number) for number in _SM.findall(_tool(name, "--help") or "")}
        for name in ("ptxas", "ptxas-blackwell")
    )
    known = {number for number in first if number < _FIRST_OF_SECOND}
    known |= {number for number in second if number >= _FIRST_OF_SECOND}
    asked = first if architecture < _FIRST_OF_SECOND else second
    if asked and architecture not in known:
        names = ", ".join(f"sm_{number}" for number in sorted(known) if number >= _FIRST_OF_TRITON)
        raise ValueError(
            f"sm_{architecture} is unknown to triton {triton.__version__} as an architecture: its"
            f" ptxas knows {names}"
        )


def _configs(tuner: Any, wanted: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield each config once, with who wants it; inductor's own unless others are asked for.

    Raises:
        ValueError: the kernel has no such parameter.
    """
    first, parameters = tuner.configs[0], list(tuner.fn.arg_names)
    wants = {name: list(wanted.get(name, ())) for name in ("recorded", "asked")}
    if wanted.get("sweep"):
        wants["grid"] = [_grid(tuner)]
    own = [] if wants["asked"] and not wanted.get("sweep") else tuner.configs
    several = [(config, "inductor") for config in own]
    for origin, texts in wants.items():
        several += [(one, origin) for text in texts for one in asked_configs(text, first, parameters)]
    seen = set()
    for config, origin in several:
        key = tuple(sorted(config_values(config).items()))
        if key not in seen and (origin != "grid" or _allowed(config)):
            seen.add(key)
            yield config, origin


def _grid(tuner: Any) -> str:
    """Return blocks around those of the first config, and warps, as `asked_configs` takes them.

    No block is larger than the kernel's sizes (`size_hints`). The blocks of a template stand in its text.
    """
    first, hints = tuner.configs[0], getattr(tuner, "size_hints", None) or {}
    blocks = {name: value for name, value in first.kwargs.items() if name.endswith("BLOCK")}
    factors = (0.25, 0.5, 1, 2, 4) if len(blocks) == 1 else (0.5, 1, 2)
    parts = []
    for name, value in blocks.items():
        size = hints.get(name.removesuffix("BLOCK").lower())
        most = max(size or value * 4, value)
        values = sorted({int(value * factor) for factor in factors if 1 <= value * factor <= most})
        parts.append(f"{name}={','.join(map(str, values))}")
    parts.append("num_warps=" + ",".join(map(str, sorted({2, 4, 8, first.num_warps}))))
    if not blocks:
        stages = sorted({max(1, first.num_stages + step) for step in (-1, 0, 1)})
        parts.append(f"num_stages={','.join(map(str, stages))}")
    return " ".join(parts)


def _allowed(config: Any) -> bool:
    """Whether inductor leaves in the masks that blocks of this size need."""
    check = getattr(triton_heuristics, "check_max_block", None)
    if check is None:
        return True
    try:
        check(config.kwargs)
    except (AssertionError, KeyError):
        return False
    return True


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


def _row(tuner: Any, config: Any, origin: str) -> dict[str, Any]:
    row: dict[str, Any] = {"config": config_values(config), "origin": origin}
    try:
        binary = _compiled(tuner, config)
    except Exception as error:  # whatever Triton, LLVM or ptxas raises: it is what is to be shown
        return {**row, "failure": _failure(error, tuner.device_props.cc)}
    cubin = Path("kernel.cubin")
    cubin.write_bytes(binary.asm["cubin"])
    stages = {stage: binary.asm[stage] for stage in ("ttir", "ttgir", "llir", "ptx")}
    return row | {
        "threads": binary.metadata.num_warps * 32,
        "shared": binary.metadata.shared,
        "stages": {**stages, "sass": _tool("nvdisasm", *_DISASSEMBLY, str(cubin))},
        "resources": _tool("cuobjdump", *_RESOURCES, str(cubin)),
    }


def _failure(error: BaseException, architecture: int) -> str:
    """Return in a line what went wrong, and what to do where that is known.

    Triton raises an exception for each call of a function from that inside of it, and each quotes the code,
    with a line of carets, before it says what is wrong (`CompilationError._format_message`).
    """
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")] or [""]
    message = next((line for line in lines if _FAILED.search(line)), lines[-1])
    text = f"{type(error).__name__}: {message}"
    if "Cannot find ptxas" in message:
        return (
            f"triton {triton.__version__} has no ptxas here, which makes machine code of PTX: install its"
            f" wheel for NVIDIA GPUs, or name a ptxas in TRITON_PTXAS_PATH ({text})"
        )
    if "not supported in this architecture" in message:
        return f"the kernel needs what sm_{architecture} does not have ({text})"
    return text


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
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
