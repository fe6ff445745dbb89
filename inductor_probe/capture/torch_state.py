"""What torch is doing right now, read from modules that the script has imported. Nothing is imported here."""

from __future__ import annotations

import sys
from typing import Any


def compile_id() -> str | None:
    """Return dynamo's id of the compile in progress (`0/1`: frame 0, its second compile), if there is one."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    found = context.current_compile_id() if context is not None else None
    return None if found is None else str(found)


def case_name() -> str | None:
    """Return the scenario's case that is running, if one is."""
    scenario = sys.modules.get("inductor_probe.scenario")
    case = scenario.current_case() if scenario is not None else None
    return None if case is None else str(case.name)


def debug_folder() -> str | None:
    """Return the folder of the graph that inductor is compiling now."""
    virtualized: Any = sys.modules.get("torch._inductor.virtualized")
    return getattr(virtualized.V.debug, "_path", None) if virtualized is not None else None
