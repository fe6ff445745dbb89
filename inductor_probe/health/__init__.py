"""The health room: is this machine fit for dumps and timings, and what to do where it is not?

Facts come from `machine`; what is made of them are typed diagnostics, and `report/words/health.py` has the
words.
"""

from inductor_probe.health.examine import examine

__all__ = ["examine"]
