"""The rewriting room: `output_code.py` to a standalone bench file. libcst is used here and nowhere else."""

from inductor_probe.rewrite.bench_file import write_bench_file
from inductor_probe.rewrite.bench_source import bench_source

__all__ = ["bench_source", "write_bench_file"]
