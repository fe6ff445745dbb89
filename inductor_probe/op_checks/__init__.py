"""PyTorch's own samples of operators, run eager and compiled: `probe check-op`.

`running` hands cases to processes, each of which is a `worker`: it takes `samples` from PyTorch's database,
runs them with inductor's decompositions or with those of a user (`decompositions`), and compares. What failed
becomes a program of its own (`script`). `graphs` is for a developer's own tests: a function as an FX graph
with a table of decompositions, compiled by inductor, and the memory formats of what it calls.
"""
