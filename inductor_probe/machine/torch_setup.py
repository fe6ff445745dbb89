"""What torch says about itself, asked in one child process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from inductor_probe.errors import RunFailedError
from inductor_probe.machine.python_child import ask_torch
from inductor_probe.model.codec import from_json
from inductor_probe.model.health import TorchSetup

_CHILD = Path(__file__).with_name("setup_child.py")


def torch_setup(environment: Mapping[str, str] = os.environ) -> TorchSetup:
    """Ask the torch of this Python, in a child process; nothing is raised: see `TorchSetup.errors`."""
    try:
        return from_json(TorchSetup, ask_torch(_CHILD, environment=environment))
    except RunFailedError as error:
        return TorchSetup(errors=(("torch", error.message),))
