"""Compiling C++ as inductor does: the compiler, OpenMP, and the vectors that were chosen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from inductor_probe.machine.facts import vector_bits, versions
from inductor_probe.model.health import BuiltKernel, Fact, Finding, TorchSetup

_INSTALL = "install g++ (Debian: apt install g++), or name a compiler with CXX"
_REMEDIES = (
    ("Python.h", "install Python's headers (Debian: apt install python3-dev)"),
    ("cpp_prefix.h", "install torch anew: headers that inductor compiles with are missing"),
    ("omp.h", "install OpenMP for this compiler (Debian: apt install libgomp1, or libomp-dev for clang)"),
    ("gomp", "install OpenMP for this compiler (Debian: apt install libgomp1)"),
    ("lomp", "install OpenMP for this compiler (Debian: apt install libomp-dev)"),
    ("fopenmp", "use a compiler with OpenMP: CXX=g++"),
    ("cannot be loaded", "let TMPDIR name a folder from which programs may run (not mounted noexec)"),
    ("No space left", "free some space: see disk"),
    ("Read-only file system", "let TMPDIR name a folder that can be written"),
)


def compiling_findings(
    setup: TorchSetup, environment: Mapping[str, str] = os.environ, processor_bits: int | None = None
) -> Iterator[Finding]:
    """Yield the compiler, OpenMP and vectors. `processor_bits` are those of this processor's vectors."""
    yield _compiler(setup, environment)
    if setup.built and setup.built.threads is not None:
        yield _openmp(setup, setup.built.threads)
    if setup.compiler:
        yield _vectors(setup, environment, processor_bits or vector_bits())


def _compiler(setup: TorchSetup, environment: Mapping[str, str]) -> Finding:
    named = setup.compiler or environment.get("CXX", "g++")
    path = shutil.which(named, path=environment.get("PATH"))
    version = dict(versions({})).get("cxx") if path else None
    built = setup.built
    facts: tuple[tuple[str, Fact], ...] = (
        ("name", named),
        ("path", path),
        ("version", version),
        ("seconds", round(built.seconds, 3) if built else None),
    )
    if path is None:
        return Finding("compiler", "needs", f"there is no {named} on the PATH", _INSTALL, facts)
    what = f"{version or named}, {path}"
    if built is None:
        if setup.version is None:
            return Finding("compiler", "fine", f"{what}; not tried, without torch's flags", facts=facts)
        why = setup.error("compile") or "no answer"
        if why.startswith("LookupError: not available"):
            remedy = "see whether it compiles: probe dump check_hflip.py"
            return Finding("compiler", "note", f"{what}; {why.partition(': ')[2]}", remedy, facts)
        return Finding("compiler", "needs", f"{what}; torch finds none that works: {why}", _INSTALL, facts)
    if built.error:
        text = f"{what}; a kernel compiled as inductor does fails: {built.error}"
        return Finding("compiler", "needs", text, _remedy(built), facts)
    text = f"{what}; compiled, linked and ran a kernel as inductor does in {built.seconds:.1f} s"
    return Finding("compiler", "fine", text, facts=facts)


def _remedy(built: BuiltKernel) -> str:
    error = built.error or ""
    found = (remedy for sign, remedy in _REMEDIES if sign in error)
    return next(found, f"mend what it says, or {_INSTALL}")


def _openmp(setup: TorchSetup, threads: int) -> Finding:
    facts: tuple[tuple[str, Fact], ...] = (("flag", setup.openmp), ("threads", threads))
    if setup.openmp is None:
        text = "inductor uses none: C++ kernels run on one thread"
        remedy = "name a compiler that has OpenMP with CXX"
        return Finding("openmp", "note", text, remedy, facts)
    ran = "1 thread" if threads == 1 else f"{threads} threads"
    return Finding("openmp", "fine", f"{setup.openmp}; the kernel ran on {ran}", facts=facts)


def _vectors(setup: TorchSetup, environment: Mapping[str, str], processor: int | None) -> Finding:
    chosen = setup.vector_bits
    facts: tuple[tuple[str, Fact], ...] = (
        ("isa", setup.isa),
        ("bits", chosen),
        ("processor_bits", processor),
    )
    text = f"{setup.isa}, {chosen} bits" if setup.isa else "none: C++ kernels are not vectorised"
    reasons = ("ATEN_CPU_CAPABILITY", "TORCHINDUCTOR_VEC_ISA_OK")
    named = next((name for name in reasons if name in environment), None)
    if setup.isa and (processor is None or not chosen or chosen >= processor):
        return Finding("vectors", "fine", text, facts=facts)
    has = f"; the processor has {processor} bits" if processor else ""
    remedy = (
        f"unset {named}, unless it shall be so"
        if named
        else "torch compiles and loads a program for each kind: see compiler, or take a later one"
    )
    return Finding("vectors", "note", f"{text}{has}", remedy, facts)
