"""Runs a script as `python SCRIPT ARGS` would, with torch's trace, and what compilers were run for in it.

Command line: `trace_child.py PARENT FOLDER SETTINGS SCRIPT ARGS`. PARENT is the process that starts this one,
and with which it ends; FOLDER is one for its files, SETTINGS are pairs of torch's settings as JSON.
The folder of the trace is `TORCH_TRACE` of the environment.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import wrapt

from inductor_probe.capture import compilers, torch_settings
from inductor_probe.capture.child import run_script
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.process import end_with


def main() -> None:
    """Set the hook, and run the script."""
    parent, folder, settings, script, *args = sys.argv[1:]
    end_with(int(parent))
    events = EventLog(Path(folder))
    pairs = [(name, value) for name, value in json.loads(settings)]
    for name, hook in (*compilers.hooks().items(), *torch_settings.hooks(pairs, events)):
        wrapt.register_post_import_hook(hook, name)
    run_script(script, args)


if __name__ == "__main__":
    main()
