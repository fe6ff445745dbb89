"""What is measured: a folder a subject, a module a benchmark: `python -m benchmarks.cost.dump_cost`."""
