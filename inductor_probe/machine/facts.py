"""What the run ran on."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from inductor_probe import __version__
from inductor_probe.machine.cpu import cpu_name, vector_bits

VARIABLE_PREFIXES = (
    "TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "PYTORCH_", "INDUCTOR_", "ATEN_", "TRITON_",
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_", "CUBLAS_", "CUDNN_",
)  # fmt: skip
"""What torch, triton, and the libraries that kernels call or are built with, begin their variables with."""
_VARIABLES = (
    "CC", "CXX", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "HIP_VISIBLE_DEVICES", "LD_PRELOAD",
)  # fmt: skip
_SECRET_NAME = re.compile(r"TOKEN|PASSWORD|SECRET|KEY|REDIS|URL")
_SECRET_VALUE = re.compile(r"://[^/\s]*@")
NOT_RECORDED = "(not recorded)"
"""In a manifest in the place of a value that may be a secret."""


def variables(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the variables that may change what is compiled or how fast it runs.

    No others are recorded: what else is set is the user's business. Nor is a value that may be a secret.
    """
    return tuple(
        (name, NOT_RECORDED if is_secret(name, environment[name]) else environment[name])
        for name in sorted(environment)
        if name in _VARIABLES or name.startswith(VARIABLE_PREFIXES)
    )


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable may hold a secret: by its name, or an address with a password in it."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def versions(end: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the versions of what took part. `end` is the child's last event: what it imported counts."""
    facts = {
        "inductor_probe": __version__,
        "torch": end.get("torch") or installed("torch"),
        "triton": end.get("triton") or installed("triton"),
        "python": platform.python_version(),
        "cxx": cxx_version(),
    }
    return tuple((name, str(version)) for name, version in facts.items() if version)


def machine(end: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the machine's facts; `gpu` and `threads` as the child saw them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": cpu_name(),
        "vector_bits": vector_bits(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": f"{memory:.1f}",
        "gpu": end.get("gpu"),
        "threads": end.get("threads"),
    }
    return tuple((name, str(fact)) for name, fact in facts.items() if fact)


@functools.cache
def installed(distribution: str) -> str | None:
    """Return the version of a distribution of this Python, from its metadata: nothing is imported."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def cxx_version() -> str | None:
    """Return the first line of the C++ compiler's `--version`: inductor takes CXX, or else g++."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        return None
    output = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return output.splitlines()[0] if output else None
