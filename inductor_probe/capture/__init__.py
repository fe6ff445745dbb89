"""Runs scripts in a child process, and keeps what inductor dumps, with the facts that a dump leaves out.

`dumping` is the parent's side, from top to bottom: `scripts` (which script, with what arguments), `process`
(the child), `run_dir` (where torch wrote), `history` (events to a manifest). `child` is the other side: it
runs the script after `hooks` has asked to be told when torch is imported; `recorder` and `compiler_logs`
write down what happens then, as `events`.
"""

from inductor_probe.capture.dumping import DumpResult, dump
from inductor_probe.capture.process import Program
from inductor_probe.capture.scripts import find_script

__all__ = ["DumpResult", "Program", "dump", "find_script"]
