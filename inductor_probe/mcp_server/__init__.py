"""The door for programs: `probe mcp` serves the verbs as tools of the Model Context Protocol, over stdio.

What was decided here:

- A tool is a row of `tools.TOOLS`: the name, the verb, and what it does to the machine. Its input schema is that
  of the record of the verb's options, its answer the record that `--json` prints, so a new verb is one row.
- Each call is a process of its own (`child.py`), which imports what the verb needs: the server imports neither
  torch nor what reads dumps. It ends by Ctrl-C as in a terminal when the client takes the call back, or when the
  server is gone; what it and the scripts print goes to standard error.
- An answer is a sentence, the first lines of the screen, and as much of the record as leaves all of it below
  8,000 bytes (`answers.py`); `rest` is the call that goes on. Nothing is cut without an entry in `cut`.
- A client can read what lies below `--root`, and nothing else: arguments are judged before a process is started,
  and in the process each file as it is opened, with the links in its path (`confined.py`). What runs code is offered
  with `--allow-run` only. There is no `trust`: what was not made here runs for no client.
- What takes longer than a client waits becomes a job: the answer has its id, and the same tool with `job` goes on.
  Only one of what runs code is at work at a time, so that no measurement disturbs another (`jobs.py`).

The package is not called `mcp`, as the SDK is.
"""
