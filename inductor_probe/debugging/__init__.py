"""Runs a script as `probe dump` does, and stops inside the compiler for a debugger.

In the parent, `places` makes `breakpoints` of what the user named, with `sources`, and `session` tells
editors where to attach and starts the `child`. There a call is put into modules as they are imported
(`breakpoints`), and decides whether one of the `debuggers` stops.

What was decided here:

- A stop in the compiler is a line put into torch's module as it is imported (`breakpoints.py`): every
  debugger lands in torch's own frame, and no client's breakpoints take it away.
"""

from inductor_probe.debugging.places import BreakpointPlan, plan
from inductor_probe.debugging.session import (
    Endpoint,
    debug,
    instructions,
    offer_launch_configuration,
    read_endpoint,
)

__all__ = [
    "BreakpointPlan",
    "Endpoint",
    "debug",
    "instructions",
    "offer_launch_configuration",
    "plan",
    "read_endpoint",
]
