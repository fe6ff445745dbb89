"""Runs scripts in a child process, and keeps what inductor dumps, with the facts that a dump leaves out.

Three processes: `probe dump`, a supervisor and the script. `dumping` is the first: `scripts` (which script,
with what arguments), then a `request`. `supervisor` outlives the other two: `process` (the script, signals)
with `process_tree` (what it started), `recording` (the manifest) with `history` (events to a
manifest) and `run_dir` (where torch wrote), `leftovers` (temporary folders). `child` is the third: it
runs the script after `hooks` has asked to be told when torch is imported; `recorder` and `compiler_logs`
write down what happens then, as `events`.
"""

from inductor_probe.capture.dumping import DumpResult, dump
from inductor_probe.capture.process import Program
from inductor_probe.capture.scripts import find_script

__all__ = ["DumpResult", "Program", "dump", "find_script"]
