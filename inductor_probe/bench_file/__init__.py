"""`output_code.py` to a standalone bench file, and to its text when edits in it are carried over."""

from inductor_probe.bench_file.bench_file import existing_bench_file, is_generated, write_bench_file
from inductor_probe.bench_file.source import bench_source

__all__ = ["bench_source", "existing_bench_file", "is_generated", "write_bench_file"]
