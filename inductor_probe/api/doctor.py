"""Whether this machine is fit."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.health.examine import examine
from inductor_probe.model.health import DoctorOutput, MachineHealth
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document
from inductor_probe.report.pages.check import health_page
from inductor_probe.report.shown import Shown


class Health(MachineHealth, Shown):
    """What was seen of the machine; shows itself."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return DoctorOutput(health=self)

    @property
    def document(self) -> Document:
        """The diagnostics, and whether the machine is fit."""
        return health_page(self)

    __repr__ = Shown.__repr__


def doctor() -> Health:
    """Examine Python, torch, the compiler, caches, variables, GPUs, load and folders of this machine.

    It takes some seconds: torch is asked in a child process, which compiles a small kernel.
    """
    return Health(examine(Path.cwd()).diagnostics)
