"""Records to records, pure: what the dump implies."""

from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.summary import summarise

__all__ = ["layouts", "summarise"]
