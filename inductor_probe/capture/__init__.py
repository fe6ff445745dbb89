"""Runs scripts in a child process, and keeps what inductor dumps, with the facts that a dump leaves out.

Three processes: `probe dump`, a supervisor and the script. `dumping` is the first: `scripts` says which
script with what arguments, `refusals` what it would be refused for. `supervisor` outlives the other two:
`process` (the script, signals, what it started), `recording` (events to a manifest) and `folders` (where
torch wrote, temporary folders). `child` is the third: it runs the script after `hooks` has registered for
the import of torch; `recorder` and `compiler_logs` write down what happens then, as `events`. `removal`
removes runs.
"""

from inductor_probe.capture.dumping import DumpResult, dump, interrupt_dumps
from inductor_probe.capture.process import Program, kernel_caches
from inductor_probe.capture.refusals import check_knobs
from inductor_probe.capture.scripts import find_script

__all__ = ["DumpResult", "Program", "check_knobs", "dump", "find_script", "interrupt_dumps", "kernel_caches"]
