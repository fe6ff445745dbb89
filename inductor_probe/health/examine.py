"""Everything about this machine, in the order it is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from inductor_probe.health.devices import (
    gpu_diagnostics,
    gpu_states,
    has_gpu,
    processors_diagnostic,
    timer_diagnostic,
)
from inductor_probe.health.folders import caches_diagnostic, folder_diagnostics
from inductor_probe.health.installed import compiling_diagnostics, installed_diagnostics, limits_diagnostic
from inductor_probe.health.variables import variable_diagnostics
from inductor_probe.machine.cpu import cpu_state
from inductor_probe.machine.torch_setup import torch_setup
from inductor_probe.model.health import Diagnostic, MachineHealth


def examine(here: Path, environment: Mapping[str, str] = os.environ) -> MachineHealth:
    """Examine this machine: some seconds, most of them for torch in a child process.

    Args:
        here: the folder that dumps would go to.
        environment: of the runs to come.
    """
    load = cpu_state()  # before there is a child of ours that keeps a processor busy
    gpus = gpu_states(environment)
    setup = torch_setup(environment)

    def diagnostics() -> Iterator[Diagnostic]:
        yield from installed_diagnostics(setup, has_gpu(gpus))
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
