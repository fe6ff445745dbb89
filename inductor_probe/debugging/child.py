"""Runs a script as `capture.child` does, with stops in the modules that it imports.

Command line: `child.py STOPS DEBUGGER` before what `capture.child` takes. STOPS is `stops_to_json`'s text,
DEBUGGER is `pdb` or the HOST:PORT on which to wait for a client.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from inductor_probe.capture import child
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.process_tree import end_with
from inductor_probe.debugging.asking import Asked
from inductor_probe.debugging.attached import Attached
from inductor_probe.debugging.insertion import Inserting
from inductor_probe.debugging.session import read_endpoint
from inductor_probe.debugging.stops import Stop, stops_from_json
from inductor_probe.debugging.terminal import Quit, Terminal
from inductor_probe.errors import ProbeError


def main() -> None:
    """Make ready to stop, wait for a client if one is to come, and run the script."""
    stops = stops_from_json(sys.argv.pop(1))
    address = sys.argv.pop(1)
    end_with(int(sys.argv[1]))  # before it waits for a client
    staging = Path(sys.argv[2])
    try:
        debugger = _debugger(address)
    except ProbeError as error:
        EventLog(staging).refuse(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        EventLog(staging).refuse(f"no debugger came to {address}; nothing was run", None)
        sys.exit(1)
    try:
        _run(stops, debugger)
    except Quit:
        _end_as_interrupted()


def _debugger(address: str) -> Attached | Terminal:
    if address == "pdb":
        return Terminal()
    attached = Attached()
    attached.wait(read_endpoint(address))
    return attached


def _run(stops: tuple[Stop, ...], debugger: Attached | Terminal) -> None:
    asked = Asked(stops, debugger.stop, debugger.is_watched)
    # Behind this one comes the finder of the recorder's hooks, which is put in front of it in a moment.
    sys.meta_path.insert(0, Inserting(stops, asked))
    try:
        child.main()
    finally:
        asked.say_unreached()


def _end_as_interrupted() -> None:
    """End as Ctrl-C ends a script: what was dumped so far is kept, and the run is known as interrupted."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
