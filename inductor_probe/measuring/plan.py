"""What is to be measured: a script or a function of it, which of its cases, and how."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from inductor_probe.model.perf import CaseKey, Knob, PerfSettings

_GIT_S = 10.0


class Plan(Struct, frozen=True):
    """What is to be measured.

    Attributes:
        script: the file. function: of it, where there is no scenario; `arguments` as `argument_of` made them.
        matrix: a matrix of the scenario, or a pattern; None for `quick`, or all cases with `cases`.
        cases: patterns of names. knobs: that are set otherwise.
        threads: each case is measured with each of them. device: only cases of that; None: those that the
            machine has.
    """

    script: Path
    function: str | None = None
    arguments: tuple[Mapping[str, Any], ...] = ()
    matrix: str | None = None
    cases: tuple[str, ...] = ()
    knobs: Mapping[str, str] = field(default_factory=dict)
    threads: tuple[int, ...] = (1,)
    device: str | None = None
    settings: PerfSettings = field(default_factory=PerfSettings)

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
            "settings": dict(self.knobs),
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
    rows = []
    for threads in plan.threads:
        for case in listed:
            knobs: dict[str, Knob] = dict(case["knobs"])
            device = str(knobs.get("device", "cpu"))
            if plan.device is not None and device.partition(":")[0] != plan.device:
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
