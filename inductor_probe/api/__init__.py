"""The verbs of `probe` as functions, and the objects they return: the names of the package itself.

A method imports what it needs when it is called: one verb has no use for the imports of the others, which
together take longer than reading most dumps.

What was decided here:

- A candidate is dropped only when it is shown not to be faster. `probe whatif --try-all` looks at each for
  longer and longer (`bench/looks.py`), with intervals that hold for all looks and, for a gain, for all
  candidates at once; a run is made again from its manifest (`baseline.py`), candidates are dumped several
  at once (`candidate_dumps.py`), and what is known is on disk after each (`candidates.py`,
  `store/trials.py`).
- What cannot gain is not compiled. A candidate is about loop nests, whose share of a call bounds what it
  gains (`analysis/causes/candidates.py`, `analysis/causes/times.py`); what is about other nests is
  compiled in the same dump and told apart by the time of each (`candidate_groups.py`), and dumps of one
  session share compiled kernels. The best gain is held against the program's own call.
- An overview joins, and measures only what is not known. `overview.py` asks for the user's call, a profile
  and the ledger; what is measured stays in the run (`store/profiles.py`), until its code changes. Guards
  that failed and graph breaks are read as dynamo words them, in one place (`analysis/interruptions.py`).
- Only what was made here runs. `probe dump` writes digests of what it made, and of how, to a record outside
  of any dump; code that the record does not know, or that other users may have written, runs with `--trust`
  only, and never with a stranger's folder on the path. A bench file is read once; its text is judged, and
  sent to each process that runs it (`trust.py`, `harness/load.py`): the file is not read again, nor
  decoded by what a comment in it says.
"""
