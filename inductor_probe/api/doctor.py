"""Whether this machine is fit."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.health.examine import examine
from inductor_probe.model.health import DoctorOutput, MachineHealth
from inductor_probe.model.output import Output
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.report.health import HealthText


class Health(MachineHealth, Shown):
    """What was seen of the machine; shows itself."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return DoctorOutput(health=self)

    def __rich__(self) -> Renderable:
        return HealthText(self)

    __repr__ = Shown.__repr__


def doctor() -> Health:
    """Examine Python, torch, the compiler, caches, variables, GPUs, load and folders of this machine.

    It takes some seconds: torch is asked in a child process, which compiles a small kernel.
    """
    return Health(examine(Path.cwd()).diagnostics)
