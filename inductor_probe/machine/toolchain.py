"""How this machine's torch compiles C++ kernels, and compiling them with other flags."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.machine.python_child import python_command
from inductor_probe.model.compile_command import CompileCommand

_CHILD = Path(__file__).with_name("toolchain_child.py")
_TIMEOUT_S = 600
"""The first answer on a machine compiles a probe for every kind of vector that it may have: some 20 s."""


def compile_command(
    vector_bits: int | None = None, environment: Mapping[str, str] | None = None
) -> CompileCommand:
    """Ask torch, in a child process, for the command it compiles C++ kernels with.

    Args:
        vector_bits: of the vectors that the kernel was written for; torch's own choice if None.
        environment: on top of this process's: `flags_environment` for other flags.

    Raises:
        RunFailedError: torch could not be asked.
        ProbeError: this torch has no such thing.
    """
    command = python_command(_CHILD, *([str(vector_bits)] if vector_bits else []))
    try:
        ended = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailedError(f"torch could not be asked how it compiles: {error}") from error
    last = (ended.stdout.strip().splitlines() or [""])[-1]
    if ended.returncode or not last.startswith("{"):
        why = (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]
        raise RunFailedError(f"torch could not be asked how it compiles: {why}", _hint(ended.stderr))
    said: dict[str, Any] = json.loads(last)
    if missing := said.get("missing"):
        raise ProbeError(f"the compile command is not available on torch {said['torch']}: {missing}")
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    return CompileCommand(**{**said, **lists})


def flags_environment(
    flags: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables under which inductor compiles C++ with `flags` behind its own: the last one wins.

    Inductor reads no CXXFLAGS, but it runs the compiler that CXX names: that becomes a script in `folder`,
    which must stay while kernels are compiled. Its name tells the flags, so that caches keep results apart.

    Raises:
        ProbeError: one of `flags` is no flag; the script cannot be written.
    """
    if not flags:
        return {}
    for flag in flags:
        if not flag.startswith("-"):
            raise ProbeError(f"{flag} is no compiler flag", "give flags as one text: --cxxflags '-O2 -mavx2'")
    compiler = environment.get("CXX", "g++")
    digest = hashlib.sha256("\0".join([compiler, *flags]).encode()).hexdigest()[:12]
    # Inductor tells g++ from clang++ by the name.
    script = folder / f"{Path(compiler).name}-{digest}"
    write_whole(script, f'#!/bin/sh\nexec {shlex.quote(compiler)} "$@" {shlex.join(flags)}\n')
    script.chmod(0o700)
    return {"CXX": str(script)}


def _hint(said: str) -> str | None:
    if "No module named 'torch'" in said:
        return "run probe with a Python that has torch; `probe doctor` tells more"
    if "InvalidCxxCompiler" in said or "No working C++ compiler" in said:
        return "install a C++ compiler (apt install g++); `probe doctor` tells more"
    return None
