"""What this Python's torch says about itself, and how it compiles C++ kernels, also with other flags."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.machine.python_child import ask_torch
from inductor_probe.model.codec import from_json
from inductor_probe.model.cpp_program import CompileCommand
from inductor_probe.model.health import TorchSetup

_CHILD = Path(__file__).with_name("torch_child.py")


def torch_setup(environment: Mapping[str, str] = os.environ, places: Sequence[str] = ()) -> TorchSetup:
    """Ask the torch of this Python, in a child process; nothing is raised: see `TorchSetup.errors`.

    `places`: private places of torch, `module:Qualified.name`; the answer has those that are gone.
    """
    try:
        return from_json(TorchSetup, ask_torch(_CHILD, "setup", *places, environment=environment))
    except RunFailedError as error:
        return TorchSetup(errors=(("torch", error.message),))


def compile_command(
    vector_bits: int | None = None, environment: Mapping[str, str] | None = None
) -> CompileCommand:
    """Ask torch, in a child process, for the command it compiles C++ kernels with.

    `vector_bits` are those of the vectors that the kernel was written for, torch's own choice if None;
    `environment` goes on top of this process's: `flags_environment` for other flags.

    Raises RunFailedError: cannot query torch. ProbeError: this torch has no such thing.
    """
    bits = [str(vector_bits)] if vector_bits else []
    answer = ask_torch(_CHILD, "command", *bits, environment={**os.environ, **(environment or {})})
    if missing := answer.get("missing"):
        raise ProbeError(f"the compile command is not available on torch {answer['torch']}: {missing}")
    return from_json(CompileCommand, answer)


def flags_environment(
    flags: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables under which inductor compiles C++ with `flags` behind its own: the last one wins.

    Inductor reads no CXXFLAGS, but it runs the compiler that CXX names: that becomes a script in `folder`,
    which must stay while kernels are compiled. Its name encodes the flags, so that caches keep results apart.

    Raises ProbeError: one of `flags` is not a flag; the script cannot be written.
    """
    if not flags:
        return {}
    for flag in flags:
        if not flag.startswith("-"):
            raise ProbeError(
                f"{flag} is not a compiler flag", "give flags as one text: --cxxflags '-O2 -mavx2'"
            )
    compiler = environment.get("CXX", "g++")
    digest = hashlib.sha256("\0".join([compiler, *flags]).encode()).hexdigest()[:12]
    # Inductor distinguishes g++ from clang++ by the name.
    script = folder / f"{Path(compiler).name}-{digest}"
    write_whole(script, f'#!/bin/sh\nexec {shlex.quote(compiler)} "$@" {shlex.join(flags)}\n')
    script.chmod(0o700)
    return {"CXX": str(script)}
