"""Records to records, pure: what the dump implies.

Its parts: `graph` (the index of a graph: each map from a name, made once, and `once_per_graph`, which
stores conclusions in the graph), `names` (the one resolver of a name inside a graph), `operators` (the one
parser of operator names); `access`, `index`, `generated_access` and `layouts` (how memory is reached, by
the IR and by the kernels), `layout_remarks`, `kernels` and `run_remarks` (typed conclusions; their
sentences are in `report/words/`), `linking/` (user's line <-> FX node <-> scheduler node <-> kernel <->
launch, each link with its proof), `formula/` (a loop body as mathematics, and what its kernel's text adds:
`code`, `indices`, `decided`; a test runs the body and evaluates its formula), `canonical` (a key that is
equal for bodies that compute the same), `fusion/` (whose part of a log is whose, the decisions in it, what
the IR shows of a pair), `diff/` (pairs the nodes, buffers and kernels of two graphs, then says what differs),
`annotation/` (which node each line of a kernel computes for), `kernels`, `nodes`, `pages` (the page of what a
name means), `causes/` (a recorded decision with whom it concerns, what is at stake, and which changes of its
entry in `catalogue/` apply), `check`, `completeness/` (what a file lacks of what torch guarantees, for
`check` alone), `summary` (and what a dump calls for next); `overview` (parts of a call, and what was missed
by them), `decomposed` (what loops do for an operator that inductor decomposed, and which of it again and
again), `interruptions` (graph breaks and recompiles); `input_bounds` (which values inputs may take),
`symbols` (what symbolic sizes are and were), `launch_check`, `links` (what belongs to what, launches and
autotuning choices too), `work` (bytes and flops of kernels).
"""
