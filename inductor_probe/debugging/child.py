"""Runs a script as `capture.child` does, with breakpoints in the modules that it imports.

Command line: `child.py BREAKPOINTS DEBUGGER` before what `capture.child` takes. BREAKPOINTS is JSON, DEBUGGER
is `pdb` or the HOST:PORT on which to wait for a client.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from inductor_probe.capture import child
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.process import end_with
from inductor_probe.debugging.breakpoints import Breakpoint, Inserter
from inductor_probe.debugging.debuggers import Quit, stopping_in_debugpy, stopping_in_pdb
from inductor_probe.debugging.session import read_endpoint
from inductor_probe.errors import ProbeError
from inductor_probe.model.codec import from_json


def main() -> None:
    """Make ready to stop, wait for a client if one is to come, and run the script."""
    breakpoints = tuple(from_json(Breakpoint, item) for item in json.loads(sys.argv.pop(1)))
    address = sys.argv.pop(1)
    end_with(int(sys.argv[1]))  # before it waits for a client
    events = EventLog(Path(sys.argv[2]))
    try:
        if address == "pdb":
            checker = stopping_in_pdb(breakpoints)
        else:
            checker = stopping_in_debugpy(breakpoints, read_endpoint(address))
    except ProbeError as error:
        events.refuse(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        events.refuse(f"no debugger came to {address}; nothing was run", None)
        sys.exit(1)
    # Behind this one comes the finder of the recorder's hooks, which is put in front of it in a moment.
    sys.meta_path.insert(0, Inserter(breakpoints, checker))
    try:
        try:
            child.main()
        finally:
            checker.say_never_reached()
    except Quit:  # ends as Ctrl-C ends a script: what was dumped is kept, and the run is known as interrupted
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
