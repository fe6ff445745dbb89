"""Everything about this machine, in the order it is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from inductor_probe.health.caches import cache_findings
from inductor_probe.health.compiling import compiling_findings
from inductor_probe.health.folders import folder_findings
from inductor_probe.health.gpu import gpu_findings, gpu_states, has_gpu
from inductor_probe.health.installed import installed_findings
from inductor_probe.health.load import load_finding, timer_finding
from inductor_probe.health.torch_setup import torch_setup
from inductor_probe.health.variables import variable_findings
from inductor_probe.machine.cpu import cpu_state
from inductor_probe.model.health import Finding, MachineHealth


def examine(here: Path, environment: Mapping[str, str] = os.environ) -> MachineHealth:
    """Look at this machine: some seconds, most of them for torch in a child process.

    Args:
        here: the folder that dumps would go to.
        environment: of the runs to come.
    """
    load = cpu_state()  # before there is a child of ours that keeps a processor busy
    gpus = gpu_states(environment)
    setup = torch_setup(environment)

    def findings() -> Iterator[Finding]:
        yield from installed_findings(setup, has_gpu(gpus))
        yield from compiling_findings(setup, environment)
        yield from cache_findings(setup)
        yield from variable_findings(setup, environment)
        yield from gpu_findings(setup, gpus)
        yield load_finding(load)
        yield timer_finding()
        yield from folder_findings(setup, here, environment)

    return MachineHealth(tuple(findings()))
