"""Is this machine fit for dumps and timings? Each part of it, in the order it is shown.

Facts come from `machine`; what is made of them are typed diagnostics, with words in `report/words/health.py`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from inductor_probe.health.variables import variable_diagnostics
from inductor_probe.machine.cpu import CpuState, clock_source, cpu_state, hazards, timer_step, vector_bits
from inductor_probe.machine.facts import cxx_version, installed
from inductor_probe.machine.gpu import GpuState, gpu_remarks, gpu_states, has_gpu
from inductor_probe.machine.toolchain import torch_setup
from inductor_probe.model.health import Diagnostic, Fact, Level, MachineHealth, TorchSetup, diagnostic
from inductor_probe.model.remark import Remark
from inductor_probe.store.made_here import record_path

_OLDEST = (2, 11)
"""The oldest torch whose private parts the hooks and bench files know; dumps are read from 2.1 on."""
PASSED = ("2.11.0", "2.13.0", "2.14.1", "2.15.0")
"""Releases of torch with which tests passed: all with 2.13.0, a part of them with the others."""
_PARALLEL = {"a parallel kernel": "#pragma omp parallel"}
_COARSE_S = 1e-6
_LITTLE = 2**30
"""Bytes: a run with its kernels takes some 10 MiB, one with CUDA and many graphs some hundred."""
_COUNTING_S = 2.0
"""A cache of millions of files is not counted to its end."""


def examine(
    here: Path, environment: Mapping[str, str] = os.environ, places: Sequence[str] = ()
) -> MachineHealth:
    """Examine this machine: some seconds, most of them for torch in a child process.

    `here` is the folder that dumps would go to, `environment` that of the runs to come, `places` are the
    private places of torch that dumps use.
    """
    load = cpu_state()  # before there is a child of ours that keeps a processor busy
    gpus = gpu_states(environment)
    setup = torch_setup(environment, places)

    def diagnostics() -> Iterator[Diagnostic]:
        yield from installed_diagnostics(setup, has_gpu(gpus))
        if setup.version is not None and places:
            yield places_diagnostic(setup, len(places))
        yield from compiling_diagnostics(setup, environment)
        if setup.version is not None:
            yield caches_diagnostic(setup)
            yield limits_diagnostic(setup)
        yield from variable_diagnostics(setup, environment)
        yield from gpu_diagnostics(setup, gpus)
        yield processors_diagnostic(load)
        yield timer_diagnostic()
        yield from folder_diagnostics(setup, here, environment)

    return MachineHealth(tuple(diagnostics()))


def installed_diagnostics(
    setup: TorchSetup, gpu: bool, version: Callable[[str], str | None] = installed
) -> Iterator[Diagnostic]:
    """Yield what is installed. `gpu`: whether this machine has one; `version`: of a distribution."""
    executable = sys.executable
    yield diagnostic("python", "ok", "python", version=platform.python_version(), executable=executable)
    yield _torch(setup, gpu, version("torch"))
    yield _triton(setup, gpu)
    if debugpy := version("debugpy"):
        yield diagnostic("debugpy", "ok", "debugpy", version=debugpy)
    else:
        yield diagnostic("debugpy", "warning", "debugpy-not-installed", version=None)


def _torch(setup: TorchSetup, gpu: bool, installed_version: str | None) -> Diagnostic:
    build = "ROCm" if setup.hip else "CUDA" if setup.cuda else "CPU"
    error = setup.error("torch")
    number = re.match(r"(\d+)\.(\d+)", setup.version or "")
    verdict: tuple[Level, str] = ("ok", "torch")
    if setup.version is None:
        missing = installed_version is None and "No module named 'torch'" in (error or "")
        verdict = ("error", "torch-not-installed" if missing else "torch-not-importable")
    elif number and (int(number[1]), int(number[2])) < _OLDEST:
        verdict = ("warning", "torch-too-old")
    elif gpu and build == "CPU":
        verdict = ("warning", "torch-without-gpu")
    elif setup.version.partition("+")[0] not in PASSED:
        verdict = ("warning", "torch-not-passed")
    return diagnostic(
        "torch",
        *verdict,
        version=setup.version or installed_version,
        build=build if setup.version else None,
        toolkit=setup.hip or setup.cuda,
        folder=setup.folder,
        threads=setup.threads,
        executable=sys.executable,
        oldest=".".join(map(str, _OLDEST)),
        passed=PASSED,
        error=error,
    )


def _triton(setup: TorchSetup, gpu: bool) -> Diagnostic:
    error = setup.error("triton")
    verdict: tuple[Level, str] = ("ok", "triton-not-needed")
    if setup.triton:
        verdict = ("ok", "triton")
    elif setup.version is None:
        verdict = ("ok", "triton-not-asked")
    elif "No module named 'triton'" not in (error or ""):
        verdict = ("warning", "triton-not-importable")
    elif gpu or setup.devices:
        verdict = ("warning", "triton-not-installed")
    return diagnostic("triton", *verdict, version=setup.triton, error=error)


def places_diagnostic(setup: TorchSetup, asked: int) -> Diagnostic:
    """Return which of torch's private places, of as many as were asked for, are gone."""
    error = setup.error("places")
    verdict: tuple[Level, str] = ("warning", "places-missing") if setup.missing else ("ok", "places")
    if error is not None:
        verdict = ("warning", "places-not-available")
    return diagnostic(
        "places", *verdict, asked=asked, missing=setup.missing, torch=setup.version, error=error
    )


def compiling_diagnostics(
    setup: TorchSetup, environment: Mapping[str, str] = os.environ, processor_bits: int | None = None
) -> Iterator[Diagnostic]:
    """Yield compiler, OpenMP and vectors. `processor_bits` are those of this processor's vectors."""
    yield _compiler(setup, environment)
    if setup.built and setup.built.threads is not None:
        verdict: tuple[Level, str] = ("ok", "openmp") if setup.openmp else ("warning", "openmp-not-used")
        yield diagnostic("openmp", *verdict, flag=setup.openmp, threads=setup.built.threads)
    if setup.compiler:
        yield _vectors(setup, environment, processor_bits or vector_bits())


def _compiler(setup: TorchSetup, environment: Mapping[str, str]) -> Diagnostic:
    name, built = setup.compiler or environment.get("CXX", "g++"), setup.built
    path = shutil.which(name, path=environment.get("PATH"))
    verdict: tuple[Level, str] = ("ok", "compiler")
    if path is None:
        verdict = ("error", "compiler-not-found")
    elif built is None and setup.version is None:
        verdict = ("ok", "compiler-not-tried")
    elif built is None and setup.not_available:
        verdict = ("warning", "compile-command-not-available")
    elif built is None:
        verdict = ("error", "compiler-not-accepted")
    elif built.error:
        verdict = ("error", "kernel-not-built")
    return diagnostic(
        "compiler",
        *verdict,
        name=name,
        path=path,
        version=cxx_version() if path else None,
        seconds=round(built.seconds, 3) if built else None,
        torch=setup.version,
        error=built.error if built else setup.not_available or setup.error("compile"),
    )


def _vectors(setup: TorchSetup, environment: Mapping[str, str], processor: int | None) -> Diagnostic:
    variables = ("ATEN_CPU_CAPABILITY", "TORCHINDUCTOR_VEC_ISA_OK")
    bits = setup.vector_bits
    as_wide = setup.isa and (processor is None or not bits or bits >= processor)
    verdict: tuple[Level, str] = ("ok", "vectors") if as_wide else ("warning", "vectors-narrow")
    variable = next((name for name in variables if name in environment), None)
    return diagnostic(
        "vectors", *verdict, isa=setup.isa, bits=bits, processor_bits=processor, variable=variable
    )


def limits_diagnostic(setup: TorchSetup) -> Diagnostic:
    """Return the limits of recompiles, and whether they are torch's own."""
    names = ("recompile_limit", "accumulated_recompile_limit")
    values = {limit.name: limit.value for limit in setup.limits}
    defaults = {limit.name: limit.default for limit in setup.limits}
    verdict: tuple[Level, str] = ("ok", "limits")
    if not setup.limits:
        verdict = ("warning", "limits-not-available")
    elif any(limit.default not in (None, limit.value) for limit in setup.limits):
        verdict = ("warning", "limits-changed")
    facts: dict[str, Fact] = {name: values.get(name) for name in names}
    facts |= {f"{name}_default": defaults.get(name) for name in names}
    return diagnostic("recompiles", *verdict, (), **facts, torch=setup.version, error=setup.error("limits"))


def gpu_diagnostics(setup: TorchSetup, states: tuple[GpuState, ...]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each GPU, or that there is none."""
    count = max(len(states), len(setup.devices))
    if not count:
        yield _gpu(setup, None, GpuState(None), None)
    for index in range(count):
        state = states[index] if index < len(states) else GpuState(None)
        yield _gpu(setup, index, state, setup.devices[index] if index < len(setup.devices) else None)


def _gpu(setup: TorchSetup, index: int | None, state: GpuState, name: str | None) -> Diagnostic:
    error = state.why_not
    remarks: tuple[Remark, ...] = ()
    verdict: tuple[Level, str] = ("ok", "gpu")
    if index is None:
        verdict = ("ok", "gpu-none")
    elif name is None and setup.version is not None and (setup.cuda or setup.hip):
        verdict, error = ("warning", "gpu-not-usable"), setup.error("devices")
    elif state.source is None:
        verdict = ("warning", "gpu-amd" if setup.hip else "gpu-not-readable")
    elif remarks := gpu_remarks(state):
        verdict = ("warning", "gpu-hazards")
    facts = ("driver", "sm_mhz", "max_sm_mhz", "power_w", "limit_w", "temperature_c", "busy", "idle")
    return diagnostic(
        "gpu",
        *verdict,
        remarks,
        index=index,
        name=name or state.name,
        usable=name is not None,
        **{fact: getattr(state, fact) for fact in facts},
        throttled_by=state.reasons,
        processes=len(state.processes),
        error=error,
    )


def processors_diagnostic(state: CpuState) -> Diagnostic:
    """Return what runs here, and what of it would spoil the times of a kernel on all processors."""
    remarks = hazards(_PARALLEL, state)
    verdict: tuple[Level, str] = ("warning", "processors-hazards") if remarks else ("ok", "processors")
    facts = ("processors", "busy", "stolen", "quota", "load", "governors")
    return diagnostic("processors", *verdict, remarks, **{fact: getattr(state, fact) for fact in facts})


def timer_diagnostic(step: float | None = None, source: str | None = None) -> Diagnostic:
    """Return the smallest step (s) of the clock that everything here is timed with; both measured if None."""
    step = timer_step() if step is None else step
    verdict: tuple[Level, str] = ("warning", "timer-coarse") if step > _COARSE_S else ("ok", "timer")
    return diagnostic("timer", *verdict, step_s=step, source=source or clock_source())


def folder_diagnostics(
    setup: TorchSetup, here: Path, environment: Mapping[str, str] = os.environ
) -> Iterator[Diagnostic]:
    """Yield each folder with its free space. `here` is where dumps go unless a variable says otherwise."""
    yield _folder("dumps", Path(environment.get("TORCH_COMPILE_DEBUG_DIR") or here))
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        reason = error.strerror or str(error)
        yield diagnostic(
            "disk", "error", "folder-not-writable",
            use="temporary", folder=None, exists=None, free_bytes=None, error=reason,
        )  # fmt: skip
    else:
        yield _folder("temporary", temporary)
    if setup.caches:
        yield _folder("caches", Path(setup.caches.folder))
    yield _folder("record", record_path(environment).parent)


def _folder(use: str, folder: Path) -> Diagnostic:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    verdict: tuple[Level, str] = ("ok", "folder")
    free = reason = None
    try:
        # Written to, and gone afterwards: a full disk refuses the first block, not the name.
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".probe_", buffering=0) as file:
            file.write(b"\0" * 4096)
            os.fsync(file.fileno())
        free = shutil.disk_usage(existing).free
        if free < _LITTLE:
            verdict = ("warning", "little-space")
    except OSError as error:
        reason = error.strerror or str(error)
        verdict = ("warning" if use == "record" else "error", "folder-not-writable")
    exists = existing == folder
    return diagnostic(
        "disk", *verdict, use=use, folder=str(folder), exists=exists, free_bytes=free, error=reason
    )


def caches_diagnostic(setup: TorchSetup) -> Diagnostic:
    """Return where torch's caches are, how much is in them, and which are on."""
    caches = setup.caches
    if caches is None:
        error = setup.error("caches")
        return diagnostic("caches", "warning", "caches-not-available", torch=setup.version, error=error)
    size, files, counted_all = folder_size(Path(caches.folder))
    remote = caches.remote and not caches.disabled
    verdict: tuple[Level, str] = ("warning", "caches-remote") if remote else ("ok", "caches")
    settings = {
        name: getattr(caches, name) for name in ("disabled", "fx_graph", "autograd", "autotune", "remote")
    }
    return diagnostic(
        "caches", *verdict, folder=caches.folder, bytes=size, files=files, whole=counted_all, **settings
    )


def folder_size(folder: Path, seconds: float = _COUNTING_S) -> tuple[int, int, bool]:
    """Return bytes and number of the files below a folder, and whether all were counted in `seconds`."""
    size = files = 0
    end = time.monotonic() + seconds
    folders = [str(folder)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue  # not there, or not ours to look into
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    size, files = size + entry.stat(follow_symlinks=False).st_size, files + 1
            except OSError:
                continue  # gone meanwhile
        if time.monotonic() > end:
            return size, files, False
    return size, files, True
