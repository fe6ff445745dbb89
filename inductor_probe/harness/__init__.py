"""The part of a bench file that is the same in all of them: real modules here, pasted there.

They import torch and nothing of this package but each other, and are pasted in the order of these tuples.
"""

GPU_MODULES = (
    "gpu_stream",
    "gpu_clock",
    "config_arguments",
    "config_list",
    "configs",
    "config_report",
)
"""Of graphs on a GPU only: nothing else calls what is in them."""

MODULES = (
    "remarks",
    "bench",
    "copies",
    "inputs",
    "unwritten",
    "random_numbers",
    "checks",
    "references",
    "judge",
    "clocks",
    "rings",
    "timing",
    "pointers",
    "launches",
    "subjects",
    "flops",
    "guards",
    "empty_kernels",
    "overheads",
    "environment",
    "report",
    "main",
)
