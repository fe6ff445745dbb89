"""The part of a bench file that is the same in all of them: real modules here, pasted there.

They import torch and nothing of this package but each other, and are pasted in this order, in which they are
best read. `CORE` checks and times; it imports nothing of `REST`, which measures where a call's time goes,
sweeps configs, and is the file's command line.
"""

CORE = (
    "remarks",
    "bench",
    "inputs",
    "checks",
    "reference",
    "judge",
    "gpu_clock",
    "timing",
    "launches",
    "report",
)
REST = ("constants", "overheads", "configs", "measure", "main")
ONLY_ON_GPU = ("gpu_clock", "configs")
"""Pasted into bench files of graphs on a GPU only: nothing calls what is in them elsewhere."""
