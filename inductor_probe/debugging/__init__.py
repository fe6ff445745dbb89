"""Runs a script as `probe dump` does, and stops inside the compiler for a debugger.

In the parent: `places` (what the user named) and `subjects` (a buffer, a pair of nodes, a kernel) become
`stops`, found in the sources that `sources` parses; `session` tells editors where to attach and starts the
child. In the child: `insertion` puts a call into the source of a module when it is imported, `asking` decides
at that call, and `attached` (debugpy) or `terminal` (pdb) stops.
"""

from inductor_probe.debugging.places import Planned, plan
from inductor_probe.debugging.session import (
    Endpoint,
    debug,
    instructions,
    offer_launch_configuration,
    read_endpoint,
)
from inductor_probe.debugging.stops import Stop

__all__ = [
    "Endpoint",
    "Planned",
    "Stop",
    "debug",
    "instructions",
    "offer_launch_configuration",
    "plan",
    "read_endpoint",
]
