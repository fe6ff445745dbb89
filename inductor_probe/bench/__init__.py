"""The bench room: runs bench files in child processes, and judges what they measured."""

from inductor_probe.bench.results import result_of
from inductor_probe.bench.session import run_bench_file, time_configs
from inductor_probe.machine.cpu import cpu_state, hazards
from inductor_probe.store.samples import read_samples

__all__ = [
    "cpu_state",
    "hazards",
    "read_samples",
    "result_of",
    "run_bench_file",
    "time_configs",
]
