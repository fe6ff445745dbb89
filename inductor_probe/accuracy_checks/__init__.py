"""Is what a compiled program computes right, and if not: which operator, and which layer of the compiler?

Runs beside torch, in a child process that runs the user's script (`child`): a call of his is made eagerly, in
float64 and compiled (`calls`); where those differ by more than rounding (`judgement`), it is followed down
through decompositions, passes, launches and loop bodies.
"""
