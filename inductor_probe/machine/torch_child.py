"""Asks torch about itself, and prints the answers as JSON; runs in a process of its own, in an empty folder.

Command line: `torch_child.py command [SIMDLEN]` for how it compiles a C++ kernel, `torch_child.py setup
[MODULE:NAME ...]` for all that `probe doctor` shows, with which of these places of torch are gone; there a
question that cannot be answered has its reason under `errors`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_KERNEL = """\
#include <Python.h>
#include <omp.h>
#if !__has_include(<torch/csrc/inductor/cpp_prefix.h>)
#error "torch/csrc/inductor/cpp_prefix.h is missing"
#endif
extern "C" int count_threads() {
    int threads = 0;
    #pragma omp parallel reduction(+:threads)
    threads += 1;
    return threads;
}
"""
"""What every C++ kernel of inductor needs: Python's and torch's headers, and OpenMP."""


def main(question: str, *arguments: str) -> None:
    """Print what torch says."""
    answers = sys.stdout
    gc.disable()  # this process ends soon: collecting while torch is imported takes a fifth of the time
    with contextlib.redirect_stdout(io.StringIO()):  # of what torch imports
        answer = _setup(arguments) if question == "setup" else _command(*map(int, arguments))
    answers.write(json.dumps(answer) + "\n")


def _command(simdlen: int | None = None) -> dict[str, Any]:
    """Return a `CompileCommand`, for vectors of `simdlen` bits where given; what torch lacks is `missing`."""
    import torch

    try:
        from torch._inductor import codecache, config, cpp_builder, cpu_vec_isa

        if simdlen is not None:
            config.cpp.simdlen = simdlen
        isa = cpu_vec_isa.pick_vec_isa()
        flags = codecache.CppPythonBindingsCodeCache.cpp_compile_command_flags
        options = cpp_builder.CppTorchDeviceOptions(vec_isa=isa, device_type="cpu", **flags)
        builder = cpp_builder.CppBuilder(name="kernel", sources="kernel.cpp", BuildOption=options)
        return {
            "torch": torch.__version__,
            "library": shlex.split(builder.get_command_line()),
            "compiler": options.get_compiler(),
            "definitions": [f"-D{definition.strip()}" for definition in options.get_definitions()],
            "flags": [f"-{flag}" for flag in options.get_cflags()],
            "includes": [f"-I{folder}" for folder in options.get_include_dirs()],
            "machine": shlex.split(" ".join(options.get_passthrough_args())),
            "libraries": options.get_libraries(),
            "folders": options.get_libraries_dirs(),
            "isa": str(isa) if isa != cpu_vec_isa.invalid_vec_isa else None,
            "vector_bits": isa.bit_width() or None,
        }
    except (ImportError, AttributeError, TypeError) as error:
        return {"torch": torch.__version__, "missing": str(error)}


def _setup(places: Sequence[str]) -> dict[str, Any]:
    """Return a `TorchSetup`."""
    answers: dict[str, Any] = {}
    errors: dict[str, str] = {}
    questions: dict[str, Callable[[], dict[str, Any]]] = {
        **_QUESTIONS,
        "places": lambda: {"missing": [*filter(_is_gone, places)]},
    }
    for name, ask in questions.items():
        try:
            answers |= ask()
        except Exception as error:  # each part of torch, and each driver, has exceptions of its own
            first = next(iter(str(error).strip().splitlines()), "")
            errors[name] = f"{type(error).__name__}: {first}" if first else type(error).__name__
            if name == "torch":
                break
    if "library" in answers:
        answers["built"] = _build(answers.pop("library"))
    return {**answers, "errors": errors}


def _torch() -> dict[str, Any]:
    import torch

    folder, version = str(Path(torch.__file__).parent), torch.version
    numbers = {"cuda": version.cuda, "hip": version.hip, "threads": torch.get_num_threads()}
    return {"version": torch.__version__, "folder": folder, **numbers}


def _is_gone(place: str) -> bool:
    """Return whether this torch lacks a place; it may have one whose module imports a missing package."""
    module, _, name = place.partition(":")
    try:
        owner: Any = importlib.import_module(module)
        for part in name.split("."):
            owner = getattr(owner, part)
    except ModuleNotFoundError as error:
        return error.name is not None and f"{module}.".startswith(f"{error.name}.")
    except AttributeError:
        return True
    return False


def _devices() -> dict[str, Any]:
    import torch

    if not (torch.version.cuda or torch.version.hip):
        return {}
    torch.cuda.init()
    return {"devices": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]}


def _triton() -> dict[str, Any]:
    import triton

    return {"triton": triton.__version__}


def _compile() -> dict[str, Any]:
    command = _command()
    if missing := command.get("missing"):
        return {"not_available": missing}
    openmp = next((flag for flag in command["flags"] if "openmp" in flag), None)
    return {"openmp": openmp, **{key: command[key] for key in ("library", "compiler", "isa", "vector_bits")}}


def _caches() -> dict[str, Any]:
    from torch._functorch import config as functorch
    from torch._inductor import config
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    remote = {
        "FX graphs": getattr(config, "fx_graph_remote_cache", None),
        "autograd": getattr(functorch, "enable_remote_autograd_cache", None),
        "autotuning": getattr(config, "autotune_remote_cache", None),
        "bundles of autotuning": getattr(config, "bundled_autotune_remote_cache", None),
    }
    caches = {
        "folder": os.environ.get("TORCHINDUCTOR_CACHE_DIR") or default_cache_dir(),
        "disabled": bool(getattr(config, "force_disable_caches", False)),
        "fx_graph": getattr(config, "fx_graph_cache", None),
        "autograd": getattr(functorch, "enable_autograd_cache", None),
        "autotune": getattr(config, "autotune_local_cache", None),
        "remote": [name for name, on in remote.items() if on],
    }
    return {"caches": caches}


def _limits() -> dict[str, Any]:
    from torch._dynamo import config

    entries: dict[str, Any] = getattr(config, "_config", {})
    limits = []
    for name in ("recompile_limit", "accumulated_recompile_limit"):
        default = getattr(entries.get(name), "default", None)
        limits.append({"name": name, "value": getattr(config, name), "default": default})
    return {"limits": limits}


_QUESTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "torch": _torch,
    "caches": _caches,  # before inductor makes its folder and sets a variable that names it
    "limits": _limits,
    "triton": _triton,
    "devices": _devices,
    "compile": _compile,
}


def _build(command: list[str]) -> dict[str, Any]:
    """Compile and link the kernel with inductor's own command, load it beside torch, and run it."""
    Path("kernel.cpp").write_text(_KERNEL, encoding="utf-8")
    begin = time.perf_counter()
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        return {"seconds": 0.0, "error": f"{command[0]}: {error.strerror or error}"}
    seconds = time.perf_counter() - begin
    if ended.returncode:
        return {"seconds": seconds, "error": _complaint(ended.stderr) or f"status {ended.returncode}"}
    try:
        threads = ctypes.CDLL(str(Path(command[command.index("-o") + 1]).absolute())).count_threads()
    except (OSError, AttributeError) as error:
        return {"seconds": seconds, "error": f"what was compiled cannot be loaded: {error}"}
    return {"seconds": seconds, "threads": threads}


def _complaint(stderr: str) -> str:
    """Return the line of a compiler or linker that says what is wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"error:|cannot find|undefined reference|not found", line)]
    return next(iter(wrong or lines[-1:]), "")


if __name__ == "__main__":
    main(*sys.argv[1:])
