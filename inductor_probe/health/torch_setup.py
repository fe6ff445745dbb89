"""What torch says about itself, asked in one child process."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inductor_probe.machine.python_child import python_command
from inductor_probe.model.health import BuiltKernel, Limit, TorchCaches, TorchSetup

_CHILD = Path(__file__).with_name("torch_child.py")
_TIMEOUT_S = 600
"""The first answer on a machine compiles a program for each kind of vector that it may have: some 20 s."""
_LEAVE_FILES = ("TORCH_TRACE", "TORCH_COMPILE_DEBUG")
"""Variables that would have the child write where the user's own runs write."""


def torch_setup(environment: Mapping[str, str] = os.environ) -> TorchSetup:
    """Ask the torch of this Python, in a child process; nothing is raised: see `TorchSetup.errors`."""
    try:
        with tempfile.TemporaryDirectory(prefix="inductor_probe_", ignore_cleanup_errors=True) as folder:
            ended = subprocess.run(
                python_command(_CHILD),
                cwd=folder,
                env={name: value for name, value in environment.items() if name not in _LEAVE_FILES},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return TorchSetup(errors=(("torch", f"it could not be asked: {error}"),))
    last = (ended.stdout.strip().splitlines() or [""])[-1]
    if ended.returncode or not last.startswith("{"):
        status = ended.returncode
        how = f"killed by signal {-status}" if status < 0 else f"status {status}"
        why = (ended.stderr.strip().splitlines() or [how])[-1]
        return TorchSetup(errors=(("torch", f"it could not be asked: {why}"),))
    return setup_from(json.loads(last))


def setup_from(said: Mapping[str, Any]) -> TorchSetup:
    """Return what the child printed, as a record."""
    caches, built = said.get("caches"), said.get("built")
    plain = {
        name: said.get(name)
        for name in ("version", "folder", "cuda", "hip", "threads", "triton", "compiler", "openmp", "isa")
    }
    return TorchSetup(
        **plain,
        vector_bits=said.get("vector_bits"),
        devices=tuple(said.get("devices", ())),
        built=BuiltKernel(**built) if built else None,
        caches=TorchCaches(**{**caches, "remote": tuple(caches["remote"])}) if caches else None,
        limits=tuple(Limit(**limit) for limit in said.get("limits", ())),
        errors=tuple(said.get("errors", {}).items()),
    )
