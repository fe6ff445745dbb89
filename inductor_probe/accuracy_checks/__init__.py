"""Is what a compiled program computes right, and if not: which operator, and which layer of the compiler?

Runs beside torch, in a child process that runs the user's script (`child`): a call of his is made eagerly, in
float64 and compiled (`calls`); where those differ by more than rounding (`judgement`), it is followed down
through decompositions, passes, launches and loop bodies.

Its parts: `calls`, `judgement` and `shadow` (a second value in float64 of each) judge calls; what is wrong
is followed down by `decompositions`, `passes`, `launches`, `parts` and `kernels` (what a launch computes,
compiled alone), `bodies` (loop bodies evaluated), `above` (other backends), `changes` (what makes it
right), `functional` (a graph whose operators write nothing), `interpreted` (a GPU simulated, its kernels in
triton's interpreter); `session` is the parent's side.

What was decided here:

- A result is judged by what rounding can do to it. Each operation runs twice, as it is and in float64
  (`shadow.py`); where that does not decide, runs whose results are moved by roundings say how far a value
  may be off (Monte Carlo arithmetic). Casts round in the float64 run, too, and decisions are eager's.
- A fault is looked for where its inputs are right. What a launch wrote is compared with the FX node that it
  is (`ir.Buffer.origin_node`) and replaced by eager's value; a launch is judged from what it read, a node
  within it by the operands that the kernel had. So several faults are each named, and what follows from one
  is not.
"""
