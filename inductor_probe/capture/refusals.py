"""What a dump would refuse, before one is made: knobs of a scenario, and settings of torch.

Each dump refuses them itself, as the scenario begins or torch's module of settings is imported. Where several
are to be made, one after the other, that is late: what was dumped by then was for nothing. So `check_knobs`
runs this file as a program, in which torch and the scenario are asked once about all of them. It prints an
object: `message` and `hint`, or nothing in it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from inductor_probe.capture.scripts import is_scenario, script_arguments
from inductor_probe.capture.torch_settings import MODULES, is_setting, set_one
from inductor_probe.errors import ProbeError
from inductor_probe.machine.python_child import ask_torch


def check_knobs(
    script: Path, args: Sequence[str], cases: Sequence[str], each: Sequence[Mapping[str, str]]
) -> None:
    """Refuse what one of several dumps of a script would be refused for.

    Args:
        script, args, cases: as `dump` takes them. each: for each dump its `knobs`, with settings of torch.

    Raises:
        ProbeError: as `dump`; or torch or the scenario has none of that name, or takes no such value of it.
        RunFailedError: torch cannot be imported.
    """
    settings: dict[tuple[str, str], None] = {}
    of_scenario = []
    for knobs in each:
        settings.update({pair: None for pair in knobs.items() if is_setting(pair[0])})
        others = {name: value for name, value in knobs.items() if not is_setting(name)}
        script_arguments(script, args, cases, others)
        of_scenario.append([f"{name}={value}" for name, value in others.items()])
    scenario = str(script.resolve()) if (cases or any(of_scenario)) and is_scenario(script) else None
    if not settings and scenario is None:
        return
    asked = {"settings": list(settings), "scenario": scenario, "cases": list(cases), "knobs": of_scenario}
    if answer := ask_torch(Path(__file__), json.dumps(asked)):
        raise ProbeError(answer["message"], answer["hint"])


def _main(text: str) -> None:
    asked, answers = json.loads(text), sys.stdout
    answer: dict[str, str | None] = {}
    with contextlib.redirect_stdout(io.StringIO()):  # what torch and the script print
        try:
            if asked["scenario"] is not None:
                _ask_scenario(Path(asked["scenario"]), asked["cases"], asked["knobs"])
            for name, value in asked["settings"]:
                set_one(importlib.import_module(MODULES[name.partition(".")[0]]), name, value)
        except ProbeError as error:
            answer = {"message": error.message, "hint": error.hint}
    answers.write(json.dumps(answer) + "\n")


def _ask_scenario(script: Path, cases: Sequence[str], each: Sequence[Sequence[str]]) -> None:
    """Select cases as its `main` does.

    Raises:
        ProbeError: it has no such case or knob, or takes no such value.
    """
    from inductor_probe.harness.user_file import import_file  # noqa: PLC0415 - each dump imports this package
    from inductor_probe.scenario import Scenario  # noqa: PLC0415 - as above

    try:
        found = [value for value in vars(import_file(script)).values() if isinstance(value, Scenario)]
    except (Exception, SystemExit):  # whatever a script may raise: its dump shows it, with a traceback
        return
    for knobs in each:
        for scenario in found[:1]:
            scenario.select(cases, knobs)


if __name__ == "__main__":
    _main(sys.argv[1])
