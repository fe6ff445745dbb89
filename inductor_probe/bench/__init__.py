"""The bench room: runs bench files in child processes, and judges what they measured."""

from inductor_probe.bench.cpu_state import cpu_state
from inductor_probe.bench.hazards import hazards
from inductor_probe.bench.results import read_kept
from inductor_probe.bench.session import run_bench_file, time_configs
from inductor_probe.bench.together import result_of

__all__ = [
    "cpu_state",
    "hazards",
    "read_kept",
    "result_of",
    "run_bench_file",
    "time_configs",
]
