"""What checks and times a graph: its core is pasted into bench files, all of it imported by `probe`.

Everything here imports torch, and nothing of this package but `harness` itself. `HEAD` and `CORE` are pasted,
in this order, in which they are best read: they check and time in one process. The other modules extend them
(random numbers replayed, cold data, a GPU clock that takes off what events add, overheads, configs) and are
imported from here: no line exists twice.
"""

HEAD = ("options",)
"""Pasted above the kernels: it needs the standard library only, and runs before torch is imported."""
CORE = (
    "alone",
    "bench",
    "inputs",
    "judge",
    "checks",
    "reference",
    "launches",
    "timing",
    "events",
)
ONLY_ON_GPU = ("events",)
"""Pasted into bench files of graphs on a GPU only: nothing calls what is in them elsewhere."""
ORDERS = "orders"
"""Pasted above `make_inputs`, where the inputs of a graph have values in an order."""
CASTS = "casts"
"""Pasted above the reference of a graph that casts to a narrower dtype."""
ONE_RANK, COLLECTIVES = "one_rank", "_c10d_functional"
"""Pasted above the kernels of a graph that calls operators of that library."""
SHIMS = "shims"
"""Pasted above the kernels of a wrapper in C++ that calls libraries."""
STAND_INS = "stand_ins"
"""The function of it that stands in for operators which cannot be called."""
