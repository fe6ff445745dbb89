"""What was found about the machine, in words and in JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from inductor_probe.model.health import Level, MachineHealth
from inductor_probe.report.units import counted

_STYLES: dict[Level, str] = {"fine": "green", "note": "yellow", "needs": "bold red"}


def health_json(health: MachineHealth) -> dict[str, Any]:
    """Return the findings with stable keys, ready for `json.dumps`.

    `fit` and `findings`, each with `about`, `level` (`fine`, `note`, `needs`), `text`, `remedy` (None where
    fine) and `facts`: an object whose keys depend on `about`, None where not known:

    - `python`: version, executable; `torch`: version, build, folder, threads; `triton`, `debugpy`: version
    - `compiler`: name, path, version, seconds; `openmp`: flag, threads; `vectors`: isa, bits, processor_bits
    - `caches`: folder, bytes, files, disabled, fx_graph, autograd, autotune, remote
    - `recompiles`: recompile_limit, accumulated_recompile_limit; `variables`: name, value, known
    - `gpu`: name, usable, driver, sm_mhz, max_sm_mhz, power_w, limit_w, temperature_c, busy, held_back_by,
      processes; `processors`: processors, busy, stolen, quota, load, governors; `timer`: step_s, source
    - `disk`: use (`dumps`, `temporary`, `caches`, `record`), folder, free_bytes
    """
    return {
        "fit": health.fit,
        "findings": [
            {
                "about": finding.about,
                "level": finding.level,
                "text": finding.text,
                "remedy": finding.remedy,
                "facts": dict(finding.facts),
            }
            for finding in health.findings
        ],
    }


class HealthText:
    """A row for each subject, the worst finding about it first, then whether the machine is fit."""

    def __init__(self, health: MachineHealth) -> None:
        self.health = health

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        order = list(_STYLES)
        subjects = list(dict.fromkeys(finding.about for finding in self.health.findings))
        shown: tuple[str, str] | None = None
        for finding in sorted(
            self.health.findings, key=lambda each: (subjects.index(each.about), -order.index(each.level))
        ):
            text = Text(finding.text)
            if finding.remedy is not None:
                text = Text.assemble(text, "; ", (finding.remedy, "cyan"))
            repeated = shown == (finding.level, finding.about)
            shown = (finding.level, finding.about)
            level = Text("" if repeated else finding.level, style=_STYLES[finding.level])
            grid.add_row(level, Text("" if repeated else finding.about, style="dim"), text)
        yield grid
        yield Text()
        yield self._sum()

    def _sum(self) -> Text:
        levels = [finding.level for finding in self.health.findings]
        notes = f"; {counted(levels.count('note'), 'note')} above" if "note" in levels else ""
        if self.health.fit:
            return Text.assemble(("fit", "bold green"), f": nothing that is needed is missing{notes}")
        needs = {finding.about: None for finding in self.health.findings if finding.level == "needs"}
        return Text.assemble(("not fit", "bold red"), f": see {', '.join(needs)}{notes}")
