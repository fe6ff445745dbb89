"""What is installed in this Python: torch and its build, triton, debugpy."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator
from importlib import metadata

from inductor_probe.model.health import Finding, TorchSetup

_OLDEST = (2, 11)
"""The oldest torch whose private parts the hooks and bench files know; dumps are read from 2.1 on."""


def installed(distribution: str) -> str | None:
    """Return the version of a distribution of this Python, from its metadata: nothing is imported."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def installed_findings(
    setup: TorchSetup, has_gpu: bool, version: Callable[[str], str | None] = installed
) -> Iterator[Finding]:
    """Yield what is installed.

    Args:
        has_gpu: whether this machine has a GPU, whatever torch makes of it.
        version: returns the version of a distribution; replaced in tests.
    """
    python = platform.python_version()
    facts = (("version", python), ("executable", sys.executable))
    yield Finding("python", "fine", f"{python}, {sys.executable}", facts=facts)
    yield _torch(setup, has_gpu, version("torch"))
    yield _triton(setup, has_gpu)
    debugpy = version("debugpy")
    if debugpy is None:
        text, remedy = "not installed: stepping into the compiler needs it", "pip install debugpy"
        yield Finding("debugpy", "note", text, remedy, (("version", None),))
    else:
        yield Finding("debugpy", "fine", debugpy, facts=(("version", debugpy),))


def _torch(setup: TorchSetup, has_gpu: bool, installed_version: str | None) -> Finding:
    build = "ROCm" if setup.hip else "CUDA" if setup.cuda else "CPU"
    facts = (
        ("version", setup.version or installed_version),
        ("build", build if setup.version else None),
        ("folder", setup.folder),
        ("threads", setup.threads),
    )
    if setup.version is None:
        why = setup.error("torch") or "no answer"
        if installed_version is None and "No module named 'torch'" in why:
            return Finding(
                "torch",
                "needs",
                f"not installed in {sys.executable}",
                "pip install torch, or run probe with the Python that has it",
                facts,
            )
        remedy = f"see what `{sys.executable} -c 'import torch, torch._inductor.config'` says"
        return Finding("torch", "needs", f"cannot be imported: {why}", remedy, facts)
    toolkit = setup.hip or setup.cuda
    text = f"{setup.version}, built for {build}{f' {toolkit}' if toolkit else ''}, in {setup.folder}"
    number = re.match(r"(\d+)\.(\d+)", setup.version)
    if number and (int(number[1]), int(number[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        remedy = f"install torch {oldest} or later to dump and time; reading dumps needs none"
        return Finding("torch", "note", f"{text}: its private parts are not known here", remedy, facts)
    if has_gpu and build == "CPU":
        remedy = "install a build for the GPU, if kernels for it are what you want"
        return Finding("torch", "note", f"{text}, and there is a GPU", remedy, facts)
    return Finding("torch", "fine", text, facts=facts)


def _triton(setup: TorchSetup, has_gpu: bool) -> Finding:
    facts = (("version", setup.triton),)
    if setup.triton:
        return Finding("triton", "fine", setup.triton, facts=facts)
    if setup.version is None:
        return Finding("triton", "fine", "not asked, without torch", facts=facts)
    why = setup.error("triton") or "no answer"
    if "No module named 'triton'" not in why:
        remedy = "install the triton that this torch was released with; C++ kernels do not need it"
        return Finding("triton", "note", f"cannot be imported: {why}", remedy, facts)
    if has_gpu or setup.devices:
        remedy = "pip install triton, the version that this torch was released with"
        return Finding("triton", "note", "not installed: inductor cannot compile for the GPU", remedy, facts)
    return Finding("triton", "fine", "not installed; kernels of a CPU are C++ and need none", facts=facts)
