"""Runs a script as `python SCRIPT ARGS` would, up to a call of what it compiles; times that call, and ends.

Command line: `own_child.py PARENT EVENTS ASKED OPTIONS SCRIPT ARGS`. PARENT is the process that starts this
one, and with which it ends; EVENTS and ASKED are descriptors of pipes: the first gets lines of JSON, the
second gives them. OPTIONS are an `OwnOptions` as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

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

Options = TypeVar("Options", bound=Struct)


class OwnOptions(Struct, frozen=True):
    """What is asked for, and with which settings of torch and decisions turned the script runs.

    `folder` is one for files of this process, which its parent removes.
    """

    request: OwnRequest
    folder: str
    settings: tuple[tuple[str, str], ...] = ()
    flips: tuple[Flip, ...] = ()


def opened(kind: type[Options]) -> tuple[Options, Callable[..., None], TextIO, list[str]]:
    """Read the command line of a child that runs a script.

    Returns:
        the options; what sends an event; what questions are read from; the script and its arguments.
    """
    parent, events, asked, options, *command = sys.argv[1:]
    end_with(int(parent))
    answers, questions = os.fdopen(int(events), "w", encoding="utf-8"), os.fdopen(int(asked))
    for descriptor in (int(events), int(asked)):
        os.set_inheritable(descriptor, False)

    def tell(event: str, **values: Any) -> None:
        answers.write(json.dumps({"event": event, **values}, default=str) + "\n")
        answers.flush()

    return from_json(kind, json.loads(options)), tell, questions, command


def set_hooks(settings: Sequence[tuple[str, str]], turned: Sequence[Flip], log: EventLog) -> None:
    """Have torch's settings set and decisions turned when it is imported."""
    hooks = (
        *torch_settings.hooks(settings, log),
        *flips.hooks(turned, log, DecisionLog(log, simulated=False)),
    )
    for name, hook in hooks:
        wrapt.register_post_import_hook(hook, name)


def run_to_end(script: str, args: list[str], at_end: Callable[[str], None]) -> None:
    """Run the script, and end this process; `at_end` is told how the script ended: `ended` or `failed`."""
    ending = "ended"
    try:
        run_script(script, args)
    except SystemExit as error:
        ending = "ended" if error.code in (None, 0) else "failed"
    except BaseException:
        at_end("failed")
        raise
    at_end(ending)
    end_process()


def main() -> None:
    """Run the script, and say in the end how far it came."""
    chosen, tell, questions, (script, *args) = opened(OwnOptions)
    own = OwnCalls(chosen.request, tell, questions.readline)
    own.install()
    named = flips.settings_without_dump(chosen.flips, chosen.folder)
    set_hooks((*named, *chosen.settings), chosen.flips, EventLog(Path(chosen.folder)))
    run_to_end(script, args, own.at_end)


if __name__ == "__main__":
    main()
