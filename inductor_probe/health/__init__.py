"""The health room: is this machine fit for dumps and timings, and what to do where it is not?

`torch_child` asks torch in a process of its own; each other file turns one thing into findings.
"""

from inductor_probe.health.examine import examine

__all__ = ["examine"]
