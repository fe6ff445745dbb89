"""Cases of scenarios timed and compared: which cases, in which processes, and what follows.

`child/` runs beside torch, in a process of its own, under any interpreter that has torch.

Which cases (`plan`), a row in several processes (`rows`), what an executor has on each machine (`worker`),
all of them (`session`), two builds of torch (`interleaved`), what the script's own call takes
(`own_calls`), what follows (`conclude`, `compare`); and how times of compiling grow with a number (`growth`).

What was decided here:

- Which code ran is seen, not assumed. A call of each column of `probe perf` runs once under
  `sys.setprofile`: the files of generated wrappers that it enters are its code. None, and it ran eagerly;
  another column's, and the two share dynamo's cache; others after it was timed, and its times are of two
  codes. Only then are two columns compared.
- Two builds of torch take turns. A child of each interpreter runs a lap when the other waits for a line:
  quads, as in one process (`interleaved.py`). What runs there imports torch, `harness` and `scenario`, and
  nothing else.
"""
