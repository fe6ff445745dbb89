"""What checks and times a graph: its core is pasted into bench files, all of it imported by `probe`.

Everything here imports torch, and nothing of this package but `harness` itself. `HEAD` and `CORE` are pasted,
in this order, in which they are best read: they check and time in one process. The other modules extend them
(random numbers replayed, cold data, a GPU clock that takes off what events add, overheads, configs) and are
imported from here: no line exists twice.

Its parts, beside the core that is pasted (options; checks, times and table; inputs, judge, reference,
launches, quads): `references` (check), `attention` (that of CUDA in float64), `casts` (which casts round
there), `own_calls` and `own_state` (the user's callables, in his process), `call_parts`, `call_marks` and
`marked_wrappers` (what a call of theirs consists of), `eager_operators` (what eager runs in it),
`allocations` (memory that each takes), `laps` (runs that kept their cores), `one_rank` (collectives without a
process group), `sides` and `quads` (timing), `budget`, `call_profile`, `profile` and `line_clock` (where a
call's time goes), `replays` (launches), `interpreter/` (Triton kernels checked without a GPU), `code_copies`,
`gpu_clock`, `saved_inputs`, `measure`, `server`.

What was decided here:

- A bench file stands alone, and is short. The core is ordinary linted, tested code; its source is
  pasted into each file, so that the file runs wherever torch does. `probe` loads the file as a module,
  takes the graph's names from it (`Bench`) and works with the imported harness, which calls and extends the
  same core. The two cores are compared as text; where they differ, `own_core.py` runs the file's own.
- Right before fast. A bench file checks every variant against the pristine code and a float64 run of the
  graph before a clock starts, and does not time a wrong one. An ablation is wrong on purpose: it is timed
  alone, and is no improvement.
- A call is divided where it was compiled. Guards, dynamo's entry, AOTAutograd's runtime and the wrapper are
  those of the user's callable in his own process (`call_parts.py`): laps of it as it is take turns with
  laps in which one kind of function reads a clock, and a wrapper in C++ is compiled with one in it
  (`marked_wrappers.py`).
- A profile is of code that reads clocks, and says what that costs. C++ kernels get a copy that reads one
  around each loop nest (`variants/nest_clock.py`), the wrapper one that does so at each line
  (`line_clock.py`); both compute the same bits, take turns with the code as it is, and count on one clock:
  of long calls on one thread that is its CPU time (`laps.clock_of`), as no slice of a busy core holds them.
  What is in no part is a row.
- A budget is what measuring takes. `budget.py` says what it covers, deals it out and keeps it: what a call
  costs is profiled once, in the first process, which tells the others what there is time for
  (`benchmarks/cost/budget.py`).
- No time rests on one place of code or data. Each slot of a ring has its own copies of the arguments and of
  the kernel's library (`code_copies.py`): a core that runs a loop at two speeds would make processes differ
  by 12 %.
- Eager is the user's. A child runs his script up to a call of what torch.compile returned
  (`capture/own_calls.py`, one place of torch), and times both there (`own_calls.py`), from the same state
  (`own_state.py`); only where the record shows that the run was made here (`api/own_call.py`).
- A lap counts if it kept its core, and the fastest of those. Others are taken again, or count with CPU time
  and a wider interval (`laps.py`). Whatever else runs makes calls longer and none shorter: sides take turns
  lap by lap, and a quad compares the fastest lap of each (`timing.py`; `benchmarks/timing/verdicts.py` is the
  proof).
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
