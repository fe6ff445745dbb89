"""What is installed in this Python, and whether it compiles: torch, triton, compiler, OpenMP, vectors."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata

from inductor_probe.machine.cpu import vector_bits
from inductor_probe.machine.facts import versions
from inductor_probe.model.health import Diagnostic, Fact, TorchSetup

_OLDEST = (2, 11)
"""The oldest torch whose private parts the hooks and bench files know; dumps are read from 2.1 on."""


def installed(distribution: str) -> str | None:
    """Return the version of a distribution of this Python, from its metadata: nothing is imported."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def installed_diagnostics(
    setup: TorchSetup, has_gpu: bool, version: Callable[[str], str | None] = installed
) -> Iterator[Diagnostic]:
    """Yield what is installed.

    Args:
        has_gpu: whether this machine has a GPU, whatever torch makes of it.
        version: returns the version of a distribution; replaced in tests.
    """
    facts = (("version", platform.python_version()), ("executable", sys.executable))
    yield Diagnostic("python", "ok", "python", facts)
    yield _torch(setup, has_gpu, version("torch"))
    yield _triton(setup, has_gpu)
    debugpy = version("debugpy")
    level, code = ("warning", "debugpy-not-installed") if debugpy is None else ("ok", "debugpy")
    yield Diagnostic("debugpy", level, code, (("version", debugpy),))  # type: ignore[arg-type] # a tuple of str


def _torch(setup: TorchSetup, has_gpu: bool, installed_version: str | None) -> Diagnostic:
    build = "ROCm" if setup.hip else "CUDA" if setup.cuda else "CPU"
    facts: tuple[tuple[str, Fact], ...] = (
        ("version", setup.version or installed_version),
        ("build", build if setup.version else None),
        ("toolkit", setup.hip or setup.cuda),
        ("folder", setup.folder),
        ("threads", setup.threads),
        ("executable", sys.executable),
        ("oldest", ".".join(map(str, _OLDEST))),
        ("error", setup.error("torch")),
    )
    if setup.version is None:
        missing = installed_version is None and "No module named 'torch'" in (setup.error("torch") or "")
        return Diagnostic(
            "torch", "error", "torch-not-installed" if missing else "torch-not-importable", facts
        )
    number = re.match(r"(\d+)\.(\d+)", setup.version)
    if number and (int(number[1]), int(number[2])) < _OLDEST:
        return Diagnostic("torch", "warning", "torch-too-old", facts)
    if has_gpu and build == "CPU":
        return Diagnostic("torch", "warning", "torch-without-gpu", facts)
    return Diagnostic("torch", "ok", "torch", facts)


def _triton(setup: TorchSetup, has_gpu: bool) -> Diagnostic:
    error = setup.error("triton")
    facts = (("version", setup.triton), ("error", error))
    if setup.triton:
        return Diagnostic("triton", "ok", "triton", facts)
    if setup.version is None:
        return Diagnostic("triton", "ok", "triton-not-asked", facts)
    if "No module named 'triton'" not in (error or ""):
        return Diagnostic("triton", "warning", "triton-not-importable", facts)
    if has_gpu or setup.devices:
        return Diagnostic("triton", "warning", "triton-not-installed", facts)
    return Diagnostic("triton", "ok", "triton-not-needed", facts)


def compiling_diagnostics(
    setup: TorchSetup, environment: Mapping[str, str] = os.environ, processor_bits: int | None = None
) -> Iterator[Diagnostic]:
    """Yield compiler, OpenMP and vectors. `processor_bits` are those of this processor's vectors."""
    yield _compiler(setup, environment)
    if setup.built and setup.built.threads is not None:
        facts = (("flag", setup.openmp), ("threads", setup.built.threads))
        if setup.openmp is None:
            yield Diagnostic("openmp", "warning", "openmp-not-used", facts)
        else:
            yield Diagnostic("openmp", "ok", "openmp", facts)
    if setup.compiler:
        yield _vectors(setup, environment, processor_bits or vector_bits())


def _compiler(setup: TorchSetup, environment: Mapping[str, str]) -> Diagnostic:
    name, built = setup.compiler or environment.get("CXX", "g++"), setup.built
    path = shutil.which(name, path=environment.get("PATH"))
    facts: tuple[tuple[str, Fact], ...] = (
        ("name", name),
        ("path", path),
        ("version", dict(versions({})).get("cxx") if path else None),
        ("seconds", round(built.seconds, 3) if built else None),
        ("torch", setup.version),
        ("error", built.error if built else setup.not_available or setup.error("compile")),
    )
    if path is None:
        return Diagnostic("compiler", "error", "compiler-not-found", facts)
    if built is None and setup.version is None:
        return Diagnostic("compiler", "ok", "compiler-not-tried", facts)
    if built is None and setup.not_available:
        return Diagnostic("compiler", "warning", "compile-command-not-available", facts)
    if built is None:
        return Diagnostic("compiler", "error", "compiler-not-accepted", facts)
    if built.error:
        return Diagnostic("compiler", "error", "kernel-not-built", facts)
    return Diagnostic("compiler", "ok", "compiler", facts)


def _vectors(setup: TorchSetup, environment: Mapping[str, str], processor: int | None) -> Diagnostic:
    variables = ("ATEN_CPU_CAPABILITY", "TORCHINDUCTOR_VEC_ISA_OK")
    bits = setup.vector_bits
    facts: tuple[tuple[str, Fact], ...] = (
        ("isa", setup.isa),
        ("bits", bits),
        ("processor_bits", processor),
        ("variable", next((name for name in variables if name in environment), None)),
    )
    if setup.isa and (processor is None or not bits or bits >= processor):
        return Diagnostic("vectors", "ok", "vectors", facts)
    return Diagnostic("vectors", "warning", "vectors-narrow", facts)


def limits_diagnostic(setup: TorchSetup) -> Diagnostic:
    """Return the limits of recompiles, and whether they are torch's own."""
    values: dict[str, Fact] = dict.fromkeys(("recompile_limit", "accumulated_recompile_limit"))
    values |= {limit.name: limit.value for limit in setup.limits}
    values |= {f"{name}_default": None for name in list(values)}
    values |= {f"{limit.name}_default": limit.default for limit in setup.limits}
    facts = (*values.items(), ("torch", setup.version), ("error", setup.error("limits")))
    if not setup.limits:
        return Diagnostic("recompiles", "warning", "limits-not-available", facts)
    if any(limit.default not in (None, limit.value) for limit in setup.limits):
        return Diagnostic("recompiles", "warning", "limits-changed", facts)
    return Diagnostic("recompiles", "ok", "limits", facts)
