"""The processes that measure, and who runs the rows of a matrix: this machine, or nodes of a Ray cluster.

    server.events(request)            ->  what a process says of a job, as it comes
    executor.map(make, tasks, needs)  ->  a `Done` for each task, as they come

A `Child` is a process that sends events and gets requests. A `Server` is one that has imported torch: bench
files, cases of scenarios, samples of operators, rooflines are jobs of it, and a child that it forks is lost
with what it runs. `make` makes a `Worker` where tasks are to run (`local`, `cluster`): it starts processes
with the first, and ends them in `close`.

What was decided here:

- One protocol. A job of any room is a function `MODULE:FUNCTION` that is told the request and sends events;
  whoever waits for them is a loop over `Server.events`, and answers with `send`. A script of the user's runs
  as a program of its own (`measuring/script_process.py`), and speaks likewise.
- A row knows nothing of other rows. An executor hands tasks to workers, one after the other here, or
  to actors of Ray that hold what is timed: all processors of a node, or a GPU. What measures is a process
  of its own on each machine, so that a worker that is lost costs its task; where rows were measured is
  recorded with them.
"""
