"""Who runs the rows of a matrix: processes of this machine (`local`), or nodes of a Ray cluster (`cluster`).

    executor.map(make, tasks, needs)  ->  a `Done` for each task, as they come

`make` makes a `Worker` where tasks are to run: it starts processes with the first, and ends them in `close`.

What was decided here:

- A row knows nothing of other rows. An executor hands tasks to workers, one after the other here, or
  to actors of Ray that hold what is timed: all processors of a node, or a GPU. What measures is a process
  of its own on each machine, so that a worker that is lost costs its task; where rows were measured is
  recorded with them.
"""
