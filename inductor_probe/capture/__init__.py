"""Runs scripts in a child process, and keeps what inductor dumps, with the facts that a dump leaves out.

Three processes: `probe dump`, a supervisor and the script. `dumping` is the first: `scripts` says which
script with what arguments, `refusals` what it would be refused for. `supervisor` outlives the other two:
`process` (the script, signals, what it started), `recording` (events to a manifest) and `folders` (where
torch wrote, temporary folders). `child` is the third: it runs the script after `hooks` has registered for
the import of torch; `recorder` and `compiler_logs` write down what happens then, as `events`. `removal`
removes runs.

What was decided here:

- Private parts of torch are touched here alone, in one place a hook: a part that is gone becomes a note in
  the manifest, `not available on torch X`, not a failure.
- A cause is a test that torch made. Functions that decide are watched (`branches/`): their code is replaced
  by the same source in which each test reports its operands, in torch's order, and a recorder reads by which
  tests the function returned where it did. So a limit is torch's own on any release, a test that this package
  does not know is shown as torch has it (`unlisted-test`), and a function without source is a note. The code
  objects are exchanged, not the functions: closures, decorators and other modules' names stay as they are.
- A compile that failed is a result. Exceptions are seen where they leave dynamo and a graph's folder
  (`hooks.py`); the child writes their text and frames, and one reader makes the record of those and of
  torch's own log (`reader/failures.py`): the stage is that of the innermost known frame.
- A dump ends with its command, and is written down as it is made. A supervisor between `probe dump` and the
  script passes signals on, ends the script and all that it started when `probe dump` has ended, even by
  SIGKILL, and writes the manifest with every graph. A free lock marks what a dump left whose supervisor was
  killed.
- Processes are followed by their environment. What a script starts gets a PYTHONPATH whose `sitecustomize`
  sets the hooks when torch is imported (`processes.py`), and runs the user's own; a fork has the hooks
  already. Each process reports to a folder of its own; one that compiled has a run, and all runs of a dump
  name all of its processes. The supervisor looks for those that load torch and report nothing
  (`unfollowed.py`): they are named, so that "nothing was compiled" is said only where all were followed.
- A notebook's process is left as it was. `ip.dump(function)` and `ip.recording` set the same hooks in torch
  as it is (`in_process.py`), wherever a function was imported by name, and put all back; a function gets
  code and a backend of its own, or dynamo would take what it compiled before.
"""

from inductor_probe.capture.dumping import DumpResult, dump, interrupt_dumps
from inductor_probe.capture.process import Program, kernel_caches
from inductor_probe.capture.refusals import check_knobs
from inductor_probe.capture.scripts import find_script

__all__ = ["DumpResult", "Program", "check_knobs", "dump", "find_script", "interrupt_dumps", "kernel_caches"]
