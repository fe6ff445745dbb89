"""The bench room: runs bench files in child processes, and judges what they measured.

What was decided here:

- A bench file is one process, a verdict is several, and torch is imported once. The file checks and takes
  samples; `harness/server.py` imports torch and forks a child for each measuring process, which places
  itself elsewhere in memory; here they alternate, and the interval rests on their medians (`intervals.py`
  says why it is no bootstrap). A variant that does not compile, or kills a child, does not end the others
  (`state.py` says what the next child leaves out).
- One stop rule. How many processes measure, and for how long each, is `stop_rule.py`: for bench files, rows
  of `probe perf`, pairs of interpreters and the program's own calls; sides and checks are each verb's own.
- One time for one thing. Absolute times come from the rounds in which kernels and call take turns
  (`overheads.py`), ratios from the quads, and a candidate's time is its baseline's times the ratio
  (`times.py`): so tables agree with each other and with the ratios.
- Parts never exceed their whole. What was timed part by part is scaled to the call where it takes longer,
  the same in every table (`overheads.py`), the rest is called one, and `bench-kernel` and `profile` refuse
  a rate that this machine was not measured to reach.
"""
