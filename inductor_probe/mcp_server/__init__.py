"""The door for programs: `probe mcp` serves the verbs as tools of the Model Context Protocol, over stdio.

What was decided here:

- A tool is a row of `tools.TOOLS`: its schema and checks are those of the record of the verb's options, its
  answer is the record that `--json` prints. A new one is one row.
  There are the 14 that a client needs to answer why something is slow or wrong: what more would cost is the
  list of them, below 29,000 bytes, which a test holds. Other verbs are for an agent with a shell.
- Each call is a process of its own (`child.py`): the server imports neither torch nor what reads dumps. The
  process ends by Ctrl-C, as in a terminal, when the client takes the call back or the server is gone. What it
  and the scripts print goes to standard error, and to the client only where the call fails.
- An answer is a sentence, the first lines of the screen, and as much of the record as leaves all of it below
  8,000 bytes (`answers.py`). What was cut is in `cut`; `rest` is the call that goes on.
- A client reads and writes below `--root` (`confined.py`): arguments are judged before a process starts, and
  in it each file as it is opened, with the links in its path. What runs code needs `--allow-run`,
  and what was not made here never runs: there is no `trust`.
- What takes longer than a client waits becomes a job (`jobs.py`): the same tool goes on with its id. What
  runs code is done one after the other, so that no measurement disturbs another.

- `overview` is about a run: its answer names the page of `probe report`, a resource, and a client that knows
  MCP Apps shows it (`page_app.html`, a view that reads the page by its host and becomes it).
- With `--workload` nothing runs but `bench` with what the workload says: whatever else runs could change it.

The package is not called `mcp`, as the SDK is.
"""
