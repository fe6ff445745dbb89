"""Who runs the rows of a matrix: processes of this machine (`local`), or nodes of a Ray cluster (`cluster`).

    executor.map(make, tasks, needs)  ->  a `Done` for each task, as they come

`make` makes a `Worker` where tasks are to run: it starts processes with the first, and ends them in `close`.
"""
