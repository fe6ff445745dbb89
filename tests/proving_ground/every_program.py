"""All programs that show causes, as one script: torch starts once for those of a device.

    probe dump tests/proving_ground/every_program.py --case fusion-cycle --case fusion-cycle_flipped

The programs of a kind are a script of their own, too (`probe dump tests/proving_ground/fusion.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from inductor_probe.catalogue import KINDS
from inductor_probe.model.decision import DecisionKind
from inductor_probe.scenario import Scenario
from tests.proving_ground.examined import EXAMINED
from tests.proving_ground.programs import Program, leave_out_what_decides_nothing, scenario_of

OF_KINDS: Mapping[DecisionKind, Mapping[str, Program]] = {
    kind: importlib.import_module(f"tests.proving_ground.{module}").PROGRAMS for kind, module in KINDS.items()
}
PROGRAMS: Mapping[str, Program] = {
    **{f"{kind}-{name}": one for kind, programs in OF_KINDS.items() for name, one in programs.items()},
    **{f"examined-{name}": one for name, (_, one) in EXAMINED.items()},
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    leave_out_what_decides_nothing()
    scenario.main()
