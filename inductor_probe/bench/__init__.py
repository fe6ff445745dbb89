"""The bench room: runs bench files in child processes and reads what they found."""

from inductor_probe.bench.bench_run import run_bench_file

__all__ = ["run_bench_file"]
