"""This machine as compiled code depends on it: nothing is imported or compiled for it."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.machine.cpu import CPUINFO, cpu_features, vector_bits
from inductor_probe.machine.facts import installed
from inductor_probe.machine.gpu import gpu_states
from inductor_probe.machine.targets import find_gpu_target, target_of_device
from inductor_probe.model.portable import Host

_CAPABILITY_BITS = {"default": 128, "avx2": 256, "avx512": 512}
"""`ATEN_CPU_CAPABILITY`, which limits the vectors that torch's `pick_vec_isa` takes."""


def this_host(environment: Mapping[str, str] = os.environ, cpuinfo: Path = CPUINFO) -> Host:
    """Return this machine: the first GPU counts."""
    bits, most = vector_bits(cpuinfo), _CAPABILITY_BITS.get(environment.get("ATEN_CPU_CAPABILITY", ""))
    states = gpu_states(environment)
    state = states[0] if states else None
    target = target_of_device(state.name) if state else None
    name, version = platform.libc_ver()
    return Host(
        name="this machine",
        platform=sys.platform,
        architecture=platform.machine(),
        libc=version if name == "glibc" else None,
        instructions=tuple(sorted({re.sub("[-_.]", "", flag) for flag in cpu_features(cpuinfo)})),
        vector_bits=min(bits, most) if bits and most else bits,
        processors=len(os.sched_getaffinity(0)),
        torch=installed("torch"),
        triton=installed("triton"),
        gpus=len(states),
        driver=state.driver if state else None,
        capability=target.capability if target else None,
        multiprocessors=target.multiprocessors if target else None,
    )


def host_with(name: str) -> Host:
    """Return this machine with another GPU, by the name of its target or a file that describes it.

    Raises:
        NotFoundError, UnreadableError, ProbeError: see `find_gpu_target`.
    """
    target, here = find_gpu_target(name), this_host()
    return replace(
        here,
        name=f"a machine as this with one {target.device}",
        gpus=1,
        driver=None,
        capability=target.capability,
        multiprocessors=target.multiprocessors,
        elsewhere=True,
    )
