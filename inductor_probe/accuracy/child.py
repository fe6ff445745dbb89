"""Runs a script as `python SCRIPT ARGS` would, and judges the calls of what it compiles; says what it finds.

Command line: that of `capture/own_child.py`, with an `AccuracyOptions` as OPTIONS.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wrapt
from msgspec import Struct

from inductor_probe.capture import flips, torch_settings
from inductor_probe.capture.callables import Callables, Callee, is_traced, name_of, untraced, where_of
from inductor_probe.capture.child import run_script
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.own_calls import end_process
from inductor_probe.capture.process import end_with
from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.model.codec import from_json
from inductor_probe.model.flip import Flip

ALWAYS = (
    ("inductor.fx_graph_cache", "False"),
    ("functorch.enable_autograd_cache", "False"),
    ("inductor.fallback_random", "True"),
)
"""Settings with which a script is judged: graphs are compiled here, and draw the random numbers of eager."""


class AccuracyOptions(Struct, frozen=True):
    """What is asked for: settings of torch and decisions turned, seconds for judging calls.

    `folder` is one for files of this process. `only`: judge, and do not follow what is wrong.
    """

    folder: str
    settings: tuple[tuple[str, str], ...] = ()
    flips: tuple[Flip, ...] = ()
    seconds: float = 60.0
    only: bool = False


class Judge(Callables):
    """Judges calls of the user's callables before they are made.

    Args:
        tell: sends an event.
    """

    def __init__(self, options: AccuracyOptions, tell: Callable[..., None]) -> None:
        super().__init__()
        self._options, self._tell = options, tell
        self._spent = 0.0
        self._judged: dict[int, int] = {}
        self._stages: Any = None

    def set_up(self) -> None:
        """Set the hooks: torch is imported by this."""
        from inductor_probe.accuracy.stages import Stages  # noqa: PLC0415 - settings come first

        self._stages = Stages()
        self._stages.install()

    def before(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Judge a call, unless there were many: then each second, fourth, eighth one."""
        callee.calls += 1
        number = callee.calls
        if self._spent > self._options.seconds and number & (number - 1):
            return
        begin = time.monotonic()
        self.busy = True
        try:
            with untraced():
                self._judge(callee, number, args, kwargs)
        except Exception as error:  # whatever his program, or torch, may raise
            self._tell("not-judged", name=name_of(callee.eager), call=number, message=f"{type(error).__name__}: {error}")
            if self._options.only or os.environ.get("PROBE_ACCURACY_RAISES"):
                raise
        finally:
            self.busy = False
            self._spent += time.monotonic() - begin

    def _judge(self, callee: Callee, number: int, args: Any, kwargs: Any) -> None:
        from inductor_probe.accuracy.calls import CheckedCall  # noqa: PLC0415 - torch is there now
        from inductor_probe.harness.own_calls import OwnCall  # noqa: PLC0415

        call = CheckedCall(OwnCall(callee.eager, callee.compiled, args, kwargs, backward=True))
        verdict = call.check()
        self._tell(
            "call", name=name_of(callee.eager), where=where_of(callee), call=number, verdict=verdict,
            judged={name: vars(one) for name, one in call.judged.items()}, remarks=call.remarks,
            refused=call.refused,
        )  # fmt: skip
        if verdict != "right" and not self._options.only:
            from inductor_probe.accuracy.follow import follow  # noqa: PLC0415

            for fault in follow(call, self._stages):
                self._tell("fault", call=number, **{**vars(fault), "judged": vars(fault.judged)})


def main() -> None:
    """Run the script, and say in the end how far it came."""
    parent, events, asked, options, script, *args = sys.argv[1:]
    end_with(int(parent))
    chosen = from_json(AccuracyOptions, json.loads(options))
    answers = os.fdopen(int(events), "w", encoding="utf-8")
    for descriptor in (int(events), int(asked)):
        os.set_inheritable(descriptor, False)

    def tell(event: str, **values: Any) -> None:
        answers.write(json.dumps({"event": event, **values}, default=str) + "\n")
        answers.flush()

    judge = Judge(chosen, tell)
    judge.install()
    log = EventLog(Path(chosen.folder))
    for name, set_all in torch_settings.hooks((*ALWAYS, *chosen.settings), log):
        wrapt.register_post_import_hook(set_all, name)
    for name, hook in flips.hooks(chosen.flips, log, DecisionLog(log, simulated=False)):
        wrapt.register_post_import_hook(hook, name)
    judge.set_up()
    ending = "ended"
    try:
        run_script(script, args)
    except SystemExit as error:
        ending = "ended" if error.code in (None, 0) else "failed"
    except BaseException:
        tell("over", ending="failed")
        raise
    tell("over", ending=ending)
    end_process()


if __name__ == "__main__":
    main()
