"""What is to be measured: a script or a function of it, which of its cases, and how."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe.model.perf import CaseKey, Knob, PerfSettings
from inductor_probe.options.cases import PerfOptions

_GIT_S = 10.0


class Plan(Struct, frozen=True):
    """What is to be measured.

    Attributes:
        script: the file. options: as they were asked for: which cases, how, and under which interpreters.
        function: of it, where there is no scenario; `arguments` as `argument_of` made them.
    """

    script: Path
    options: PerfOptions
    function: str | None = None
    arguments: tuple[Mapping[str, Any], ...] = ()

    @property
    def settings(self) -> PerfSettings:
        """How rows are measured."""
        return self.options.settings

    @property
    def pythons(self) -> Sequence[Path | None]:
        """One interpreter, or two that take turns; None for the one that runs this."""
        return self.options.interleave or (self.options.python,)

    @property
    def scenario(self) -> str:
        """What rows are joined by: the name of the script, and the function's."""
        return f"{self.script.name}:{self.function}" if self.function else self.script.stem

    @property
    def request(self) -> dict[str, Any]:
        """What a measuring process needs to load it."""
        return {
            "script": str(self.script.resolve()),
            "function": self.function,
            "arguments": [dict(argument) for argument in self.arguments],
            "settings": dict(self.options.knobs),
        }

    def commit(self) -> str:
        """Return the commit of the script's repository, with a `+` where files differ; else nothing."""
        words = ("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+")
        try:
            ran = subprocess.run(
                ["git", "-C", str(self.script.resolve().parent), *words],  # noqa: S607 - the user's git
                capture_output=True, text=True, timeout=_GIT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):  # no git, or a repository on a disk that sleeps
            return ""
        return ran.stdout.strip() if ran.returncode == 0 else ""


class PlannedRow(Struct, frozen=True):
    """A case that is to be measured with a number of threads; `missing` says why it cannot be here."""

    key: CaseKey
    missing: str | None = None


def planned_rows(plan: Plan, listed: Sequence[Mapping[str, Any]]) -> tuple[PlannedRow, ...]:
    """Return a row for each case that a measuring process listed, and each number of threads."""
    rows, of_device = [], plan.options.device
    for threads in plan.options.threads:
        for case in listed:
            knobs: dict[str, Knob] = dict(case["knobs"])
            device = str(knobs.get("device", "cpu"))
            if of_device is not None and device.partition(":")[0] != of_device:
                continue
            cold = plan.settings.cold if plan.settings.cold is not None else device.startswith("cuda")
            key = CaseKey(
                scenario=plan.scenario,
                case=case["name"],
                knobs=tuple((name, value) for name, value in knobs.items() if name != "device"),
                device=device,
                threads=threads,
                data="cold" if cold else "warm",
            )
            rows.append(PlannedRow(key, case["missing"]))
    return tuple(rows)
