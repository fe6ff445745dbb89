"""The process between `probe dump` and the script: it outlives both, and so can end and write down a run.

Command line: `supervisor.py CONTROL ANSWER`, two descriptors of pipes. From CONTROL it reads the request, a
line of JSON, then the number of each signal that `probe dump` receives; when CONTROL ends, `probe dump` has
ended, and the supervisor ends the script and all that it started. To ANSWER it writes JSON: what came of it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from inductor_probe.capture import targets
from inductor_probe.capture.dumping import DumpResult, Request
from inductor_probe.capture.folders import remove_leftovers, temporary_folder
from inductor_probe.capture.isa_checks import isa_checks_kept
from inductor_probe.capture.process import FIRST_NAME, OPTIONS_NAME, environment, run_child
from inductor_probe.capture.processes import variables_to_follow
from inductor_probe.capture.recording import Recording
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.model.codec import Json, from_json, to_json


def supervise(request: Request, control: int) -> DumpResult:
    """Run the script of `request`, and write down what came of it.

    Raises:
        RunFailedError: Python could not be started, or the program did not start the script.
        ProbeError: something cannot be written.
    """
    remove_leftovers()
    program = request.program
    with temporary_folder() as folder, isa_checks_kept(folder.path / "inductor"):
        recording = Recording(request, folder)
        options = json.dumps(to_json(request.child))
        (folder.staging / OPTIONS_NAME).write_text(options)
        command, followed = list(request.command), variables_to_follow(folder.staging)
        if request.form != "command":
            script = command[1:]
            command = [sys.executable, str(program.path), *program.arguments]
            command += [str(os.getpid()), str(folder.staging), options, *script]
            followed = {}  # it sets the hooks itself, and those variables for what it starts
        ended = run_child(
            command,
            {
                **environment(Path(request.root), folder.path),
                **dict(request.variables),
                **(targets.ENVIRONMENT if request.child.target else {}),
                **program.settings,
                **followed,
            },
            introduce=folder.staging / FIRST_NAME if followed else None,
            control=control,
            inherited=folder.lock,
            stdout_to_stderr=request.stdout_to_stderr,
            meanwhile=recording.update,
        )
        return recording.finish(ended)


def main() -> None:
    """Read a request, do it, and answer."""
    control, answer = map(int, sys.argv[1:])
    for descriptor in (control, answer):
        os.set_inheritable(descriptor, False)
    with os.fdopen(os.dup(control), "rb", buffering=0) as pipe:  # unbuffered: reads no byte behind the line
        line = pipe.readline()
    if not line.endswith(b"\n"):
        return  # `probe dump` has ended already
    reply: Json
    try:
        reply = to_json(supervise(from_json(Request, json.loads(line)), control))
    except ProbeError as error:
        reply = {"error": error.message, "hint": error.hint, "of_run": isinstance(error, RunFailedError)}
    with suppress(BrokenPipeError):  # nobody waits for the answer: `probe dump` has ended
        os.write(answer, json.dumps(reply).encode())


if __name__ == "__main__":
    main()
