"""Runs a script as `python SCRIPT ARGS` would, up to a call of what it compiles; times that call, and ends.

Command line: `own_child.py PARENT EVENTS ASKED OPTIONS SCRIPT ARGS`. PARENT is the process that starts this
one, and with which it ends; EVENTS and ASKED are descriptors of pipes: the first gets lines of JSON, the
second gives them. OPTIONS are an `OwnOptions` as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import wrapt
from msgspec import Struct

from inductor_probe.capture import flips, torch_settings
from inductor_probe.capture.child import run_script
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.own_calls import OwnCalls, OwnRequest, end_process
from inductor_probe.capture.process import end_with
from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.model.codec import from_json
from inductor_probe.model.flip import Flip


class OwnOptions(Struct, frozen=True):
    """What is asked for, and with which settings of torch and decisions turned the script runs.

    `folder` is one for files of this process, which its parent removes.
    """

    request: OwnRequest
    folder: str
    settings: tuple[tuple[str, str], ...] = ()
    flips: tuple[Flip, ...] = ()


def main() -> None:
    """Run the script, and say in the end how far it came."""
    parent, events, asked, options, script, *args = sys.argv[1:]
    end_with(int(parent))
    chosen = from_json(OwnOptions, json.loads(options))
    answers, questions = os.fdopen(int(events), "w", encoding="utf-8"), os.fdopen(int(asked))
    for descriptor in (int(events), int(asked)):
        os.set_inheritable(descriptor, False)

    def tell(event: str, **values: Any) -> None:
        answers.write(json.dumps({"event": event, **values}, default=str) + "\n")
        answers.flush()

    own = OwnCalls(chosen.request, tell, questions.readline)
    own.install()
    log = EventLog(Path(chosen.folder))
    for name, set_all in torch_settings.hooks(
        (*flips.settings_without_dump(chosen.flips, chosen.folder), *chosen.settings), log
    ):
        wrapt.register_post_import_hook(set_all, name)
    for name, hook in flips.hooks(chosen.flips, log, DecisionLog(log, simulated=False)):
        wrapt.register_post_import_hook(hook, name)
    ending = "ended"
    try:
        run_script(script, args)
    except SystemExit as error:
        ending = "ended" if error.code in (None, 0) else "failed"
    except BaseException:
        tell("over", ending="failed")
        raise
    own.at_end(ending)
    end_process()


if __name__ == "__main__":
    main()
