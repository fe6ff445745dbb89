"""What a reader of the numbers has to know about this machine and process."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import torch

CPUINFO = Path("/proc/cpuinfo")


def environment() -> dict[str, Any]:
    """Return versions, machine, cores, threads and load."""
    models = re.findall(r"model name\s*: (.*)", CPUINFO.read_text()) if CPUINFO.exists() else []
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
